// SPDX-License-Identifier: Apache-2.0

package system

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

//go:embed system.bpf.o
var object []byte

// probes lists the probes in the order in which they are attached. Processes come first, because a process needs a slot
// before it is counted. Context switches come second, because a CPU must know its slot before it counts.
func probes(o Options, p preemption) []bpf.Probe {
	required := func(p bpf.Probe) bpf.Probe { p.Required = true; return p }
	list := []bpf.Probe{
		required(bpf.Tracepoint("fork", "sched_process_fork")),
		required(bpf.Tracepoint("exec", "sched_process_exec")),
		bpf.Tracepoint("exit", "sched_process_exit"),
		bpf.Tracepoint("cgroup_attach", "cgroup_attach_task"),
		required(bpf.Tracepoint("context_switch", "sched_switch")),
		bpf.Tracepoint("syscall", "sys_enter"),
		bpf.Tracepoint("cpu_migration", "sched_migrate_task"),
		bpf.Tracepoint("oom_kill", "mark_victim"),
		bpf.Tracepoint("page_fault_user", "page_fault_user"),
		bpf.Tracepoint("page_fault_kernel", "page_fault_kernel"),
		bpf.Tracepoint("page_cache_insertion", "mm_filemap_add_to_page_cache"),
		{Name: "page_cache_access", Ways: accessWays(p)},
		{Name: "page_cache_dirty_page", Ways: []bpf.Way{
			bpf.TracepointWay("writeback_dirty_folio", ""), // from 5.18
			bpf.TracepointWay("writeback_dirty_page", ""),
		}},
		bpf.Tracepoint("page_cache_dirty_buffer", "block_dirty_buffer"),
	}
	list = append(list, blockProbes()...)
	if o.timesCalls() || o.countsErrors() {
		list = append(list, bpf.Tracepoint(exitProbe, "sys_exit"))
	}
	return list
}

// accessWays lists the ways to count the pages that reads get from the page cache. The tracepoint exists from 6.11 on. A
// kprobe costs more than a program on the function, and loses no events where threads preempt each other in the kernel.
func accessWays(p preemption) []bpf.Way {
	ways := []bpf.Way{bpf.TracepointWay("mm_filemap_get_pages", "")}
	mechanisms := []bpf.Mechanism{bpf.Fentry, bpf.Kprobe}
	if p.functions {
		slices.Reverse(mechanisms)
	}
	const read = "filemap_read"
	for _, m := range mechanisms {
		ways = append(ways, bpf.Way{Program: read + "_" + string(m), Mechanism: m, Target: read, Note: "counts no sendfile and splice on 6.5 to 6.10"})
	}
	return ways
}

// stages measures consecutive stages of the start.
type stages struct {
	all  []stage
	last time.Time
}

func (s *stages) end(name string) {
	now := time.Now()
	s.all, s.last = append(s.all, stage{name, now.Sub(s.last)}), now
}

type sizes struct {
	cpus, slots, pids int
	controller        int32
}

// load creates the maps, attaches the probes and gives slots to all running processes.
func load(o Options, s sizes) (*kernelSide, error) {
	timer := stages{last: time.Now()}
	k, err := prepare(o, s)
	if err != nil {
		return nil, err
	}
	defer k.object.Loaded()
	timer.end("maps")
	if err := k.attach(o, s); err != nil {
		return nil, errors.Join(err, k.object.Close())
	}
	timer.end("programs")
	if !o.SyscallTime && len(o.Watch) == 0 {
		k.attachExits(false, notWantedReason) // its cost was measured
	}
	if o.SyscallTime {
		if err := k.setTimed(true); err != nil {
			return nil, errors.Join(err, k.object.Close())
		}
	}
	k.start = timer.all
	return k, nil
}

// prepare creates the maps. It attaches nothing.
func prepare(o Options, s sizes) (*kernelSide, error) {
	obj, err := bpf.Open(object)
	if err != nil {
		return nil, err
	}
	k := &kernelSide{object: obj, slots: s.slots, sys: hostfs.At(o.Sys), preemption: readPreemption(hostfs.At(o.Proc), hostfs.At(o.Sys)), switches: newSwitches(obj, o.Log)}
	for _, step := range []func() error{
		func() error { return k.size(o, s) }, obj.CreateMaps, k.mapArrays,
		func() (err error) { k.waits, err = obj.KernelHas("sched_info", "run_delay"); return err },
	} {
		if err := step(); err != nil {
			obj.Loaded()
			return nil, errors.Join(err, obj.Close())
		}
	}
	return k, nil
}

func (k *kernelSide) size(o Options, s sizes) error {
	times, inFlight, failed, distributions, starts := 1, 1, 1, 1, 1
	pidPages := (s.pids + pidsPerPage - 1) / pidsPerPage
	if o.timesCalls() {
		times, inFlight = s.cpus*s.slots, pidPages
	}
	if o.countsErrors() {
		failed = maxErrors
	}
	if o.distributesCalls() {
		distributions, starts = watchedPlaces*calls, restartedCalls
	}
	var errs []error
	for name, entries := range map[string]int{
		"rows": s.cpus * s.slots, "times": times, "cpus": s.cpus,
		"slot_of_pid": pidPages, "calls_in_flight": inFlight,
		"watched_slots": s.slots, "gauges": s.slots, "blocks": s.slots,
		"whole_cgroups": maxWholeCgroups, "call_errors": failed, "durations": distributions, "call_starts": starts,
	} {
		errs = append(errs, k.object.Resize(name, entries))
	}
	errs = append(errs, attribution.Resize(k.object, s.slots))
	for name, value := range map[string]any{
		"slots": uint32(s.slots), "cpus_possible": uint32(s.cpus), "cgroup_controller": s.controller,
		"count_errors": o.countsErrors(), "time_calls": o.timesCalls(), "idle_calls": idleCalls(), "sample_period": uint64(counterPeriod),
	} {
		errs = append(errs, k.object.SetConstant(name, value))
	}
	return errors.Join(errs...)
}

// mapArrays maps the arrays into memory and initialises them.
func (k *kernelSide) mapArrays() error {
	var errs [12]error
	k.rows, errs[0] = bpf.View[row](k.object, "rows")
	k.times, errs[1] = bpf.View[rowTime](k.object, "times")
	k.cpus, errs[2] = bpf.View[cpuState](k.object, "cpus")
	k.pids, errs[3] = bpf.View[pidPage](k.object, "slot_of_pid")
	k.groups, errs[4] = attribution.Open(k.object, slotFirst)
	k.durations.watched, errs[8] = bpf.View[watchedSlot](k.object, "watched_slots")
	k.gauges, errs[5] = bpf.View[gauge](k.object, "gauges")
	k.losses, errs[6] = bpf.View[uint64](k.object, "losses")
	k.controls, errs[7] = bpf.View[control](k.object, ".data.controls")
	k.changes, errs[9] = bpf.View[changeRing](k.object, "changes")
	k.blocks, errs[10] = bpf.View[blockIO](k.object, "blocks")
	k.durations.records, errs[11] = bpf.View[callDurations](k.object, "durations")
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	k.controls[0].TimingSince, k.controls[0].RequestsSince = timingOff, math.MaxUint64
	k.programs = k.object.Map("program_names")
	k.wholeCgroups, k.callErrors = k.object.Map("whole_cgroups"), k.object.Map("call_errors")
	k.durations.starts = k.object.Map("call_starts")
	for i := range k.cpus {
		k.cpus[i].FirstRow, k.cpus[i].PID, k.cpus[i].Task = uint32(i*k.slots), pidUnknown, 0
		k.cpus[i].Row = k.cpus[i].FirstRow + slotUnknown
	}
	k.pids[0].Slot[0] = slotIdle
	k.sums = newSums(k)
	return nil
}

func (k *kernelSide) attach(o Options, s sizes) error {
	k.startCosts = newStartCosts(o.Log)
	for i, p := range probes(o, k.preemption) {
		if p.Name == "context_switch" {
			// Forks and execs are seen from here on. Processes that started earlier are on the list of tasks.
			if err := k.iterate(); err != nil {
				return err
			}
		}
		if k.needless(p.Name) {
			continue
		}
		status, err := k.startCosts.attached(k, p)
		if err != nil && p.Required {
			return fmt.Errorf("probe %d: %w", i, err)
		}
		k.status = append(k.status, status)
	}
	if err := seesRequests(k); err != nil {
		return err
	}
	k.startCosts.end(k)
	k.status = append(k.status, k.attachCounters(o)...)
	// Without snapshots, estimates are less exact: the CPU time of running threads is known only at their next switch.
	if snapshot, err := k.object.CallOn("snapshot_here"); err == nil {
		k.snapshot = func(cpu int) error { return snapshot(cpu) }
	}
	return nil
}
