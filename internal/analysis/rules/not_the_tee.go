// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/lib/text"
)

// NotTheTEE names the rule of this file.
const NotTheTEE = "not-the-tee"

const (
	// stalledMemory is the least share of the time in which some task waits for memory. Proposed.
	stalledMemory = 0.10
	// majorFaults is the least rate of the workload's own page faults that wait for a device. Below it, the machine's
	// lack of memory does not affect the workload. Proposed.
	majorFaults = 10
	// waitForOthers is the least share of the time waited for a CPU in the time waited and used. Proposed.
	waitForOthers = 0.30
	// stolen is the least share of the CPUs that the hypervisor gives to others. Proposed.
	stolen = 0.10
	// disksStall is the least share of the time in which all tasks of the container wait for disks. Proposed, as for memory.
	disksStall = 0.10
	// epcPaging is the rate of enclave pages loaded back from which the TEE pages as well. Proposed.
	epcPaging = 1000
)

// Signals of this rule alone.
var (
	pressureSignal = engine.Signal{
		Name: "pressure", Query: "max by (instance) (rate(node_pressure_memory_waiting_seconds_total[$window]))", Unit: "ratio",
		Help: "share of the time in which some task on the machine waited for memory (PSI)",
	}
	ownPressureSignal = engine.Signal{
		Name: "own_pressure", Query: ofContainer("max", "rate(container_pressure_memory_waiting_seconds_total[$window])"), Unit: "ratio",
		Help: "the same for the workload's container",
	}
	swapSignal = engine.Signal{
		Name: "swap", Unit: "1/s", Help: "pages swapped in and out on the machine",
		Query: "sum by (instance) (rate(node_vmstat_pswpin[$window]) + rate(node_vmstat_pswpout[$window]))",
	}
	stealSignal = engine.Signal{
		Name: "steal", Query: machinePerSecond(`node_cpu_seconds_total{mode="steal"}`), Unit: "cores", Help: "CPUs that the hypervisor gave to others",
	}
	usersSignal = engine.Signal{
		Name: "users", Unit: "cores", Help: "CPUs that the largest workloads of the machine use, and teescope itself",
		Query: "topk by (instance) (4, " + ofUser("") + ") or " + ofUser(`workload=~"teescope.*"`),
	}
	latencySignal = engine.Signal{
		Name: "latency", Unit: "seconds", PerEvent: true, Help: "mean time of a read or write of each device that is at work",
		Query: "sum by (instance, device) (rate(node_disk_read_time_seconds_total[$window]) + rate(node_disk_write_time_seconds_total[$window])) / " +
			"(sum by (instance, device) (rate(node_disk_reads_completed_total[$window]) + rate(node_disk_writes_completed_total[$window])) > 0)",
	}
)

// Thresholds that the configuration can replace.
var (
	othersWait  = engine.Threshold{Name: "wait", Default: waitForOthers, Unit: "ratio", Help: "minimum share of the time waited for a CPU"}
	othersDisks = engine.Threshold{Name: "disks", Default: disksStall, Unit: "ratio", Help: "minimum share of the time in which all tasks of the container wait for disks"}
	othersSteal = engine.Threshold{Name: "stolen", Default: stolen, Unit: "ratio", Help: "minimum share of the CPUs that the hypervisor gives to others"}
)

func notTheTEE() engine.Rule {
	return engine.Rule{
		Name: NotTheTEE, Title: "not the TEE: the host lacks memory or CPU time, or disks or networks are slow",
		Code:        codelink.CPU,
		CompetesFor: analysis.SharedCPU,
		Thresholds:  []engine.Threshold{othersWait, othersSteal, othersDisks},
		Signals: []engine.Signal{
			teeSignal, cpuSignal, waitSignal, threadsSignal, coresSignal, idleSignal, pressureSignal,
			ownPressureSignal, majorFaultsSignal, swapSignal, stealSignal, loadedSignal, usersSignal,
			ownIOSomeSignal, ownIOFullSignal, machineIOSignal, stalledSignal, latencySignal,
			retransmitsSignal, segmentsSignal, dropsSignal, allNetCallsSignal, ownNetCallsSignal,
			bounceFailuresSignal, bounceBytesSignal, bounceAllSignal,
		},
		Judge: judgeNotTheTEE,
		NotWhen: []string{
			"enclave memory itself fills the machine: evicted enclave pages are stored in ordinary memory",
			"the workload waits for its clients anyway",
			"the disk is slow because of the enclave itself: protected files write each block again with its hashes",
		},
		Sources: []string{
			"kernel: Documentation/accounting/psi.rst",
			"Mathis et al., CCR 1997: throughput of TCP with losses",
			"TEEMon, Middleware 2020, 6.5: faults and switches of the whole host beside those of the process",
		},
	}
}

// judgeNotTheTEE judges only workloads in a TEE. Elsewhere no user would blame a TEE.
func judgeNotTheTEE(w engine.Workload) *engine.Verdict {
	if !environmentOf(w).protected() {
		return nil
	}
	for _, judge := range []func(engine.Workload) *engine.Verdict{hostReclaim, slowDisks, stolenTime, busyNeighbours, lossyNetwork} {
		if v := judge(w); v != nil {
			return v
		}
	}
	return nil
}

// hostReclaim returns a verdict if the machine or the container lacks memory and that slows the workload.
func hostReclaim(w engine.Workload) *engine.Verdict {
	machine, measured := w.Value(pressureSignal)
	own, measuredOwn := w.Value(ownPressureSignal)
	major, _ := w.Value(majorFaultsSignal)
	pressure, evidence := machine, []string{pressureSignal.Name, majorFaultsSignal.Name, ownPressureSignal.Name, swapSignal.Name, loadedSignal.Name}
	switch {
	case measuredOwn && own >= w.Least(stalledMemory):
		pressure, evidence[0], evidence[2] = own, ownPressureSignal.Name, pressureSignal.Name
	case measured && machine >= w.Least(stalledMemory) && major >= w.Least(majorFaults):
	default:
		return nil
	}
	v := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("not the TEE: some task waits for the host's memory for %s of the time, and the workload has %s page faults/s that wait for a device",
			text.Percent(pressure), figure(major)),
		Evidence: evidence,
		Advice: []string{
			"give the host or the container more memory, or move other workloads away: changing the enclave will not help",
			"find what uses it: teescope_resident_memory_bytes by workload, and the page cache",
		},
		Gain: estimate.Amdahl("the memory of the host or of its container", 0, pressure, "at best no task waits for memory",
			"the workload waits whenever any task on the machine does"),
		Supersedes: []string{PageFaultStorm, ContextSwitchStorm},
	}
	if loads, _ := w.Value(loadedSignal); loads >= epcPaging {
		v.Confidence = analysis.Possible
		v.Cause += fmt.Sprintf("; it also loads back %s enclave pages/s from that memory", figure(loads))
	}
	return v
}

// stolenTime returns a verdict if a hypervisor gives CPU time to other machines.
func stolenTime(w engine.Workload) *engine.Verdict {
	v, ok := figures(w, cpuSignal, stealSignal, coresSignal)
	if !ok || v[cpuSignal] < w.Least(leastBusy) || v[stealSignal] < w.LeastFor(othersSteal)*v[coresSignal] {
		return nil
	}
	return &engine.Verdict{
		Confidence: analysis.Likely,
		Cause:      fmt.Sprintf("not the TEE: the hypervisor gives %s of this machine's CPUs to others", text.Percent(v[stealSignal]/v[coresSignal])),
		Evidence:   []string{stealSignal.Name, coresSignal.Name, cpuSignal.Name, waitSignal.Name},
		Advice:     []string{"move the virtual machine to a less busy host, or reserve CPUs for it: changing the enclave will not help"},
		Gain:       estimate.Amdahl("the CPUs that the hypervisor gives it", 0, v[stealSignal]/v[coresSignal], "at best all CPUs run when they are ready, and the workload gets its share of the stolen time"),
	}
}

// busyNeighbours returns a verdict if other workloads use the CPUs that the threads need.
func busyNeighbours(w engine.Workload) *engine.Verdict {
	v, ok := figures(w, cpuSignal, waitSignal, threadsSignal, coresSignal, idleSignal)
	if !ok || v[cpuSignal] < w.Least(leastBusy) || v[idleSignal] > w.Most(engine.ScarceIdle)*v[coresSignal] {
		return nil
	}
	if v[waitSignal] < w.LeastFor(othersWait)*(v[cpuSignal]+v[waitSignal]) || v[cpuSignal] >= w.Most(ownShare)*(v[coresSignal]-v[idleSignal]) {
		return nil
	}
	return &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("not the TEE: the workload's threads wait for a CPU for %s of the time in which they could run, while others use %s of %s CPUs%s",
			text.Percent(v[waitSignal]/(v[cpuSignal]+v[waitSignal])), figure(v[coresSignal]-v[idleSignal]-v[cpuSignal]), figure(v[coresSignal]), otherUsers(w)),
		Evidence: []string{waitSignal.Name, cpuSignal.Name, coresSignal.Name, idleSignal.Name, threadsSignal.Name},
		Advice: []string{
			"move other workloads away, or give this one CPUs of its own (cpuset, a larger share): changing the enclave will not help",
			"find what uses the CPUs: topk(5, sum by (workload) (rate(teescope_cpu_seconds_total[1m])))",
		},
		Gain: estimate.Amdahl("the CPUs of the machine", 0, v[waitSignal]/(v[cpuSignal]+v[waitSignal]),
			"at best a ready thread runs at once, and CPU time limits the workload"),
		Supersedes: []string{ContextSwitchStorm, ThreadsOverCapacity, AEXStorm},
	}
}

// diskWait returns the share of the time in which all tasks of the container that have work wait for disks. A wait for memory
// that was swapped out counts as one for a disk too, and is omitted.
func diskWait(w engine.Workload) (share float64, known bool) {
	full, measured := w.Value(ownIOFullSignal)
	memory, told := w.Value(stalledSignal)
	return full - memory, measured && told
}

// slowDisks returns a verdict if the tasks of the container wait for disks, and not for room in the bounce buffers.
func slowDisks(w engine.Workload) *engine.Verdict {
	share, known := diskWait(w)
	if !known || share < w.LeastFor(othersDisks) || slices.Contains(withoutRoom(w, w.Least(bounceFails), w.Least(bounceUsers)), bounceStorage) {
		return nil
	}
	v := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause:      fmt.Sprintf("not the TEE: all its tasks that have work wait for disks for %s of the time", text.Percent(share)),
		Evidence:   []string{ownIOFullSignal.Name, stalledSignal.Name, ownIOSomeSignal.Name, machineIOSignal.Name},
		Advice: []string{
			"make it write and flush less often: group commits, append and flush once a second, a larger cache",
			"use a faster disk, or move others away from it: changing the enclave will not help",
		},
		Gain: estimate.Amdahl("its disks", 0, share, "at best no task waits for a disk", "the workload always has work for its tasks"),
	}
	devices := w.By(latencySignal, "device")
	if slowest := largest(devices, slices.Sorted(maps.Keys(devices))...); slowest != "" {
		v.Cause += fmt.Sprintf("; a read or write of %s, the slowest, takes %s ms", slowest, figure(1000*devices[slowest]))
		v.Evidence = append(v.Evidence, latencySignal.With("device", slowest))
	}
	return v
}

// lossyNetwork returns a verdict if the network loses segments or connections, and the workload makes most of the calls that
// wait for networks. What it costs the workload is not known.
func lossyNetwork(w engine.Workload) *engine.Verdict {
	own, _ := w.Value(ownNetCallsSignal)
	all, _ := w.Value(allNetCallsSignal)
	if own <= 0 || own < w.Least(mostCalls)*all {
		return nil
	}
	again, _ := w.Value(retransmitsSignal)
	sent, _ := w.Value(segmentsSignal)
	drops, _ := w.Value(dropsSignal)
	v := &engine.Verdict{Severity: analysis.Info, Confidence: analysis.Possible}
	switch {
	case again >= w.Least(resentLeast) && again >= w.Least(resent)*sent:
		v.Cause = fmt.Sprintf("not the TEE: %s TCP segments/s are sent again, %s of all that the machine sends", figure(again), text.Percent(again/max(sent, again)))
		v.Evidence = []string{retransmitsSignal.Name, segmentsSignal.Name}
		v.Advice = []string{"find where segments are lost: ss -ti shows the connections, and ethtool -S the device"}
	case drops >= w.Least(dropsLeast):
		v.Cause = fmt.Sprintf("not the TEE: %s connections/s are dropped because the program does not accept them in time", figure(drops))
		v.Evidence = []string{dropsSignal.Name}
		v.Advice = []string{"raise the program's backlog of listen and net.core.somaxconn, or accept in more threads: ss -lt shows the queues"}
	default:
		return nil
	}
	v.Cause += ", and this workload makes most of the calls that wait for networks"
	v.Evidence = append(v.Evidence, ownNetCallsSignal.Name, allNetCallsSignal.Name)
	return v
}

// ofUser returns the CPU time of workloads as samples of the machine, with the workload in the label user.
func ofUser(matchers string) string {
	return `sum by (instance, user) (label_replace(rate(teescope_cpu_seconds_total{` + matchers + `}[$window]), "user", "$1", "workload", "(.*)"))`
}

// otherUsers names the largest other users of CPU time, and teescope itself.
func otherUsers(w engine.Workload) string {
	by := w.By(usersSignal, "user")
	delete(by, w.Name)
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b))
	})
	var list []string
	for i, name := range names {
		if by[name] > 0 && (i < 3 || strings.HasPrefix(name, "teescope")) {
			list = append(list, name+" "+figure(by[name]))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return ": " + strings.Join(list, ", ")
}
