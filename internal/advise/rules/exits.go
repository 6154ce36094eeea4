// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

const (
	// startExits is the number of OCALLs that a start takes. Documented: the guide's hello world makes 192, "you may
	// consider 200 OCALLs as the cost of initialization".
	startExits = 200
	// startSignals is the number of synchronous signals of a start. Documented: 32 CPUIDs of Glibc in the same example.
	startSignals = 32
	// timeShare is the least share of calls for the time. Proposed (rule 6 of the advisor).
	timeShare = 0.05
	// yieldShare is the least share of sched_yield. Proposed (rule 34 of the advisor).
	yieldShare = 0.20
)

// exits returns the OCALLs a second after the start, and their cost in cores.
func exits(f *advise.Facts) (perSecond, low, high float64) {
	start := min(f.Stats.Total.EEXITs, uint64(startExits*max(1, f.Stats.Processes)))
	perSecond = float64(f.Stats.Total.EEXITs-start) / f.Time().Seconds()
	low, high = cost.OCALL.CPU(perSecond, f.Machine.Clock())
	return perSecond, low, high
}

// bound reports whether exits take as much of the CPU time as the rule ocall-bound requires. Without the CPU time of the
// program, it is compared with one core.
func bound(f *advise.Facts) bool {
	_, low, high := exits(f)
	used := f.Busy()
	if used == 0 {
		used = 1
	}
	return (low+high)/2 >= judged.OCALLShare*used
}

// manyExits returns advice about the exits that the stats count, or nil if there are few.
func manyExits(f *advise.Facts) *advise.Advice {
	if !f.Has(advise.Elapsed) || f.Stats.Processes == 0 || !bound(f) {
		return nil
	}
	perSecond, low, high := exits(f)
	least, most := cost.Saved(cost.OCALL, cost.Exitless, perSecond, f.Machine.Clock())
	used := f.Busy()
	a := &advise.Advice{
		Confidence: analysis.Likely,
		Seen: []advise.Seen{
			seen("OCALLs (EEXITs after the start)", perSecond, "1/s", at(f.StatsFile, f.Stats.Line)),
			seen("all EEXITs", float64(f.Stats.Total.EEXITs), "1", at(f.StatsFile, f.Stats.Line)),
			seen("time that they took", f.Time().Seconds(), "seconds", f.StatsFile),
		},
		Why: fmt.Sprintf("Each OCALL leaves the enclave and enters it again. %s OCALLs/s take %s to %s cores.",
			analysis.Figure(perSecond), analysis.Figure(low), analysis.Figure(high)),
		Analyze: judged.OCALLBound,
	}
	if used > 0 {
		a.Seen = append(a.Seen, seen("CPU time of the program", used, "cores", f.StatsFile+", perf stat"))
		least, most = min(least, used), min(most, used)
	}
	a.Saving = analysis.Saves(least, most, cost.OCALL.Assumption(), cost.Exitless.Assumption(), f.Machine.Clock().Assumption(),
		fmt.Sprintf("%d exits of each process belong to its start", startExits),
		"the stats do not show what limits the throughput, so only CPU time is claimed")
	a.Severity = analysis.SeverityOf(nil, a.Saving, max(used, 1))
	return a
}

// exitsFound returns advice from a finding about exits, or nil. A finding of the rule exitless takes the place of one of
// ocall-bound. With threads outside it is about these threads and not about exits.
func exitsFound(f *advise.Facts) *advise.Advice {
	for _, name := range []string{judged.OCALLBound, judged.SmallIO} {
		if found := f.Finding(name); found != nil {
			a := fromFinding(f, found)
			a.Do = slices.Clone(found.Advice)
			return a
		}
	}
	found := f.Finding(judged.Exitless)
	if found == nil {
		return nil
	}
	if off := f.Manifest != nil && hasNoRPC(f); !off && !slices.Contains(found.Explains, judged.OCALLBound) {
		return nil
	}
	a := fromFinding(f, found)
	a.Do = lessExits()
	return a
}

// lessExits is what to do about many exits.
func lessExits() []string {
	return []string{
		"make fewer calls: pipeline requests, batch reads and writes, use larger buffers",
		"find the callers: sgx.profile.enable = \"main\", sgx.profile.mode = \"ocall_inner\" and sgx.profile.with_stack = true, in a debug build with sgx.debug = true",
	}
}

func ocalls() advise.Rule {
	return advise.Rule{
		ID: "ocalls", Title: "enclave exits take much of the time", Section: sectionOCALLs, Analyze: judged.OCALLBound,
		Needs:     [][]advise.Input{{advise.Findings}, {advise.Stats, advise.Elapsed}},
		Signal:    "EEXITs a second after the start; a finding of `ocall-bound`, `small-io` or `exitless`",
		Threshold: "that of `ocall-bound`: 10 % of the CPU time, or of one core if it is not known", Source: "proposed",
		Advice:  "batch calls, find the callers",
		NotWhen: []string{"the program ran so briefly that loading libraries made most of the exits"},
		Judge: func(f *advise.Facts) *advise.Advice {
			a := exitsFound(f)
			if a == nil && f.Has(advise.Stats) {
				if a = manyExits(f); a != nil {
					a.Do = lessExits()
				}
			}
			return a
		},
	}
}

func startOnly() advise.Rule {
	return advise.Rule{
		ID: "start-only", Title: "the SGX stats show no more than a start", Section: sectionStats,
		Needs:  [][]advise.Input{{advise.Stats}},
		Signal: "EEXITs of a process", Threshold: "at most 200", Source: guide + ": 192 EEXITs of hello world are its start",
		Advice: "measure a longer run",
		Judge: func(f *advise.Facts) *advise.Advice {
			t := f.Stats.Total
			if f.Stats.Processes == 0 || t.EEXITs > uint64(startExits*f.Stats.Processes) {
				return nil
			}
			source := at(f.StatsFile, f.Stats.Line)
			a := configured(analysis.Info, analysis.Likely, fmt.Sprintf("%d EEXITs are %d OCALLs: before main, Gramine and Glibc read the manifest and load libraries, which takes about %d. "+
				"The %d EENTERs are these and %d others: ECALLs and returns from signal handling. %d of the %d AEXs belong to synchronous signals, such as the CPUID instruction, which Gramine emulates; "+
				"the others are timer and device interrupts and page faults.",
				t.EEXITs, t.EEXITs, startExits, t.EENTERs, max(t.EENTERs, t.EEXITs)-t.EEXITs, min(t.SyncSignals, t.AEXs), t.AEXs))
			a.Seen = []advise.Seen{
				seen("EENTERs", float64(t.EENTERs), "1", source), seen("EEXITs", float64(t.EEXITs), "1", source), seen("AEXs", float64(t.AEXs), "1", source),
				seen("sync signals", float64(t.SyncSignals), "1", source), seen("async signals", float64(t.AsyncSignals), "1", source),
			}
			a.Do = []string{"measure a run in which the work takes much longer than the start"}
			return a
		},
	}
}

func aexRate() advise.Rule {
	return advise.Rule{
		ID: "aex-rate", Title: "enclave threads are interrupted often", Section: sectionExitless, Analyze: judged.AEXStorm,
		Needs:     [][]advise.Input{{advise.Findings}, {advise.Stats, advise.CPUTime}},
		Signal:    "AEXs a second of each busy core, without those of synchronous signals; a finding of `aex-storm`",
		Threshold: "that of `aex-storm`: twice the 250/s of the timer", Source: guide + ": 250 interrupts a second; twice is proposed",
		Advice:  "pin threads, keep interrupts away from their CPUs",
		NotWhen: []string{"the kernel's timer is faster than 250 Hz"},
		Judge: func(f *advise.Facts) *advise.Advice {
			do := []string{"pin the program to CPUs that serve no device interrupts (taskset; /proc/irq/*/smp_affinity)", "isolate these CPUs (isolcpus) and stop their timer while one thread runs (nohz_full)"}
			if found := f.Finding(judged.AEXStorm); found != nil {
				a := fromFinding(f, found)
				a.Do = slices.Clone(found.Advice)
				return a
			}
			if !f.Has(advise.CPUTime) || f.Stats.Processes == 0 {
				return nil
			}
			t := f.Stats.Total
			seconds, busy := f.Stats.Elapsed.Seconds(), max(1, f.Busy())
			rate := float64(t.AEXs-min(t.AEXs, t.SyncSignals)) / seconds
			if rate < judged.AEXOverTick*judged.TickPerCore*busy {
				return nil
			}
			more := rate - judged.TickPerCore*busy
			low, high := cost.AEX.CPU(more, f.Machine.Clock())
			a := &advise.Advice{
				Confidence: analysis.Possible, Do: do, Saving: analysis.Saves(min(low, busy), min(high, busy), cost.AEX.Assumption(), f.Machine.Clock().Assumption(), "the timer's interrupts remain"),
				Why:  fmt.Sprintf("%s asynchronous exits a second are %s for each busy core. The timer causes %d.", analysis.Figure(rate), analysis.Figure(rate/busy), judged.TickPerCore),
				Seen: []advise.Seen{seen("AEXs without sync signals", rate, "1/s", at(f.StatsFile, f.Stats.Line)), seen("CPU time of the program", f.Busy(), "cores", f.StatsFile+", perf stat")},
			}
			a.Severity = analysis.SeverityOf(nil, a.Saving, busy)
			return a
		},
	}
}

// trapRate returns the synchronous signals a second after the start.
func trapRate(f *advise.Facts) float64 {
	signals := f.Stats.Total.SyncSignals
	return float64(signals-min(signals, uint64(startSignals*f.Stats.Processes))) / f.Time().Seconds()
}

func traps() advise.Rule {
	return advise.Rule{
		ID: "traps", Title: "instructions are trapped and emulated", Section: sectionMachine, Analyze: judged.AEXStorm,
		Needs:  [][]advise.Input{{advise.Stats, advise.Elapsed}},
		Signal: "synchronous signals a second after the start", Threshold: "that of `aex-storm` for exceptions: 100/s",
		Source: "proposed; " + guide + ": 32 of a start are CPUID", Advice: "find CPUID, RDTSC or SYSCALL in the code; a newer processor",
		NotWhen: []string{"the application uses signals of its own, such as SIGSEGV of a Java virtual machine"},
		Judge: func(f *advise.Facts) *advise.Advice {
			if f.Stats.Processes == 0 {
				return nil
			}
			rate := trapRate(f)
			if rate < judged.TrapsPerSecond {
				return nil
			}
			// A trap is an asynchronous exit, and an entry and an exit for the emulation.
			clock := f.Machine.Clock()
			aexLow, aexHigh := cost.AEX.CPU(rate, clock)
			low, high := cost.OCALL.CPU(rate, clock)
			low, high = aexLow+low, aexHigh+high
			if used := f.Busy(); used > 0 {
				low, high = min(low, used), min(high, used)
			}
			a := &advise.Advice{
				Confidence: analysis.Likely,
				Saving:     analysis.Saves(low, high, cost.AEX.Assumption(), cost.OCALL.Assumption(), clock.Assumption(), "each trap is one asynchronous exit, and an entry and an exit to emulate the instruction"),
				Why:        fmt.Sprintf("%s synchronous signals a second: the enclave executes an instruction that SGX forbids there, and Gramine emulates it.", analysis.Figure(rate)),
				Seen:       []advise.Seen{seen("sync signals after the start", rate, "1/s", at(f.StatsFile, f.Stats.Line))},
				Do:         []string{"find CPUID and raw SYSCALL instructions in hot code: statically linked programs and their own OpenMP often have them"},
			}
			a.Severity = analysis.SeverityOf(nil, a.Saving, max(1, f.Busy()))
			return a
		},
	}
}

func rawSyscalls() advise.Rule {
	return advise.Rule{
		ID: "raw-syscalls", Title: "the application makes system calls without Glibc", Section: sectionMachine,
		Needs:  [][]advise.Input{{advise.Log}},
		Signal: "log line \"Emulating a raw syscall instruction\"", Threshold: "any", Source: "Gramine, pal_exception.c: \"This degrades performance\"",
		Advice: "link dynamically, use Gramine's patched libgomp",
		Judge: func(f *advise.Facts) *advise.Advice {
			if f.Log.RawSyscalls.Count == 0 {
				return nil
			}
			a := configured(analysis.Info, analysis.Measured, "Gramine has to emulate each raw SYSCALL instruction: an asynchronous exit, and an entry and an exit more. The message comes once for each process, so it does not show how many there are.")
			a.Seen = []advise.Seen{seen("processes that emulate", float64(f.Log.RawSyscalls.Count), "1", at(f.LogFile, f.Log.RawSyscalls.Line))}
			a.Do = []string{"link the application dynamically, so that it uses Gramine's Glibc", "for OpenMP, use the patched libgomp that Gramine can build (meson -Dlibgomp=enabled)", "count them: sync signals of sgx.enable_stats, after the start"}
			return a
		},
	}
}

// clocks are the host's system calls for the time. Gramine's OCALL makes gettimeofday (sgx_ocall_gettime in host_ocalls.c).
func clocks() []string { return []string{"gettimeofday", "clock_gettime", "time"} }

func timeCalls() advise.Rule {
	return advise.Rule{
		ID: "time-calls", Title: "reading the time leaves the enclave", Section: sectionOCALLs, Analyze: judged.NeedlessSyscalls,
		Needs:  [][]advise.Input{{advise.Strace}},
		Signal: "share of gettimeofday and clock_gettime among the host's system calls", Threshold: "5 %", Source: "proposed",
		Advice: "a processor with RDTSC in enclaves, fewer calls",
		Judge: func(f *advise.Facts) *advise.Advice {
			share, top := f.Calls.Share(clocks()...)
			if share < timeShare {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, fmt.Sprintf("%.0f %% of the system calls on the host read the time. On processors before Ice Lake, RDTSC is forbidden in enclaves, and each reading is an OCALL.", 100*share))
			a.Seen = []advise.Seen{seen("share of calls for the time", share, "ratio", at(f.CallsFile, top.Line)), seen(top.Name, float64(top.Calls), "1", at(f.CallsFile, top.Line))}
			a.Do = []string{"move to a processor that allows RDTSC in enclaves (Ice Lake servers and later)", "read the time less often: cache it for each request or each turn of the event loop"}
			return a
		},
	}
}

func schedYield() advise.Rule {
	return advise.Rule{
		ID: "sched-yield", Title: "threads yield the processor often", Section: sectionSyntax + "Mocking syscalls", Analyze: judged.NeedlessSyscalls,
		Needs:  [][]advise.Input{{advise.Strace}},
		Signal: "share of sched_yield among the host's system calls", Threshold: "20 %", Source: "proposed; " + sectionSyntax + "Mocking syscalls has this example",
		Advice: "a lock that waits; mock sched_yield", NotWhen: []string{"more threads run than there are CPUs: without sched_yield they spin until the timer stops them"},
		Judge: func(f *advise.Facts) *advise.Advice {
			share, top := f.Calls.Share("sched_yield")
			if share < yieldShare {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, fmt.Sprintf("%.0f %% of the system calls on the host are sched_yield, and each is an OCALL.", 100*share))
			a.Seen = []advise.Seen{seen("share of sched_yield", share, "ratio", at(f.CallsFile, top.Line))}
			a.Do = []string{"replace loops around sched_yield by a lock that waits", "to see what it costs, make it do nothing (Gramine 1.8 and later)"}
			a.Changes = set("sys.debug__mock_syscalls", `[{ name = "sched_yield", return = 0 }]`)
			a.Choice, a.Risk = true, "sys.debug__mock_syscalls is for experiments: the application may rely on the call"
			return a
		},
	}
}

func futexShare() advise.Rule {
	return advise.Rule{
		ID: "futex-time", Title: "threads wait for each other", Section: sectionThreads, Analyze: judged.LockContention,
		Needs:  [][]advise.Input{{advise.Strace}},
		Signal: "share of futex among the host's system calls", Threshold: "that of `lock-contention`: 30 %", Source: "proposed; gramineproject/gramine issues 853 and 910",
		Advice: "fewer threads",
		Judge: func(f *advise.Facts) *advise.Advice {
			share, top := f.Calls.Share("futex")
			if share < judged.FutexShare {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("%.0f %% of the system calls on the host are futex. Under Gramine each wait and each wake leaves the enclave.", 100*share))
			a.Seen = []advise.Seen{seen("share of futex", share, "ratio", at(f.CallsFile, top.Line)), seen("futex calls", float64(top.Calls), "1", at(f.CallsFile, top.Line))}
			a.Do = []string{"run with fewer threads and compare: MariaDB under Gramine is slower with 32 threads than with 16", "find the lock with teescope profile, and shard it or shorten its sections"}
			return a
		},
	}
}
