// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/lib/text"
)

// LongOCALLs names the rule of this file.
const LongOCALLs = "long-ocalls"

const (
	// longMean is the least mean time outside. Proposed: ten times the largest cost of a crossing at 2 GHz, so that the
	// time outside counts and not the crossing.
	longMean = 70e-6
	// longShare is the least share of one OCALL in the time that threads run or are in it. Proposed: that from which its
	// removal would raise the throughput by 20 %.
	longShare = worthNaming
	// longMost is the least share of one OCALL in the time of all OCALLs that do not wait for work. By definition.
	longMost = 0.5
	// slotsRenewed is the longest time in seconds in which each TCS is taken again, on average. Proposed: the threads of a
	// pool inside the enclave keep theirs for as long as the program runs.
	slotsRenewed = 60
)

// Signals of this rule alone.
var (
	ocallTimeSignal = engine.Signal{
		Name: "ocall_time", Query: perSecond("teescope_ocall_seconds_sum", "ocall"), Unit: "threads",
		Help: "threads outside of the enclave in OCALLs on average, by name (processes that --watch names)",
	}
	ocallTimedSignal = engine.Signal{
		Name: "ocalls_timed", Query: perSecond("teescope_ocall_seconds_count", "ocall"), Unit: "1/s", Help: "OCALLs whose time was measured, by name",
	}
)

// Thresholds that the configuration can replace.
var (
	ocallMean = engine.Threshold{Name: "mean", Default: longMean, Unit: "seconds", Help: "minimum mean time of the OCALL"}
	ocallTime = engine.Threshold{Name: "share", Default: longShare, Unit: "ratio", Help: "minimum share of the OCALL in the time that threads run or are in it"}
)

var (
	// workWaits are parts of names of OCALLs in which a thread waits for work, for a lock, or on purpose.
	workWaits = []string{
		"poll", "epoll_wait", "epoll_pwait", "epoll_pwait2", "ppoll", "select", "pselect", "pselect6", "accept", "accept4", "recv", "recvfrom",
		"recvmsg", "recvmmsg", "futex", "sleep", "usleep", "nanosleep", "clock_nanosleep", "wait", "waitpid", "wait4", "sched_yield", "connect",
		"event", "events", "receive", "listen", "dequeue", "pop", "take", "next", "job", "work", "idle", "park",
	}
	// diskWaits are parts of names of OCALLs that wait for files only.
	diskWaits = []string{
		"fsync", "fdatasync", "sync", "syncfs", "msync", "ftruncate", "fallocate", "pread", "pread64", "pwrite", "pwrite64", "preadv", "pwritev",
		"fopen", "fread", "fwrite", "fflush", "fclose", "unlink", "rename",
	}
)

func longOCALLs() engine.Rule {
	return engine.Rule{
		Name: LongOCALLs, Title: "one call out of the enclave takes most of the time outside",
		Code:       codelink.OCALLs,
		Thresholds: []engine.Threshold{ocallMean, ocallTime},
		Signals:    []engine.Signal{teeSignal, cpuSignal, systemSignal, threadsSignal, ocallTimeSignal, ocallTimedSignal, tcsSignal, ecallsSignal},
		Judge:      judgeLongOCALLs,
		NotWhen: []string{
			"the thread waits for work in the call: its name does not say so",
			"other threads do the work meanwhile, as with a thread that only writes a log",
			"the call would take as long outside a TEE: a slow disk is then the cause",
			"no further thread has work for the enclave while all of its TCS are taken",
		},
		Sources: []string{
			"Weichbrodt et al., sgx-perf, Middleware 2018: durations of OCALLs",
			"Gregg, Thread State Analysis: where the time of threads goes",
			"Intel SGX SDK, psw/urts/tcs.cpp, CTrustThreadPool::acquire_thread, and enclave.cpp: an ECALL without a free TCS fails with SGX_ERROR_OUT_OF_TCS",
			"Open Enclave, oe_result_t: OE_OUT_OF_THREADS",
			"users' report sgxwallet#489: requests fail with error 4099, which is SGX_ERROR_OUT_OF_TCS",
		},
	}
}

// nameHas reports whether one of the words is a part of the name of an OCALL, between underscores.
func nameHas(ocall string, words []string) bool {
	parts := "_" + strings.ToLower(ocall) + "_"
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(parts, "_"+word+"_") })
}

func judgeLongOCALLs(w engine.Workload) *engine.Verdict {
	cores, measured := w.Value(cpuSignal)
	if !environmentOf(w).enclave() || !measured {
		return nil
	}
	time := w.By(ocallTimeSignal, "ocall")
	for name := range time {
		if nameHas(name, workWaits) {
			delete(time, name)
		}
	}
	top := topOf(time)
	calls := w.By(ocallTimedSignal, "ocall")[top]
	if top == "" || calls <= 0 || time[top] < w.Least(longMost)*total(time) || time[top] < w.LeastFor(ocallMean)*calls {
		return nil
	}
	// Its CPU time is counted twice if it is added to that of the workload. It is at most that in the kernel: what an OCALL
	// computes itself is not seen.
	inKernel, known := w.Value(systemSignal)
	if !known {
		inKernel = cores
	}
	waiting := max(0, time[top]-inKernel)
	all := cores + waiting
	share := min(1, time[top]/max(all, time[top]))
	if all < w.Least(leastBusy) || share < w.LeastFor(ocallTime) {
		return nil
	}
	mean := time[top] / calls
	v := &engine.Verdict{
		Severity: analysis.Info, Confidence: analysis.Possible,
		Cause: fmt.Sprintf("%s threads are in the OCALL %s on average, %s/s for %s ms each: %s of the time that threads run or are in it, and %s of that in OCALLs that do not wait for work",
			figure(time[top]), top, figure(calls), figure(1e3*mean), text.Percent(share), text.Percent(time[top]/total(time))),
		Evidence: []string{ocallTimeSignal.With("ocall", top), ocallTimedSignal.With("ocall", top), ocallTimeSignal.Name, cpuSignal.Name, systemSignal.Name, threadsSignal.Name},
		Advice: []string{
			"let a thread outside make the call, and go on in the enclave meanwhile",
			"make it less often: write and synchronise several requests at once (group commit), keep what was read",
			"find out what it waits for outside: perf trace -s -p PID, or off-CPU stacks",
		},
	}
	slots, taken := slotsTaken(w, total(time))
	if taken {
		// The wait is measured, and what it costs is not: the other side of the call may not answer more of them at a time.
		v.Severity = analysis.Low
		v.Cause += fmt.Sprintf("; these OCALLs hold %s of the enclave's %s TCS, so an ECALL of a further thread waits or fails", figure(total(time)), figure(slots))
		v.Evidence = append(v.Evidence, tcsSignal.Name, ecallsSignal.Name)
		v.Advice = append([]string{
			"raise TCSNum (Open Enclave: NumTCS) to the number of threads that call the enclave, if the other side of the OCALL can answer as many at a time",
			"or return from the ECALL before the wait, and enter again with the result",
		}, v.Advice...)
	}
	// Threads that wait in a call for files do not wait for work. They limit the throughput if no thread does anything else, or
	// if no other thread can enter.
	threads, counted := w.Value(threadsSignal)
	limit := ""
	switch {
	case !nameHas(top, diskWaits):
	case counted && threads >= 1 && all >= w.Least(saturated)*threads:
		limit = fmt.Sprintf("its threads: they run or are in %s for %s of the time", top, text.Percent(min(1, all/threads)))
	case taken:
		limit = fmt.Sprintf("the enclave's TCS: %s of %s are in OCALLs on average", figure(total(time)), figure(slots))
		share = min(1, time[top]/slots)
	}
	if limit != "" {
		v.Severity = ""
		v.Gain = estimate.Amdahl(limit, 0, share, "at best the call takes no time of these threads; at least it takes as long as now")
	}
	return v
}

// slotsTaken returns the number of TCS of the workload's enclaves, and whether OCALLs in which outside threads are on average
// keep nearly all of them from other threads. A thread keeps its TCS while it is in an OCALL. If none is free, the Intel SDK and
// Open Enclave refuse an ECALL. That is impossible if the workload has no more threads than TCS. The threads of
// other runtimes enter once.
func slotsTaken(w engine.Workload, outside float64) (slots float64, taken bool) {
	slots, known := w.Value(tcsSignal)
	threads, counted := w.Value(threadsSignal)
	if !environmentOf(w).split() || !known || slots < 1 || !counted || threads <= slots {
		return slots, false
	}
	renewed := total(w.By(ecallsSignal, "ecall")) * slotsRenewed
	return slots, renewed >= slots && outside >= w.LeastWhile(analysis.Low, max(saturated, 1-1/slots))*slots
}
