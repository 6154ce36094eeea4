// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/read"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

const (
	// growthPart is the part of the native growth below which the library OS stops growing. Proposed.
	growthPart = 0.5
	// collapse is the least part of its best throughput that SGX loses with more threads. Proposed.
	collapse = 0.20
	// leastGrowth is the least native growth that gramine-direct is compared with: less may be noise. Proposed.
	leastGrowth = 0.20
	// onceMeasured says what a table of throughput cannot show.
	onceMeasured = "each figure is of a single run: runs with the same settings often differ by several percent"
)

// throughput returns one figure of a row.
func throughput(f *advise.Facts, what string, l read.Load, value float64) advise.Seen {
	return seen(fmt.Sprintf("%s, threads: %g", what, l.Threads), value, "operations/s", at(f.ScalingFile, l.Line))
}

func throughputSplit() advise.Rule {
	return advise.Rule{
		ID: "throughput-split", Title: "what the library OS and what SGX add to an operation", Section: sectionThreads,
		Needs:  [][]advise.Input{{advise.Scaling}},
		Signal: "threads divided by throughput, of gramine-direct without native, and of gramine-sgx without gramine-direct", Threshold: "any row with all three",
		Source: "Little's law; gramine-direct runs the library OS without SGX", Advice: "begin with the larger one at the number of threads that you use",
		NotWhen: []string{onceMeasured, "the threads of the benchmark pause between operations, or it limits their rate"},
		Judge: func(f *advise.Facts) *advise.Advice {
			a := configured(analysis.Info, analysis.Measured, "gramine-direct runs the same library OS without an enclave. So the difference to native is the library OS, and the rest is SGX.")
			libraryOS, sgx, n := 0, 0, 0
			for _, l := range f.Scaling {
				first, second, known := l.Added()
				if !known {
					continue
				}
				switch {
				case first > max(second, 0):
					libraryOS++
				case second > max(first, 0):
					sgx++
				}
				n++
				source := at(f.ScalingFile, l.Line)
				a.Seen = append(a.Seen, seen(fmt.Sprintf("added to an operation by the library OS, threads: %g", l.Threads), first, "seconds", source), seen(fmt.Sprintf("added to an operation by SGX, threads: %g", l.Threads), second, "seconds", source))
			}
			if len(a.Seen) == 0 {
				return nil
			}
			a.Why += fmt.Sprintf(" Of %d numbers of threads, SGX adds more with %d, and the library OS with %d.", n, sgx, libraryOS)
			a.Do = []string{"where SGX adds more: fewer exits (the rule ocalls), a processor that pages and traps less", "where the library OS adds more: no setting of SGX helps. Compare gramine-direct with native, and profile it"}
			return a
		},
	}
}

// stall returns the first two rows between which gramine-direct grows by less than half of what native grows. Rows are
// skipped until native has grown enough.
func stall(all []read.Load) (before, after read.Load, found bool) {
	for _, l := range all {
		if l.Native <= 0 || l.Direct <= 0 {
			continue
		}
		if before.Threads > 0 {
			native, direct := l.Native/before.Native-1, l.Direct/before.Direct-1
			if native < leastGrowth {
				continue
			}
			if direct < growthPart*native {
				return before, l, true
			}
		}
		before = l
	}
	return read.Load{}, read.Load{}, false
}

func libraryOSLimit() advise.Rule {
	return advise.Rule{
		ID: "library-os-limit", Title: "the library OS stops scaling, not SGX", Section: sectionThreads, Analyze: judged.LockContention,
		Needs:  [][]advise.Input{{advise.Scaling}},
		Signal: "growth of throughput with threads, of gramine-direct and natively", Threshold: "less than half of the native growth, once that is 20 %",
		Source: "proposed; gramineproject/gramine issues 853 and 910", Advice: "several processes instead of more threads",
		NotWhen: []string{onceMeasured, "gramine-direct ran on fewer CPUs than the native program"},
		Judge: func(f *advise.Facts) *advise.Advice {
			before, after, found := stall(f.Scaling)
			if !found {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, fmt.Sprintf("From %g to %g threads the native throughput grows by %.0f %%, and that of gramine-direct by %.0f %%. There is no enclave in gramine-direct: threads wait for each other in the library OS or leave it for each futex.", before.Threads, after.Threads, 100*(after.Native/before.Native-1), 100*(after.Direct/before.Direct-1)))
			a.Seen = []advise.Seen{
				throughput(f, "native", before, before.Native), throughput(f, "native", after, after.Native),
				throughput(f, "gramine-direct", before, before.Direct), throughput(f, "gramine-direct", after, after.Direct),
			}
			a.Risk = "each process has an enclave of sgx.enclave_size: if they do not fit into the EPC together, they page (the rule enclaves-over-epc)"
			a.Do = []string{
				fmt.Sprintf("share the load between several enclaves instead of using more than %g threads in one: each process has its own library OS", max(after.Threads, fastest(f.Scaling).Threads)),
				"find the lock in gramine-direct, where perf and teescope profile see everything",
			}
			return a
		},
	}
}

// fall returns the row with the best throughput in SGX and the first later one that loses much of it, where
// gramine-direct loses less than half as much.
func fall(all []read.Load) (most, after read.Load, found bool) {
	most = fastest(all)
	for _, l := range all {
		if l.Threads <= most.Threads || l.SGX <= 0 || l.Direct <= 0 || most.Direct <= 0 {
			continue
		}
		if lost := 1 - l.SGX/most.SGX; lost >= collapse && 1-l.Direct/most.Direct < growthPart*lost {
			return most, l, true
		}
	}
	return most, after, false
}

// fastest returns the row with the best throughput in SGX.
func fastest(all []read.Load) (most read.Load) {
	for _, l := range all {
		if l.SGX > most.SGX {
			most = l
		}
	}
	return most
}

func sgxLimit() advise.Rule {
	return advise.Rule{
		ID: "sgx-limit", Title: "more threads are slower in the enclave only", Section: sectionThreads, Analyze: judged.ThreadsOverCapacity,
		Needs:  [][]advise.Input{{advise.Scaling}},
		Signal: "throughput after its best in SGX, against gramine-direct with the same threads", Threshold: "20 % lost, and less than half as much by gramine-direct",
		Source: "proposed; gramineproject/gramine issue 853: MariaDB loses half from 16 to 32 threads", Advice: "the number of threads with the best throughput",
		NotWhen: []string{onceMeasured, "the runs in SGX had fewer CPUs"},
		Judge: func(f *advise.Facts) *advise.Advice {
			best, after, found := fall(f.Scaling)
			if !found {
				return nil
			}
			gain := best.SGX/after.SGX - 1
			a := configured(analysis.Medium, analysis.Measured, fmt.Sprintf("From %g to %g threads SGX loses %.0f %% of its throughput, and gramine-direct %.0f %%. The library OS is the same, so the rest is of the enclave: each wait and wake of a thread leaves it, and each preemption interrupts it.", best.Threads, after.Threads, 100*(1-after.SGX/best.SGX), 100*(1-after.Direct/best.Direct)))
			a.Seen = []advise.Seen{
				throughput(f, "gramine-sgx", best, best.SGX), throughput(f, "gramine-sgx", after, after.SGX),
				throughput(f, "gramine-direct", best, best.Direct), throughput(f, "gramine-direct", after, after.Direct),
			}
			a.Do = []string{
				fmt.Sprintf("limit the application to %g threads that work at once: against %g that was %.0f %% more throughput", best.Threads, after.Threads, 100*gain),
				"run no more busy threads than CPUs, and pin them (taskset)",
			}
			return a
		},
	}
}
