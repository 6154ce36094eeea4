// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

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
