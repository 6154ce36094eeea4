// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/text"
)

// series is one sample of a workload.
type series struct {
	family *metric.Desc
	labels [3]string // after those of the workload; empty ones at the end do not exist
}

// counts are what a workload has counted, and how long it took.
type counts struct {
	calls map[series]float64
	times map[timed]*spans
}

func (b *Backend) add(w *workload.Workload[counts], n float64, family *metric.Desc, labels ...string) {
	if w.Kept.calls == nil {
		w.Kept.calls = map[series]float64{}
	}
	s := series{family: family}
	copy(s.labels[:], labels)
	w.Kept.calls[s] += n
}

// settle takes what was counted and timed since the last time, of the files whose calls are all counted, and of
// one whose window ends now, where each hit stands for weight.
func (b *Backend) settle(closing *probedFile, weight float64) error {
	return errors.Join(b.settleCrossings(closing, weight), b.settleCalls(closing, weight), b.settleTimes(closing, weight))
}

// weight is what a call of the file counts for when the window of another, or its own, closes; calls of a file that is
// sampled are due when its own does.
func (f *probedFile) weight(closing *probedFile, ofClosing float64) (w float64, due bool) {
	if f == closing {
		return ofClosing, true
	}
	return 1, f.sampler.exact
}

func (b *Backend) settleCalls(closing *probedFile, weight float64) error {
	var stale []callKey
	err := b.kernel.eachCall(func(key callKey, n uint64) {
		s := b.sites[key.Site]
		if s == nil {
			stale = append(stale, key) // of a file that is probed no more
			return
		}
		w, due := s.file.weight(closing, weight)
		if n == b.seen[key] || !due {
			return
		}
		p := b.process(key.TGID)
		if p == nil {
			stale = append(stale, key)
		} else if s.role == roleSDKECall && s.file != closing && !p.looked && !p.last && b.now().Sub(p.since) < nameWait {
			return // its names are still to be found
		}
		b.count(p, key, s, float64(n-b.seen[key])*w)
		b.seen[key] = n
	})
	b.decide()
	return errors.Join(err, b.forgetCalls(stale))
}

// forgetCalls removes counters that nobody reads again.
func (b *Backend) forgetCalls(keys []callKey) error {
	for _, key := range keys {
		delete(b.seen, key)
	}
	return b.kernel.forget(keys)
}

// count adds calls to what their workload has counted.
func (b *Backend) count(p *process, key callKey, s *site, n float64) {
	owner := b.registry.Other() // of a process that ended before it could be looked at
	if p != nil {
		owner = p.owner
	}
	f, source := b.families, s.source()
	switch s.direction {
	case ecall:
		b.add(owner, n, f.ecalls, b.label(p, key, s), "normal", source)
	case switchless:
		b.add(owner, n, f.ecalls, b.label(p, key, s), "switchless", source)
	case ocall:
		b.add(owner, n, f.ocalls, b.label(p, key, s), source)
	}
	switch {
	case !s.crosses(p):
	case p != nil && b.undecided(p):
		p.held[source] += n
	default:
		b.cross(owner, n, source)
	}
}

func (b *Backend) cross(owner *workload.Workload[counts], n float64, source string) {
	b.add(owner, n, b.families.transitions, "eenter", source)
	b.add(owner, n, b.families.transitions, "eexit", source)
}

// source is the label that says how the calls of a site are counted.
func (s *site) source() string {
	if s.file.sampler.exact {
		return s.runtime.name + "_uprobe"
	}
	return s.runtime.name + "_uprobe_sampled"
}

// crosses tells whether a call is one EENTER and one EEXIT. Of the SDK's, nothing is said before the OCALLs are
// seen too: the sum of some of them would look like the sum of all.
func (s *site) crosses(p *process) bool {
	if s.runtime == sdk && (p == nil || !p.complete()) || p != nil && p.byVDSO {
		return false
	}
	for _, d := range s.runtime.crossings {
		if d == s.direction {
			return true
		}
	}
	return false
}

// nameWait is how long the ECALLs of a new process may wait for their names, so that they have one from the first on.
const nameWait = time.Second

// label names the function that is called, in a process if that is known.
func (b *Backend) label(p *process, key callKey, s *site) string {
	if s.role == roleSDKECall && p != nil && p.ecalls[key.Argument] != "" {
		return text.Label(p.ecalls[key.Argument])
	}
	return s.label(key.Argument)
}

// label names the function that is called, of which each process has the same.
func (s *site) label(argument uint32) string {
	switch {
	case s.name != "":
		return text.Label(s.name)
	case argument == ecallRuntime:
		return "runtime"
	case argument >= toldApart:
		return "other"
	case s.role == roleOEDispatch && argument == 0:
		return "call_host_function" // by which those of applications come
	case s.role == roleOEDispatch:
		return "runtime_" + strconv.Itoa(int(argument)) // their numbers change between versions (calls.h, oe_func_t)
	}
	return strconv.Itoa(int(argument))
}

func (b *Backend) emit(emit func(prometheus.Metric)) {
	b.registry.Each(func(w *workload.Workload[counts]) {
		own := []string{w.Name, w.Container, w.Pod, w.Namespace}
		for s, n := range w.Kept.calls {
			labels := append(slices.Clone(own), s.labels[:]...)
			emit(s.family.Value(n, labels[:len(s.family.Labels)]...))
		}
		for t, d := range w.Kept.times {
			emit(d.histogram(t.family, append(slices.Clone(own), t.call, t.source)...))
		}
	})
	f := b.families
	type of struct{ name, runtime string }
	told := map[of]bool{} // two containers may have files of one name
	for _, file := range b.slots {
		if file == nil || len(file.sites)+len(file.reason) == 0 || told[of{file.name, file.runtime.name}] {
			continue
		}
		told[of{file.name, file.runtime.name}] = true
		emit(f.probed.Value(1, file.name, file.runtime.name, file.state(), file.reason))
		if len(file.sites) > 0 {
			emit(f.share.Value(file.sampler.share, file.name, file.runtime.name))
			if d, ok := file.sampler.deviation(); ok {
				emit(f.deviation.Value(d, file.name, file.runtime.name))
			}
			emit(f.hits.Value(float64(b.kernel.files[file.index].Cost), file.name, file.runtime.name))
			b.emitTimed(file, emit)
		}
	}
	for i, what := range []string{"calls", "tables", "processes", "threads", "durations"} {
		emit(f.lost.Value(float64(b.kernel.losses[i]), what))
	}
	emit(f.lost.Value(b.unseen, "unseen"))
	emit(f.lost.Value(b.cut, "ends"))
	if len(b.files) > 0 { // before, the programs are loaded and do nothing
		b.probes.Emit(b.kernel.object, nil, emit)
	}
}

// state says how a file is probed.
func (f *probedFile) state() string {
	switch {
	case len(f.sites) == 0:
		return "none"
	case f.sampler.exact:
		return "exact"
	}
	return "sampled"
}
