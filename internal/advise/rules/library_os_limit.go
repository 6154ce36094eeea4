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
	// leastGrowth is the least native growth that gramine-direct is compared with: less may be noise. Proposed.
	leastGrowth = 0.20
	// growthPart is the part of the native growth below which the library OS stops growing. Proposed.
	growthPart = 0.5
)

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
