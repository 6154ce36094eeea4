// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"

	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

const (
	// worthwhile is the share of a workload's CPU time from which on a cause in an enclave is worth a finding, at the
	// middle of the range of its cost. Proposed: less is within what a benchmark varies by.
	worthwhile = 0.05
	// nativeWorthwhile is the same outside of an enclave, where the cost is that of any program. Proposed.
	nativeWorthwhile = 0.10
)

// Signals of what enclaves do, by kind.
var (
	callsSignal = engine.Signal{
		Name: "calls", Query: perSecond("teescope_syscalls_total", "syscall"), Unit: "1/s", Help: "system calls, by name",
	}
	ocallsSignal = engine.Signal{
		Name: "ocalls", Query: perSecond("teescope_ocalls_total", "ocall"), Unit: "1/s", Help: "calls out of the enclave, by name",
	}
	switchesSignal = engine.Signal{
		Name: "switches", Query: perSecond("teescope_context_switches_total", "kind"), Unit: "1/s",
		Help: "times that a thread was switched out: voluntary when it waited, else involuntary",
	}
	userSignal = engine.Signal{
		Name: "user", Query: perSecond(`teescope_cpu_seconds_total{mode="user"}`), Unit: "cores",
		Help: "CPU time in user mode, which is inside the enclave and on the way in and out",
	}
	loadedSignal = engine.Signal{
		Name: "loaded", Query: perSecond("sgx_workload_pages_loaded_back_total"), Unit: "1/s",
		Help: "evicted pages of the workload's enclaves that were loaded back",
	}
	machineLoadedSignal = engine.Signal{
		Name: "machine_loaded", Query: machinePerSecond("sgx_epc_pages_loaded_back_total"), Unit: "1/s",
		Help: "evicted pages that were loaded back, of all enclaves",
	}
	stallSignal = engine.Signal{
		Name: "stall", Query: machinePerSecond("sgx_load_back_seconds_sum"), Unit: "threads",
		Help: "threads that stood still for an evicted page, of all enclaves, on average",
	}
	residentSignal = engine.Signal{
		Name: "resident", Query: "sum by (workload, instance) (sgx_workload_resident_bytes)", Unit: "bytes", Help: "enclave memory of the workload",
	}
)

// family is the runtime as advice is grouped by, empty when it is not known.
func (p place) family() string {
	switch p.runtime {
	case "gramine-sgx", "gramine-direct":
		return "Gramine"
	case "sgx-sdk", "openenclave":
		return "Intel SDK, Open Enclave"
	case "scone":
		return "SCONE"
	}
	return p.runtime
}

// tip is a piece of advice for the users of one family of runtimes, or for all of them.
type tip struct{ family, text string }

// advice is what helps here: tips for all, those for this runtime, and each with its name when the runtime is not known.
func (p place) advice(tips ...tip) []string {
	var texts []string
	for _, t := range tips {
		switch {
		case t.text == "":
		case t.family == "" || t.family == p.family():
			texts = append(texts, t.text)
		case p.family() == "":
			texts = append(texts, t.family+": "+t.text)
		}
	}
	return texts
}

// crossing is what handing so many system calls a second to the outside costs the workload's threads.
//
// In SCONE threads outside make the calls, and whether the caller leaves the enclave meanwhile is not to be seen
// (Arnautov et al., SCONE, OSDI 2016, 4.3): any cost from that of a call that is handed over to that of an OCALL is
// possible. Where exits are counted and are few, threads outside make the calls too. Else each is an OCALL.
func crossing(w engine.Workload, p place, calls float64) cost.Cost {
	exits, counted := exitsOf(w)
	switch {
	case p.runtime == "scone":
		return cost.Between("a call that SCONE hands to a thread outside", cost.Exitless, w.OCALL, w.Clock)
	case counted && exits < calls/2 && !p.split():
		return cost.Exitless
	}
	return w.OCALL
}

// split tells whether the program has a half outside of the enclave, whose system calls are its own affair: only the
// OCALLs are known to come from inside.
func (p place) split() bool { return p.runtime == "sgx-sdk" || p.runtime == "openenclave" }

// leaving is how many of so many system calls a second leave the enclave: all of them, but in a program with a half
// outside no more than there are exits, and none where the exits are too few to be most of them.
func leaving(w engine.Workload, p place, calls float64) float64 {
	if !p.split() {
		return calls
	}
	exits, _ := exitsOf(w)
	if exits < calls/2 {
		return 0
	}
	return min(calls, exits)
}

// bySyscall are the calls that leave the enclave, by the system call that they are. Of a program with a half outside they
// are its OCALLs: those that carry a system call in their name, and the others under their own.
func bySyscall(w engine.Workload, p place) (calls map[string]float64, evidence func(call string) string) {
	if !p.split() {
		return callsOf(w), func(call string) string { return callsSignal.With("syscall", call) }
	}
	calls = make(map[string]float64)
	ocalls, top := w.By(ocallsSignal, "ocall"), make(map[string]string)
	for name, rate := range ocalls {
		call := syscallOf(name)
		calls[call] += rate
		if top[call] == "" || largest(ocalls, name, top[call]) == name {
			top[call] = name
		}
	}
	return calls, func(call string) string { return ocallsSignal.With("ocall", top[call]) }
}

// syscallOf is the system call in the name of an OCALL, as in ocall_gettimeofday, oe_syscall_read_ocall or
// sgx_thread_set_untrusted_event_ocall, which is the futex of the SDK. Without one it is the name itself.
func syscallOf(ocall string) string {
	words := "_" + ocall + "_"
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
	Help: "crossings of the enclave's boundary, by kind",
}

// cpuOf is the CPU time of a workload in cores; not ok when it is not measured or hardly any.
func cpuOf(w engine.Workload) (cores float64, ok bool) {
	cores, ok = w.Value(cpuSignal)
	return cores, ok && cores >= leastBusy
}

// exitsOf is the rate of exits from the enclave (EEXIT); not counted when the runtime does not show them.
func exitsOf(w engine.Workload) (rate float64, counted bool) {
	rate, counted = w.By(transitionsSignal, "kind")["eexit"]
	return rate, counted
}

// callsOf are the rates of system calls by name.
func callsOf(w engine.Workload) map[string]float64 { return w.By(callsSignal, "syscall") }

// shares is which part of so many cores events cost that happen so often each second.
func shares(w engine.Workload, cost cost.Cost, perSecond, cores float64) (low, high float64) {
	low, high = cost.CPU(perSecond, w.Clock)
	return low / cores, high / cores
}

// middle is the middle of a range.
func middle(low, high float64) float64 { return (low + high) / 2 }

// between writes a range of shares for a sentence.
func between(low, high float64) string {
	least, most := figure(100*min(low, 1)), figure(100*min(high, 1))
	if least == most {
		return least + " %"
	}
	return least + " to " + most + " %"
}

// sumOf adds the rates of the calls named.
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

// largest is the name with the highest rate, the first of equals in the alphabet.
func largest(rates map[string]float64, names ...string) (name string) {
	for _, n := range names {
		if name == "" || rates[n] > rates[name] || rates[n] == rates[name] && n < name {
			name = n
		}
	}
	return name
}

// The names of system calls, by what they are for (Linux, x86-64).
var (
	// ioCalls move data.
	ioCalls = []string{
		"read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2",
		"recvfrom", "sendto", "recvmsg", "sendmsg", "recvmmsg", "sendmmsg", "sendfile", "splice", "io_uring_enter",
	}
	// pollCalls ask which files are ready, or wait for it.
	pollCalls = []string{"epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6"}
	// clockCalls tell the time; the C library does so without a system call where it can (vdso(7)).
	clockCalls = []string{"clock_gettime", "gettimeofday", "time"}
	// selfCalls tell a thread what it is; the answer does not change.
	selfCalls = []string{"getpid", "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getcpu"}
)
