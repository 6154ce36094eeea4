// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"math"
	"slices"

	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/text"
)

const (
	// saturated is the least share of the time for which a workload at its limit runs, or waits for what it needs to run.
	// Proposed: that of the busiest thread (engine).
	saturated = 0.85
	// worthNaming is the least share of the CPU time from which the cause is named instead of the CPU. Without it, the
	// throughput would rise by 20 %, which is the gain of a finding of high severity.
	worthNaming = 1.0 / 6
	// waitsNone is the largest share of the time in which some task waits, for that wait to be ruled out. Proposed.
	waitsNone = 0.25
	// lockedHalf is the least share of the time for which threads run, for a thread that holds a lock to be what others wait
	// for. Below it, the holder would itself wait for something most of the time. By definition.
	lockedHalf = 0.5
	// resent is the least share of TCP segments that are sent again. Mathis et al., CCR 1997: 2 % bound a connection with a
	// round trip of 1 ms and segments of 1460 bytes to 100 Mbit/s.
	resent = 0.02
	// resentLeast is the least rate of such segments. Proposed.
	resentLeast = 10
	// dropsLeast is the least rate of connections that were dropped because the program did not accept them. Proposed.
	dropsLeast = 1
	// linkFull is the least share of its speed at which a network device is a limit. Proposed.
	linkFull = 0.85
	// mostCalls is the least share of a workload in the calls that wait for networks, for the machine's figures to be about
	// it. By definition.
	mostCalls = 0.5
	// sleepsMost is the least part of the waits that are calls to sleep, for a program to sleep on purpose. By definition.
	sleepsMost = 0.5
	// hardlyRuns is the CPU time below which a workload is idle. Proposed.
	hardlyRuns = 0.01
)

// netCalls wait for networks. read and write are not among them, because they are for files too.
const netCalls = `epoll_wait|epoll_pwait|epoll_pwait2|poll|ppoll|select|pselect6|accept|accept4|recvfrom|recvmsg|recvmmsg|sendto|sendmsg|sendmmsg`

// diskCalls wait for files only.
const diskCalls = `fsync|fdatasync|sync_file_range|syncfs|sync|msync|pread64|pwrite64|preadv|pwritev|preadv2|pwritev2`

// sleepCalls end after a time, or when a process ends that the program has started.
var sleepCalls = []string{"nanosleep", "clock_nanosleep", "pause", "wait4", "waitid"}

// Signals of the limits alone.
var (
	busiestSignal = engine.Signal{
		Name: "busiest", Query: engine.BusiestQuery, Unit: "ratio", Help: "share of the time for which the busiest thread ran",
	}
	ownIOSomeSignal = engine.Signal{
		Name: "own_io", Query: ofContainer("max", "rate(container_pressure_io_waiting_seconds_total[$window])"), Unit: "ratio",
		Help: "share of the time in which some task of the container waited for input or output (PSI some)",
	}
	ownIOFullSignal = engine.Signal{
		Name: "own_io_full", Query: ofContainer("max", "rate(container_pressure_io_stalled_seconds_total[$window])"), Unit: "ratio",
		Help: "share of the time in which all its tasks that were not idle waited for input or output (PSI full)",
	}
	machineIOSignal = engine.Signal{
		Name: "io", Query: "max by (instance) (rate(node_pressure_io_waiting_seconds_total[$window]))", Unit: "ratio",
		Help: "share of the time in which some task on the machine waited for input or output (PSI some)",
	}
	diskTimeSignal = engine.Signal{
		Name: "disk_time", Query: perSecond(`teescope_syscall_seconds_total{syscall=~"` + diskCalls + `"}`), Unit: "threads",
		Help: "threads in system calls that wait for files, on average (--syscalls.time)",
	}
	retransmitsSignal = engine.Signal{
		Name: "retransmits", Query: machinePerSecond("node_netstat_Tcp_RetransSegs"), Unit: "1/s", Help: "TCP segments that the machine sent again",
	}
	segmentsSignal = engine.Signal{
		Name: "segments", Query: machinePerSecond("node_netstat_Tcp_OutSegs"), Unit: "1/s", Help: "TCP segments that the machine sent",
	}
	dropsSignal = engine.Signal{
		Name: "drops", Query: machinePerSecond("node_netstat_TcpExt_ListenDrops"), Unit: "1/s",
		Help: "connections that were dropped because no program accepted them in time",
	}
	linkSignal = engine.Signal{
		Name: "link", Unit: "ratio", Help: "share of its speed that the busiest network device sends or receives",
		Query: "max by (instance) ((rate(node_network_transmit_bytes_total[$window]) / on (instance, device) (node_network_speed_bytes > 0)) or " +
			"(rate(node_network_receive_bytes_total[$window]) / on (instance, device) (node_network_speed_bytes > 0)))",
	}
	allNetCallsSignal = engine.Signal{
		Name: "net_calls", Query: machinePerSecond(`teescope_syscalls_total{syscall=~"` + netCalls + `"}`), Unit: "1/s",
		Help: "calls of all workloads that wait for networks",
	}
	ownNetCallsSignal = engine.Signal{
		Name: "own_net_calls", Query: perSecond(`teescope_syscalls_total{syscall=~"` + netCalls + `"}`), Unit: "1/s",
		Help: "calls of the workload that wait for networks",
	}
)

// Limits states what limits each workload: Brendan Gregg's USE method (utilisation and saturation of each resource) and his
// Thread State Analysis (the state in which most time is spent), with the pressure of the kernel's psi.rst.
func Limits() *engine.Limiter {
	return &engine.Limiter{
		Signals: []engine.Signal{
			teeSignal, cpuSignal, threadsSignal, busiestSignal, waitSignal, coresSignal, idleSignal, throttledSignal, stoppedSignal,
			ownIOSomeSignal, ownIOFullSignal, machineIOSignal, diskTimeSignal, stalledSignal, pressureSignal, callsSignal, waitsSignal,
			futexTimeSignal, transitionsSignal, loadedSignal, machineLoadedSignal, stallSignal, enclaveWorkloadsSignal,
			retransmitsSignal, segmentsSignal, dropsSignal, linkSignal, allNetCallsSignal, ownNetCallsSignal,
		},
		State: func(w engine.Workload, found []string) engine.Statement { return spend(w).state(found) },
	}
}

// A spending is how a workload spends its time. What was not measured is NaN.
type spending struct {
	engine.Workload
	e      environment
	run    float64 // cores
	wait   float64 // threads that wait for a CPU
	pages  float64 // evicted enclave pages that are loaded back each second
	epc    float64 // threads that wait for them
	active float64 // share of the time for which the busiest thread runs, or waits for a CPU or an enclave page
	at     bool    // active is at most this share, not about it
	memory float64 // share of the time in which all tasks wait for memory
	disk   float64 // the same for disks
	calm   bool    // whether it waits for memory was measured
	paged  bool    // whether it waits for enclave pages was measured
	some   float64 // share of the time in which at least one task waits for a disk, at most
}

func spend(w engine.Workload) spending {
	s := spending{Workload: w, e: environmentOf(w), run: w.Load.Cores, wait: orZero(w.Load.Wait), disk: math.NaN(), some: math.NaN()}
	s.memory, s.calm = w.Value(stalledSignal)
	if machine, measured := w.Value(pressureSignal); measured && machine < waitsNone {
		s.calm = true
	}
	s.paged = true
	if s.e.enclave() || !s.e.known() {
		var counted, timed bool
		s.pages, _, counted = loadedBack(w)
		s.epc, timed = stalled(w, s.pages)
		machine, all := w.Value(machineLoadedSignal)
		s.paged = timed || counted && s.pages < pagingPages || all && machine < pagingPages || !counted && !s.e.known()
	}
	all := s.run + s.wait + s.epc
	switch {
	case !math.IsNaN(w.Load.Busiest) && s.run > 0:
		s.active = min(1, w.Load.Busiest*all/s.run)
	default:
		s.active, s.at = min(1, all), true
	}
	if w.Load.Threads >= 1 && all >= saturated*w.Load.Threads {
		s.active, s.at = min(1, all/w.Load.Threads), false
	}
	s.readDisk()
	return s
}

func orZero(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

// readDisk reads the waits for disks. Waiting for swapped memory counts as both, and is a wait for memory.
func (s *spending) readDisk() {
	if full, measured := s.Value(ownIOFullSignal); measured {
		s.disk = max(0, full-s.memory)
	}
	if some, measured := s.Value(ownIOSomeSignal); measured {
		s.some = some
	} else if some, measured := s.Value(machineIOSignal); measured && some < waitsNone {
		s.some, s.disk = some, 0 // no task of the workload waits more than all tasks of the machine
	}
	if timed, measured := s.Value(diskTimeSignal); measured && s.Load.Threads == 1 {
		s.disk = max(orZero(s.disk), min(1, timed)) // of several threads, one may write in the background
		s.some = max(orZero(s.some), s.disk)
	}
}

// state decides in this order: what stops the workload, where the time of a saturated workload goes, what it waits for
// otherwise.
func (s spending) state(found []string) engine.Statement {
	if math.IsNaN(s.run) {
		return unknown("its CPU time was not measured")
	}
	if s.Load.Throttled >= engine.ThrottledPeriods {
		return said(engine.LimitQuota, "its CPU quota stops it in "+text.Percent(s.Load.Throttled)+" of the periods", throttledSignal, stoppedSignal, cpuSignal)
	}
	if s.active+s.memory+orZero(s.disk) >= saturated {
		return s.atLimit(found)
	}
	return s.belowLimit()
}

// atLimit names what takes most of the time of a workload that always runs or waits for a resource.
func (s spending) atLimit(found []string) engine.Statement {
	switch most := max(s.active, s.memory, orZero(s.disk)); {
	case s.memory >= most:
		return said(engine.LimitMemory, "all its tasks wait for memory for "+text.Percent(s.memory)+" of the time", stalledSignal, pressureSignal)
	case s.disk >= most && !s.calm:
		return unknown("it waits for disks, and whether it waits for memory that was swapped out is not measured", ownIOFullSignal, diskTimeSignal, cpuSignal)
	case s.disk >= most:
		signal := ownIOFullSignal
		if _, measured := s.Value(signal); !measured {
			signal = diskTimeSignal
		}
		return said(engine.LimitDisk, "it waits for disks for "+text.Percent(s.disk)+" of the time", signal, ownIOSomeSignal, machineIOSignal, cpuSignal)
	}
	if v, ok := s.pagingTakes(); ok {
		return v
	}
	if s.spins(found) {
		return unknown("some of its threads poll or spin, so a busy thread shows no limit", busiestSignal, cpuSignal)
	}
	if exits, counted := exitsOf(s.Workload); counted && s.e.enclave() {
		if low, _ := shares(s.Workload, s.OCALL, exits, s.run); low >= worthNaming {
			return engine.Statement{
				Limit:    engine.LimitBoundary,
				Because:  fmt.Sprintf("it is busy, and leaves the enclave %s times/s, which takes at least %s of its CPU time", figure(exits), text.Percent(low)),
				Evidence: []string{transitionsSignal.With("kind", "eexit"), busiestSignal.Name, cpuSignal.Name},
			}
		}
	}
	if limit := s.Load.Limit(0, false); limit != "" {
		if s.wait >= engine.ScarceWait*s.run {
			return said(engine.LimitCPU, limit, waitSignal, busiestSignal, threadsSignal, cpuSignal, idleSignal)
		}
		return said(engine.LimitCPU, limit, busiestSignal, threadsSignal, cpuSignal, waitSignal, idleSignal)
	}
	if s.wait >= s.run {
		return said(engine.LimitCPU, figure(s.wait)+" of its threads wait for a CPU, and "+figure(s.run)+" run", waitSignal, cpuSignal, idleSignal)
	}
	if s.at {
		return s.perhapsLocks("it uses " + figure(s.run) + " CPUs, and the load of its busiest thread is not known: one thread may be at its limit")
	}
	return unknown("it runs or waits for a CPU or a disk all the time, and none of these alone for most of it", cpuSignal, waitSignal, ownIOFullSignal)
}

// pagingTakes returns a statement if loading back evicted pages takes a worthwhile share of the time.
func (s spending) pagingTakes() (engine.Statement, bool) {
	loading := fmt.Sprintf("%s evicted enclave pages are loaded back each second, which takes at least ", figure(s.pages))
	share := s.epc / (s.epc + s.run)
	evidence := []engine.Signal{stallSignal, loadedSignal, machineLoadedSignal, cpuSignal}
	if s.epc == 0 {
		low, _ := cost.Paging.CPU(s.pages/2, s.Clock) // another CPU may evict the pages
		share, evidence = low/s.run, evidence[1:]
	}
	return said(engine.LimitEPC, loading+text.Percent(share)+" of its time", evidence...), share >= worthNaming
}

// spins reports whether threads of the workload poll or spin.
func (s spending) spins(found []string) bool {
	if slices.Contains(found, PollingLoop) {
		return true
	}
	calls := total(callsOf(s.Workload))
	exits, counted := exitsOf(s.Workload)
	return s.e.enclave() && counted && calls >= exitlessCalls && calls >= exitlessOn*exits
}

// belowLimit returns what a workload waits for if it is below its limit.
func (s spending) belowLimit() engine.Statement {
	runs := "it runs or waits for a CPU for at most " + text.Percent(s.active) + " of the time"
	switch {
	case math.IsNaN(s.Load.Wait):
		return unknown("its wait for CPUs is not measured", cpuSignal, busiestSignal)
	case math.IsNaN(s.some):
		return unknown(runs+", and its own wait for disks is not measured", cpuSignal, machineIOSignal)
	case !s.calm:
		return unknown(runs+", and its own wait for memory is not measured", cpuSignal, pressureSignal)
	case !s.paged:
		return unknown(runs+", and its wait for evicted enclave pages is not measured", cpuSignal, loadedSignal)
	case s.some >= waitsNone:
		return unknown("at least one of its tasks waits for a disk for "+text.Percent(s.some)+" of the time, and whether its work waits for that task is not known",
			ownIOSomeSignal, ownIOFullSignal, cpuSignal)
	case s.run+s.wait >= lockedHalf && s.parks():
		return s.perhapsLocks("its threads sleep in futex, and whether they wait for work or for each other is not known")
	}
	if v, lost := s.network(); lost {
		return v
	}
	if v, queues := s.queues(); queues {
		return v
	}
	calls := callsOf(s.Workload)
	call := largest(calls, clientCalls...)
	switch {
	case calls[call] > 0:
		return engine.Statement{
			Limit: engine.LimitClients, Because: runs + ", and otherwise waits in " + call + " for clients or for servers that it asks" + s.unseenLosses(),
			Evidence: []string{callsSignal.With("syscall", call), busiestSignal.Name, cpuSignal.Name, ownIOSomeSignal.Name, machineIOSignal.Name, retransmitsSignal.Name},
		}
	case s.sleeps(calls):
		return engine.Statement{
			Limit: engine.LimitIdle, Because: runs + ", and otherwise sleeps on purpose or waits for its own processes",
			Evidence: []string{callsSignal.With("syscall", largest(calls, sleepCalls...)), waitsSignal.Name, busiestSignal.Name, cpuSignal.Name, ownIOSomeSignal.Name, machineIOSignal.Name},
		}
	case s.run <= hardlyRuns:
		return said(engine.LimitIdle, "it uses "+figure(s.run)+" CPUs, and waits for no CPU, disk or memory", cpuSignal, waitSignal, ownIOSomeSignal, machineIOSignal)
	default:
		return unknown(runs+", and the calls that it waits in are not known: --syscalls.time measures them", cpuSignal, busiestSignal)
	}
}

// sleeps reports whether most waits are calls in which a program sleeps on purpose, or waits for processes that it has started.
func (s spending) sleeps(calls map[string]float64) bool {
	waits, measured := s.Value(waitsSignal)
	asleep := sumOf(calls, sleepCalls...)
	return measured && asleep > 0 && asleep >= sleepsMost*waits
}

// queues returns a statement if the busiest thread waits longer for a CPU than for anything else. While its load is only bounded,
// several threads may share the wait, each of which sleeps longer: then neither is shown.
func (s spending) queues() (engine.Statement, bool) {
	all := s.run + s.wait + s.epc
	if s.wait <= 0 || s.active*s.wait/all <= 1-s.active {
		return engine.Statement{}, false
	}
	queued := text.Percent(s.active * s.wait / all)
	if s.at && s.Load.Threads != 1 {
		return unknown("it waits for a CPU for at most "+queued+" of the time, and it is not known whether a single thread waits longer for a CPU than for clients",
			waitSignal, busiestSignal, threadsSignal, cpuSignal, idleSignal), true
	}
	return said(engine.LimitCPU, "it waits for a CPU for "+queued+" of the time, and for other things for "+text.Percent(1-s.active),
		waitSignal, busiestSignal, threadsSignal, cpuSignal, idleSignal), true
}

// unseenLosses says that losses of the network were not measured, where that is so.
func (s spending) unseenLosses() string {
	if _, measured := s.Value(retransmitsSignal); measured {
		return ""
	}
	return "; losses of the network were not measured"
}

// parks reports whether much of the calls are futex calls that put threads to sleep. What was not measured does not rule it
// out.
func (s spending) parks() bool {
	calls := callsOf(s.Workload)
	waits, measured := s.Value(waitsSignal)
	if !measured {
		waits = math.Inf(1)
	}
	return !(s.Load.Threads < lockThreads) && calls["futex"] >= futexPerSecond && calls["futex"] >= futexShare*total(calls) &&
		waits >= futexWaits*calls["futex"]
}

// contends reports whether threads wait for each other: most calls are futex calls that put threads to sleep, hardly any
// wait for clients, some thread always runs, and CPUs are idle. That is also true of threads that wait for clients in read and
// take a lock for each request. What rules these out is the time in futex: timed says whether at least as many threads wait
// there as run.
func (s spending) contends() (perhaps, timed bool) {
	calls := callsOf(s.Workload)
	if _, counted := s.Value(waitsSignal); !counted || math.IsNaN(s.Load.Threads) {
		return false, false
	}
	clients := sumOf(calls, clientCalls...)
	if !s.parks() || !serialised(s.Workload, calls["futex"], total(calls), clients) || !(s.Load.Idle >= 1) {
		return false, false
	}
	time, measured := s.Value(futexTimeSignal)
	return !measured || time >= s.run, measured && time >= s.run
}

// perhapsLocks names locks if threads contend, and otherwise the reason why the limit is unknown.
func (s spending) perhapsLocks(otherwise string) engine.Statement {
	perhaps, timed := s.contends()
	switch {
	case timed:
		calls := callsOf(s.Workload)
		time, _ := s.Value(futexTimeSignal)
		return engine.Statement{
			Limit: engine.LimitLocks,
			Because: fmt.Sprintf("%s of its %s threads wait in futex: %s of their calls are futex, %s/s, and together they run on %s CPUs while others are idle",
				figure(time), figure(s.Load.Threads), text.Percent(calls["futex"]/total(calls)), figure(calls["futex"]), figure(s.run)),
			Evidence: []string{callsSignal.With("syscall", "futex"), waitsSignal.Name, threadsSignal.Name, cpuSignal.Name, idleSignal.Name, futexTimeSignal.Name},
		}
	case perhaps:
		return unknown("its threads may wait for each other or for work: --syscalls.time measures the time in futex", callsSignal, waitsSignal, threadsSignal, cpuSignal)
	}
	return unknown(otherwise, cpuSignal, threadsSignal, waitsSignal, futexTimeSignal)
}

// network returns a statement if the machine's network loses segments or connections, or a device is full.
func (s spending) network() (v engine.Statement, lost bool) {
	own, _ := s.Value(ownNetCallsSignal)
	all, _ := s.Value(allNetCallsSignal)
	if own <= 0 {
		return v, false
	}
	again, _ := s.Value(retransmitsSignal)
	sent, _ := s.Value(segmentsSignal)
	drops, _ := s.Value(dropsSignal)
	link, _ := s.Value(linkSignal)
	problem, signals := "", []engine.Signal(nil)
	switch {
	case again >= resentLeast && again >= resent*sent:
		problem, signals = text.Percent(again/max(sent, again))+" of all TCP segments are sent again", []engine.Signal{retransmitsSignal, segmentsSignal}
	case drops >= dropsLeast:
		problem, signals = figure(drops)+" connections/s are dropped because they are not accepted in time", []engine.Signal{dropsSignal}
	case link >= linkFull:
		problem, signals = "a network device transfers "+text.Percent(link)+" of its speed", []engine.Signal{linkSignal}
	default:
		return v, false
	}
	signals = append(signals, ownNetCallsSignal, allNetCallsSignal)
	if own < mostCalls*all {
		return unknown("on the machine "+problem+", and others make most of the calls that wait for networks", signals...), true
	}
	return said(engine.LimitNetwork, problem+", and this workload makes most of the calls that wait for networks", signals...), true
}

func said(limit engine.LimitKind, because string, evidence ...engine.Signal) engine.Statement {
	v := engine.Statement{Limit: limit, Because: because}
	for _, signal := range evidence {
		v.Evidence = append(v.Evidence, signal.Name)
	}
	return v
}

func unknown(why string, evidence ...engine.Signal) engine.Statement {
	return said(engine.LimitUnknown, why, evidence...)
}
