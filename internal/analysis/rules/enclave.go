// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"maps"
	"strings"

	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

const (
	// worthwhile is the least share of a workload's CPU time that justifies a finding about an enclave. It is compared
	// with the middle of the cost's range. Proposed: benchmarks vary by as much.
	worthwhile = 0.05
	// nativeWorthwhile is the same outside an enclave, where every program has this cost. Proposed.
	nativeWorthwhile = 0.10
)

// Signals about enclaves that several rules read.
var (
	callsSignal = engine.Signal{
		Name: "calls", Query: perSecond("teescope_syscalls_total", "syscall"), Unit: "1/s", Help: "system calls, by name",
	}
	ocallsSignal = engine.Signal{
		Name: "ocalls", Query: perSecond(`teescope_ocalls_total{mode!="switchless"}`, "ocall"), Unit: "1/s", Help: "calls that left the enclave, by name",
	}
	switchesSignal = engine.Signal{
		Name: "switches", Query: perSecond("teescope_context_switches_total", "kind"), Unit: "1/s",
		Help: "times that a thread was switched out: voluntary if it waited, otherwise involuntary",
	}
	userSignal = engine.Signal{
		Name: "user", Query: perSecond(`teescope_cpu_seconds_total{mode="user"}`), Unit: "cores",
		Help: "CPU time in user mode, which includes the time in the enclave and the crossings",
	}
	loadedSignal = engine.Signal{
		Name: "loaded", Query: perSecond("sgx_workload_pages_loaded_back_total"), Unit: "1/s",
		Help: "evicted pages of the workload's enclaves that were loaded back",
	}
	machineLoadedSignal = engine.Signal{
		Name: "machine_loaded", Query: machinePerSecond("sgx_epc_pages_loaded_back_total"), Unit: "1/s",
		Help: "evicted pages of all enclaves that were loaded back",
	}
	stallSignal = engine.Signal{
		Name: "stall", Query: machinePerSecond("sgx_load_back_seconds_sum"), Unit: "threads",
		Help: "threads of all enclaves that waited for an evicted page, on average",
	}
	enclaveFaultsSignal = engine.Signal{
		Name: "enclave_faults", Query: perSecond("sgx_workload_faults_total"), Unit: "1/s", Help: "page faults on enclave memory",
	}
	residentSignal = engine.Signal{
		Name: "resident", Query: "sum by (workload, instance) (sgx_workload_resident_bytes)", Unit: "bytes", Help: "enclave memory of the workload",
	}
)

// family groups runtimes that share advice. It is empty for an unknown runtime.
func (e environment) family() string {
	switch e.runtime {
	case teelabel.GramineSGX, teelabel.GramineDirect:
		return "Gramine"
	case teelabel.SDK, teelabel.OpenEnclave:
		return "Intel SDK, Open Enclave"
	case teelabel.SCONE:
		return "SCONE"
	}
	return string(e.runtime)
}

// tip is advice for one family of runtimes, or for all if family is empty.
type tip struct{ family, text string }

// advice returns the tips for all runtimes and for this one. For an unknown runtime it returns all tips, each with its
// family's name.
func (e environment) advice(tips ...tip) []string {
	var texts []string
	for _, t := range tips {
		switch {
		case t.text == "":
		case t.family == "" || t.family == e.family():
			texts = append(texts, t.text)
		case e.family() == "":
			texts = append(texts, t.family+": "+t.text)
		}
	}
	return texts
}

// crossing returns the cost of one system call of the workload, for its own threads.
//
// SCONE lets threads outside make the calls, and nothing shows whether the caller leaves the enclave in the meantime
// (Arnautov et al., SCONE, OSDI 2016, 4.3). Its cost is that of [cost.Handed], unless an exit for each call is counted. Few
// counted exits also mean that threads outside make the calls. Otherwise each call is an OCALL.
func crossing(w engine.Workload, e environment, calls float64) cost.Cost {
	exits, counted := exitsOf(w)
	switch {
	case e.runtime == teelabel.SCONE && (!counted || exits < calls/2):
		return cost.Between("a call that SCONE hands to a thread outside", cost.Handed, w.OCALL, w.Clock)
	case counted && exits < calls/2 && !e.split():
		return cost.Exitless
	}
	return w.OCALL
}

// split reports whether the program has a half outside the enclave with system calls of its own. Only its OCALLs are
// known to come from inside.
func (e environment) split() bool {
	return e.runtime == teelabel.SDK || e.runtime == teelabel.OpenEnclave
}

// leaving returns how many of these system calls a second leave the enclave. In a program without a half outside, all
// of them do. Otherwise at most as many as there are exits do, and none if there are fewer exits than half of the
// calls.
func leaving(w engine.Workload, e environment, calls float64) float64 {
	if !e.split() {
		return calls
	}
	exits, _ := exitsOf(w)
	if exits < calls/2 {
		return 0
	}
	return min(calls, exits)
}

// bySyscall returns the calls that leave the enclave, by system call. For a program with a half outside these are its
// OCALLs: under the system call in their name, or else under their own name. In other programs an OCALL that reads the clock
// counts where there are more of them than system calls: outside, the C library reads the clock without one (vdso(7)).
func bySyscall(w engine.Workload, e environment) (calls map[string]float64, evidence func(call string) string) {
	inside := make(map[string]float64)
	ocalls, top := w.By(ocallsSignal, "ocall"), make(map[string]string)
	for name, rate := range ocalls {
		call := syscallOf(name)
		inside[call] += rate
		if top[call] == "" || largest(ocalls, name, top[call]) == name {
			top[call] = name
		}
	}
	if e.split() {
		return inside, func(call string) string { return ocallsSignal.With("ocall", top[call]) }
	}
	calls = maps.Clone(callsOf(w))
	unseen := make(map[string]bool)
	for _, call := range clockCalls {
		if inside[call] > calls[call] {
			calls[call], unseen[call] = inside[call], true
		}
	}
	return calls, func(call string) string {
		if unseen[call] {
			return ocallsSignal.With("ocall", top[call])
		}
		return callsSignal.With("syscall", call)
	}
}

// syscallOf returns the system call in the name of an OCALL, as in ocall_gettimeofday or oe_syscall_read_ocall. The
// SDK's sgx_thread_set_untrusted_event_ocall is a futex. Without a system call in it the name is returned.
func syscallOf(ocall string) string {
	words := "_" + ocall + "_"
	if strings.Contains(words, "_gettime_") { // of Gramine
		return "clock_gettime"
	}
	for _, list := range [][]string{clockCalls, selfCalls, ioCalls, {"sched_yield", "futex"}} {
		for _, call := range list {
			if strings.Contains(words, "_"+call+"_") {
				return call
			}
		}
	}
	if strings.Contains(words, "_untrusted_event_") || strings.Contains(words, "_untrusted_events_") {
		return "futex"
	}
	return ocall
}

var transitionsSignal = engine.Signal{
	Name: "transitions", Query: perSecond("teescope_enclave_transitions_total", "kind"), Unit: "1/s",
	Help: "crossings of the enclave boundary, by kind",
}

// cpuOf returns the CPU time of a workload in cores. It returns false when that is unknown or below leastBusy.
func cpuOf(w engine.Workload) (cores float64, ok bool) {
	cores, ok = w.Value(cpuSignal)
	return cores, ok && cores >= w.Least(leastBusy)
}

// besidesPaging returns the CPU time of a workload without that in which evicted pages are loaded back, at the middle of its
// range. A share of it remains to be gained after the paging has ended.
func besidesPaging(w engine.Workload, cores float64) (rest float64, paged bool) {
	pages, _, counted := loadedBack(w)
	if !counted || pages < w.Least(thrashPages) {
		return cores, false
	}
	low, high := pagingTime(w, pages, cores)
	return cores - middle(low, high), true
}

// ofTheRest says of which CPU time a share is.
func ofTheRest(paged bool) string {
	if paged {
		return " that remains without paging"
	}
	return ""
}

// exitsOf returns the rate of exits from the enclave (EEXIT). It returns false when the runtime does not show them.
func exitsOf(w engine.Workload) (rate float64, counted bool) {
	rate, counted = w.By(transitionsSignal, "kind")["eexit"]
	return rate, counted
}

// callsOf returns the rates of system calls by name.
func callsOf(w engine.Workload) map[string]float64 { return w.By(callsSignal, "syscall") }

// shares returns the share of the CPU time that events at this rate take.
func shares(w engine.Workload, cost cost.Cost, perSecond, cores float64) (low, high float64) {
	low, high = cost.CPU(perSecond, w.Clock)
	return low / cores, high / cores
}

// countExits states that the saving is for this many exits, if each call is one.
func countExits(v *engine.Verdict, w engine.Workload, each cost.Cost, calls float64) {
	if each == w.OCALL {
		v.Draws(engine.Exits, calls, 1, 1)
	}
}

// difference returns the CPU time in cores that is saved when events of one cost become events of another, at each end of
// the clock's range.
func difference(w engine.Workload, from, to cost.Cost, perSecond float64) (low, high float64) {
	return cost.Saved(from, to, perSecond, w.Clock)
}

// capped limits a range to what the events can take at most. A bound below the upper end shows that the assumed cost is
// too high for this machine. The range then ends at the bound and keeps its relative width.
func capped(low, high, bound float64) (float64, float64) {
	if high <= bound || high <= 0 {
		return low, high
	}
	return bound * low / high, bound
}

// middle returns the middle of a range.
func middle(low, high float64) float64 { return (low + high) / 2 }

// mostSpread is the largest ratio of the ends of a range that is printed, as for gains (render). For a wider one, the lower end is printed.
const mostSpread = 3

// between formats a range of shares for a sentence.
func between(low, high float64) string {
	least, most := figure(100*min(low, 1)), figure(100*min(high, 1))
	switch {
	case least == most:
		return least + " %"
	case low < 0.0005:
		return "up to " + most + " %"
	case min(high, 1) > mostSpread*low:
		return "at least " + least + " %"
	}
	return least + " to " + most + " %"
}

// sumOf adds the rates of the named calls.
func sumOf(calls map[string]float64, names ...string) (sum float64) {
	for _, name := range names {
		sum += calls[name]
	}
	return sum
}

// total adds all rates.
func total(calls map[string]float64) (sum float64) {
	for _, v := range calls {
		sum += v
	}
	return sum
}

// largest returns the name with the highest rate. Among equal rates the first name in alphabetical order wins.
func largest(rates map[string]float64, names ...string) (name string) {
	for _, n := range names {
		if name == "" || rates[n] > rates[name] || rates[n] == rates[name] && n < name {
			name = n
		}
	}
	return name
}

// Names of system calls by purpose (Linux, x86-64).
var (
	// ioCalls move data.
	ioCalls = []string{
		"read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2",
		"recvfrom", "sendto", "recvmsg", "sendmsg", "recvmmsg", "sendmmsg", "sendfile", "splice", "io_uring_enter",
	}
	// pollCalls query which files are ready, or wait until one is.
	pollCalls = []string{"epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6"}
	// clientCalls wait for clients, or for servers that the program asks.
	clientCalls = append([]string{"accept", "accept4", "recvfrom", "recvmsg"}, pollCalls...)
	// clockCalls read the time. The C library does so without a system call where it can (vdso(7)).
	clockCalls = []string{"clock_gettime", "gettimeofday", "time"}
	// selfCalls identify the caller. Their result rarely changes.
	selfCalls = []string{"getpid", "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getcpu"}
)
