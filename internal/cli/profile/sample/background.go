// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	pprof "github.com/google/pprof/profile"

	"github.com/teescope/teescope/internal/agent/profiling/recording"
	runs "github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/profile"
)

const (
	// mostFunctions is the number of functions of a workload that a run file lists.
	mostFunctions = 100
	// maxData is the size of a profile in a run file, in bytes. A larger one has its functions only.
	maxData = 32 << 20
	// unresolved is the name of functions without one.
	unresolved = "[unresolved]"
)

// Background takes samples of descendants of this process and of watched processes, while something else runs.
type Background struct {
	run    *run
	cancel context.CancelFunc
	done   chan error
	quiet  *os.File
}

// Begin begins to take samples.
func Begin(ctx context.Context, o Options) (*Background, error) {
	quiet, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	o.Err = quiet
	r, err := open(o)
	if err != nil {
		return nil, errors.Join(err, quiet.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	b := &Background{run: r, cancel: cancel, done: make(chan error, 1), quiet: quiet}
	go func() {
		_, err := r.record(ctx, nil, nil)
		b.done <- err
	}()
	return b, nil
}

// End ends it and returns the profile, without the samples of a process. It has no functions if no sample was taken. A run file is
// for others to read, so the profile has no addresses that are of use against what still runs.
func (b *Background) End(except int) (p runs.Profile, err error) {
	b.cancel()
	err = <-b.done
	defer func() { err = errors.Join(err, b.run.Close(), b.quiet.Close()) }()
	if err != nil || b.run.recording.Kept() == 0 {
		return p, err
	}
	data, all, err := b.run.profile(func(out *pprof.Profile) *pprof.Profile { return recording.Shareable(out, except) })
	if err != nil || all == nil {
		return p, err
	}
	p = runs.Profile{Type: "pprof", Name: string(b.run.about.Event), Functions: functions(all), Faults: faults(all)}
	if data.Len() <= maxData {
		p.Data = data.Bytes()
	}
	return p, nil
}

// functions returns the CPU time of the functions that ran most, of each workload, and of the others together.
func functions(p *profile.Profile) (list []runs.Function) {
	if !p.Values[p.Main].IsTime() {
		return nil
	}
	type key struct{ workload, function string }
	seconds := map[key]float64{}
	for i := range p.Samples {
		s := &p.Samples[i]
		name := cmp.Or(p.Frames[s.Stack[0]].Function, unresolved)
		seconds[key{p.Label(s, profile.Workload), name}] += float64(s.Values[p.Main]) / 1e9
	}
	for k, v := range seconds {
		list = append(list, runs.Function{Workload: k.workload, Name: k.function, Seconds: v})
	}
	slices.SortFunc(list, func(a, b runs.Function) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Name, b.Name))
	})
	if len(list) <= mostFunctions {
		return list
	}
	rest := map[string]float64{}
	for _, f := range list[mostFunctions:] {
		rest[f.Workload] += f.Seconds
	}
	list = list[:mostFunctions]
	for workload, v := range rest {
		list = append(list, runs.Function{Workload: workload, Name: runs.Others, Seconds: v})
	}
	return list
}
