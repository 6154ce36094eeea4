// SPDX-License-Identifier: Apache-2.0

package userprobe

import (
	_ "embed"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/userprobe/probefile"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

//go:embed userprobe.bpf.o
var object []byte

// active is a probe with its state.
type active struct {
	*probefile.Probe
	number   int
	keys     []fetch // how its keys are read
	programs []string
	status   bpf.Status
	seen     uint64 // events at the last check of the budget
	took     spent  // CPU time for these
}

// kernelSide is everything in the kernel: maps, programs, and the memory that both sides use.
type kernelSide struct {
	object *bpf.Object
	probes []*active
	cpus   int

	groups        *attribution.Kernel
	tallies       []tally  // by CPU, then probe
	series        []uint64 // by probe
	controls      []control
	sums          *bpf.Drain[seriesKey, sum]
	distributions *bpf.Drain[seriesKey, distribution]
}

// load creates the maps and attaches the probes. A probe that cannot be attached has a reason in its status.
func load(probes []probefile.Probe, o Options, controller int32) (*kernelSide, error) {
	cpus, err := bpf.CPUs()
	if err != nil {
		return nil, err
	}
	obj, err := bpf.Open(object)
	if err != nil {
		return nil, err
	}
	defer obj.Loaded()
	k := &kernelSide{object: obj, cpus: cpus}
	for _, step := range []func() error{
		func() error { return k.resize(probes, groupFirst+groupsPerWorkload*o.MaxWorkloads, controller) },
		obj.CreateMaps, k.mapArrays,
	} {
		if err := step(); err != nil {
			return nil, errors.Join(fmt.Errorf("loading the user's probes: %w", err), obj.Close())
		}
	}
	a := attacher{object: obj, proc: hostfs.At(o.Proc), sys: hostfs.At(o.Sys), root: o.Root}
	for i := range probes {
		k.probes = append(k.probes, a.attach(i, &probes[i]))
	}
	return k, nil
}

// resize sets the sizes of the maps. Each group has room for a series of its own and for one of those above the limit.
func (k *kernelSide) resize(probes []probefile.Probe, groups int, controller int32) error {
	sizes := map[bool]int{}
	timed := 1
	for i := range probes {
		p := &probes[i]
		n := groups
		if len(p.Keys) > 0 {
			n += p.Series
		}
		sizes[p.Value.Kind == probefile.Histogram] += n
		if p.Value.Field.Name == probefile.Duration {
			timed = started
		}
	}
	o := k.object
	return errors.Join(
		o.Resize("sums", max(1, sizes[false])), o.Resize("distributions", max(1, sizes[true])), o.Resize("started", timed),
		o.Resize("tallies", k.cpus*maxProbes), attribution.Resize(o, groups), o.SetConstant("cgroup_controller", controller),
	)
}

func (k *kernelSide) mapArrays() error {
	var errs [6]error
	k.tallies, errs[0] = bpf.View[tally](k.object, "tallies")
	k.series, errs[1] = bpf.View[uint64](k.object, "series")
	k.controls, errs[2] = bpf.View[control](k.object, "controls")
	k.groups, errs[3] = attribution.Open(k.object, groupFirst)
	k.sums, errs[4] = bpf.NewDrain[seriesKey, sum](k.object, "sums")
	k.distributions, errs[5] = bpf.NewDrain[seriesKey, distribution](k.object, "distributions")
	return errors.Join(errs[:]...)
}

// tallyOf adds up the CPUs' tallies of a probe.
func (k *kernelSide) tallyOf(number int) (all tally) {
	for cpu := range k.cpus {
		t := &k.tallies[cpu*maxProbes+number]
		all.Events += atomic.LoadUint64(&t.Events)
		all.Folded += atomic.LoadUint64(&t.Folded)
		all.Full += atomic.LoadUint64(&t.Full)
		all.Negative += atomic.LoadUint64(&t.Negative)
		all.Unpaired += atomic.LoadUint64(&t.Unpaired)
		all.Unread += atomic.LoadUint64(&t.Unread)
		all.Runs += atomic.LoadUint64(&t.Runs)
		all.RunNS += atomic.LoadUint64(&t.RunNS)
	}
	return all
}

// measure begins or ends a measurement of the programs.
func (k *kernelSide) measure(on bool) {
	n := uint64(0)
	if on {
		n = 1
	}
	atomic.StoreUint64(&k.controls[0].Metering, n)
}

// assumedPath is the cost of an event besides the program: the kernel's path to it, in nanoseconds. It was measured in loops on
// one machine (docs/user/probes.md). The value for kprobes is assumed, because that machine had none.
var assumedPath = map[probefile.Mechanism]time.Duration{
	probefile.Tracepoint: 300, probefile.Kprobe: 300, probefile.Kretprobe: 500,
	probefile.Uprobe: 900, probefile.Uretprobe: 1300, probefile.USDT: 900,
}

const (
	assumedProgram = 300 * time.Nanosecond
	leastRuns      = 20 // of a measurement
)

// path returns the cost of an event besides the program.
func (a *active) path() time.Duration { return assumedPath[a.Mechanism] }

// program returns the cost of one run of the program, and whether it was measured.
func (t *tally) program() (time.Duration, bool) {
	if t.Runs < leastRuns {
		return assumedProgram, false
	}
	return time.Duration(t.RunNS / t.Runs), true
}

// status returns the states of all probes.
func (k *kernelSide) status() []bpf.Status {
	var all []bpf.Status
	for _, a := range k.probes {
		all = append(all, a.status)
	}
	return all
}
