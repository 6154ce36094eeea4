// SPDX-License-Identifier: Apache-2.0

package rules

import "teescope/internal/analysis"

const (
	// worthwhile is the share of a workload's CPU time from which on a cause in an enclave is worth a finding, at the
	// middle of the range of its cost. Proposed: less is within what a benchmark varies by.
	worthwhile = 0.05
	// nativeWorthwhile is the same outside of an enclave, where the cost is that of any program. Proposed.
	nativeWorthwhile = 0.10
)

// Signals of what enclaves do, by kind.
var (
	callsSignal = analysis.Signal{
		Name: "calls", Query: perSecond("teescope_syscalls_total", "syscall"), Unit: "1/s", Help: "system calls, by name",
	}
	ocallsSignal = analysis.Signal{
		Name: "ocalls", Query: perSecond("teescope_ocalls_total", "ocall"), Unit: "1/s", Help: "calls out of the enclave, by name",
	}
	switchesSignal = analysis.Signal{
		Name: "switches", Query: perSecond("teescope_context_switches_total", "kind"), Unit: "1/s",
		Help: "times that a thread was switched out: voluntary when it waited, else involuntary",
	}
	userSignal = analysis.Signal{
		Name: "user", Query: perSecond(`teescope_cpu_seconds_total{mode="user"}`), Unit: "cores",
		Help: "CPU time in user mode, which is inside the enclave and on the way in and out",
	}
	loadedSignal = analysis.Signal{
		Name: "loaded", Query: perSecond("sgx_workload_pages_loaded_back_total"), Unit: "1/s",
		Help: "evicted pages of the workload's enclaves that were loaded back",
	}
	machineLoadedSignal = analysis.Signal{
		Name: "machine_loaded", Query: machinePerSecond("sgx_epc_pages_loaded_back_total"), Unit: "1/s",
		Help: "evicted pages that were loaded back, of all enclaves",
	}
	stallSignal = analysis.Signal{
		Name: "stall", Query: machinePerSecond("sgx_load_back_seconds_sum"), Unit: "threads",
		Help: "threads that stood still for an evicted page, of all enclaves, on average",
	}
)

// place is what a workload runs in.
type place struct {
	enclave bool   // it has an SGX enclave
	runtime string // as teescope_workload_info spells it, empty when none is recognised; some run outside of enclaves
}

// placeOf reads the signal tee. What it does not tell is not known, and rules about enclaves are silent then: a
// program outside of one is not to be told how to call out of it.
func placeOf(w analysis.Workload) (p place, known bool) {
	for _, s := range w.Samples(teeSignal.Name) {
		known = true
		enclave := s.Labels["tee"] == "sgx"
		if enclave && !p.enclave || p.runtime == "" && enclave == p.enclave {
			p = place{enclave, s.Labels["runtime"]}
		}
	}
	return p, known
}

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
func crossing(w analysis.Workload, p place, calls float64) analysis.Cost {
	exits, counted := w.By(transitionsSignal.Name, "kind")["eexit"]
	switch {
	case p.runtime == "scone":
		return analysis.Cost{
			What: "a call that SCONE hands to a thread outside", Low: analysis.CostExitless.Low, High: analysis.CostOCALL.High,
			Source: "from an exitless call to an OCALL: " + analysis.CostExitless.Source + "; " + analysis.CostOCALL.Source,
		}
	case counted && exits < calls/2:
		return analysis.CostExitless
	}
	return analysis.CostOCALL
}

var transitionsSignal = analysis.Signal{
	Name: "transitions", Query: perSecond("teescope_enclave_transitions_total", "kind"), Unit: "1/s",
	Help: "crossings of the enclave's boundary, by kind",
}

// cpuOf is the CPU time of a workload in cores; not ok when it is not measured or hardly any.
func cpuOf(w analysis.Workload) (cores float64, ok bool) {
	cores, ok = w.Value(cpuSignal.Name)
	return cores, ok && cores >= leastBusy
}

// shares is which part of so many cores events cost that happen so often each second.
func shares(w analysis.Workload, cost analysis.Cost, perSecond, cores float64) (low, high float64) {
	low, high = cost.Seconds(perSecond, w.Clock)
	return low / cores, high / cores
}

// middle is the middle of a range.
func middle(low, high float64) float64 { return (low + high) / 2 }

// between writes a range of shares for a sentence.
func between(low, high float64) string {
	return figure(100*min(low, 1)) + " to " + figure(100*min(high, 1)) + " %"
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
