// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/sampling"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

func (e *emission) emit(emit emitFunc) {
	byOwner := map[*workload.Workload[counts]][]*slot{}
	for sl := range e.slots.All() {
		byOwner[sl.Workload] = append(byOwner[sl.Workload], sl)
	}
	e.members.list(e.kernel, time.Now())
	total := &counts{} // of one workload at a time
	e.slots.Registry.Each(func(w *workload.Workload[counts]) {
		w.Data.copyTo(total)
		s := subject{labels: workloadValues(w), kind: w.Kind, total: total, began: w.Began}
		for _, sl := range byOwner[w] {
			total.add(&sl.counts)
			s.gauge.Processes += sl.gauge.Processes
			s.gauge.Threads += sl.gauge.Threads
			s.gauge.RSSPages += sl.gauge.RSSPages
		}
		e.emitSubject(s, emit)
		if e.kernel.attached("oom_kill") {
			emit(e.families.oomKills.Since(w.Began, float64(total.OomKills), s.labels...))
		}
		if ratio, certain := e.busiest[w]; certain {
			emit(e.families.busiest.Value(ratio, s.labels...))
		}
		v := e.members.detect(e.kernel, w, byOwner[w])
		emit(e.families.info.Value(1, with(s.labels, string(w.Kind), string(v.kind), string(v.runtime))...))
		if v.kind == teelabel.SGX && total.Bytes != [directions]uint64{} {
			for direction, name := range directionNames {
				emit(e.families.boundaryBytes.Since(w.Began, float64(total.Bytes[direction]), with(s.labels, name)...))
			}
		}
		for what, at := range w.Data.succession.changedAt {
			if at > 0 {
				emit(e.families.change.Value(at, with(s.labels, changeNames[what])...))
			}
		}
		for k, name := range sampledNames {
			if sum, ok := w.Data.variance[k].Sum(); ok {
				emit(e.families.samplingVariance.Value(sum, with(s.labels, name)...))
			}
		}
	})
	watchedSlots := map[uint32][]string{}
	for sl := range e.slots.All() {
		if sl.watched == nil || sl.watched.ended || e.overhead.now.level >= sampling.SampledSums {
			continue
		}
		labels := with(workloadValues(sl.Workload), strconv.Itoa(sl.watched.pid), sl.watched.comm)
		watchedSlots[sl.Number] = labels
		e.emitSubject(subject{labels: labels, process: true, total: &sl.counts, gauge: sl.gauge}, emit)
	}
	e.emitErrors(watchedSlots, emit)
	e.emitSelf(emit)
}

// directionNames are the values of the label direction.
var directionNames = [directions]string{bytesIn: "in", bytesOut: "out"}

// emitSubject emits all families of one workload or process. A family without an attached probe is absent. Zero counts
// are emitted, except by system call, reason and operation, where most counts are zero.
func (e *emission) emitSubject(s subject, emit emitFunc) {
	f, t := e.families, s.total
	value := func(fam family, v float64, labels ...string) {
		if len(labels) == 1 {
			emit(fam.of(s).With(s.began, v, s.labels, labels[0]))
			return
		}
		emit(fam.of(s).Since(s.began, v, with(s.labels, labels...)...))
	}
	counted := func(probe string, fam family, n uint64, labels ...string) {
		if n > 0 && e.kernel.attached(probe) {
			value(fam, float64(n), labels...)
		}
	}
	if e.kernel.attached("syscall") {
		eachCall(&t.Calls, func(name string, n uint64) { value(f.syscalls, float64(n), name) })
	}
	if e.kernel.timed() && e.kernel.attached("syscall") {
		times := t.callNS()
		eachCall(&times, func(name string, ns uint64) { value(f.syscallSeconds, seconds(ns), name) })
		if s.kind.RunsPrograms() {
			value(f.waitOutside, seconds(times[callCpuWait]))
			value(f.ioOutside, seconds(times[callIoWait]))
		}
		if !s.process {
			e.emitDurations(s, emit)
		}
	}
	value(f.switches, float64(t.Switches[0]), "voluntary")
	value(f.switches, float64(t.Switches[1]), "involuntary")
	if e.kernel.attached("cpu_migration") {
		value(f.migrations, float64(t.Migrations))
	}
	for reason, name := range faultReasonNames {
		counted("page_fault_user", f.faults, t.Faults[0][reason], "user", name)
		counted("page_fault_kernel", f.faults, t.Faults[1][reason], "kernel", name)
	}
	value(f.faultsHandled, float64(t.MinorFaults), "minor")
	value(f.faultsHandled, float64(t.MajorFaults), "major")
	for op, name := range cacheOpNames {
		counted("page_cache_"+name, f.pageCache, t.Cache[op], name)
	}
	if e.kernel.attached("llc_references") {
		value(f.llcReferences, float64(t.LLCReferences))
	}
	if e.kernel.attached("llc_misses") {
		value(f.llcMisses, float64(t.LLCMisses))
	}
	e.emitUse(s, value)
	if s.kind != workload.Idle && e.kernel.waits {
		e.emitWaits(s, emit)
	}
	e.emitBlocks(s, emit)
	value(f.forks, float64(t.Forks))
	value(f.starts, float64(t.Threads))
	value(f.execs, float64(t.Execs))
	if e.kernel.attached("exit") {
		value(f.exits, float64(t.Exits))
	}
}

// emitUse emits the CPU time, processes, threads and memory of a subject. The kernel has no run time of its idle
// threads and does not list them, and kernel threads have no memory of their own. These samples are absent.
func (e *emission) emitUse(s subject, value func(family, float64, ...string)) {
	f, t := e.families, s.total
	if s.kind == workload.Idle {
		return
	}
	if e.kernel.waits {
		value(f.wait, seconds(t.DelayNS))
	}
	value(f.cpuSeconds, seconds(t.cpu.user), "user")
	value(f.cpuSeconds, seconds(t.cpu.system), "system")
	value(f.processes, float64(s.gauge.Processes))
	value(f.threads, float64(s.gauge.Threads))
	if s.kind != workload.Kernel {
		value(f.resident, float64(s.gauge.RSSPages)*float64(os.Getpagesize()))
	}
}

func (e *emission) emitErrors(labels map[uint32][]string, emit emitFunc) {
	if len(labels) == 0 {
		return
	}
	type failure struct {
		slot        uint32
		call, error string
	}
	failed := map[failure]uint64{} // all calls without a name have one entry
	var key errorKey
	var n uint64
	for entries := e.kernel.callErrors.Iterate(); entries.Next(&key, &n); {
		if labels[key.Slot] != nil {
			failed[failure{key.Slot, callName(int(key.Call)), errnoName(key.Error)}] += n
		}
	}
	for of, n := range failed {
		emit(e.families.syscallErrors.Value(float64(n), with(labels[of.slot], of.call, of.error)...))
	}
}

func errnoName(e uint16) string {
	if name := unix.ErrnoName(unix.Errno(e)); name != "" {
		return name
	}
	return fmt.Sprintf("%d", e) // internal to the kernel, such as ERESTARTSYS (512)
}

func (e *emission) emitSelf(emit emitFunc) {
	f := e.families
	emit(f.workloads.Value(float64(e.slots.Registry.Len()), "named"))
	emit(f.workloads.Value(float64(e.slots.Registry.Folded()), "folded"))
	emit(f.slots.Value(float64(e.slots.Len()), "used"))
	emit(f.slots.Value(float64(e.kernel.slots-e.slots.Len()), "free"))
	for i, what := range []string{"slots", "pids", "errors", "switches", "requests", "durations"} {
		emit(f.lost.Value(float64(e.kernel.losses[i]), what))
	}
	status := make([]bpf.Status, len(e.kernel.status))
	for i, s := range e.kernel.status {
		status[i] = e.kernel.current(s)
	}
	for _, s := range e.kernel.start {
		emit(f.start.Value(s.took.Seconds(), s.name))
	}
	missed := e.probes.Emit(e.kernel.object, status, emit)
	e.emitLevel(e.overhead.misses.update(missed, time.Now()), emit)
	e.emitOverhead(emit)
}

// emitLevel emits the level of watching. The level is not full if the kernel missed runs of programs.
func (e *emission) emitLevel(missed bool, emit emitFunc) {
	now := levelShown(e.overhead.now.level, missed)
	for _, name := range levelsShown() {
		is := 0.0
		if name == now {
			is = 1
		}
		emit(e.families.level.Value(is, name))
	}
}

// emitOverhead emits the cost of counting, the budget and the level.
func (e *emission) emitOverhead(emit emitFunc) {
	f, g := e.families, &e.overhead.governor
	for k, name := range sampledNames {
		if sum, ok := e.slots.variance[k].Sum(); ok {
			emit(f.samplingSumVariance.Value(sum, name))
		}
	}
	for probe, ratio := range ratios(e.slots.sampler) {
		emit(f.samplingRatio.Value(ratio, probe))
	}
	if g.Limited() {
		emit(f.budget.Value(g.Limit()))
	}
	for event := range sampling.Events {
		if m := e.kernel.startCosts; m != nil && m.with[event] > 0 {
			emit(f.loop.Value(m.without[event]/1e9, event.String(), "absent"))
			emit(f.loop.Value(m.with[event]/1e9, event.String(), "attached"))
		}
	}
	if cost := e.kernel.switches.measured(); cost > 0 {
		emit(f.attaching.Value(cost.Seconds()))
	}
	if e.overhead.meter.At.IsZero() || g.Demand == (sampling.Demand{}) {
		return
	}
	emit(f.selfCost.Value(g.Spent(e.slots.sampler.Ratio()), "probes"))
	emit(f.selfCost.Value(g.Demand.Agent/float64(g.CPUs), "agent"))
	c := &g.Demand.Costs
	for event := range sampling.Events {
		if c.Path[event] > 0 || c.Program[event] > 0 {
			emit(f.eventCost.Value(c.KernelPath(event).Seconds(), event.String(), "kernel"))
		}
		if c.Program[event] > 0 {
			emit(f.eventCost.Value(c.Program[event].Seconds(), event.String(), "program"))
		}
	}
}
