// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/read"
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
			for _, l := range f.Scaling {
				first, second, known := l.Added()
				if !known {
					continue
				}
				source := at(f.ScalingFile, l.Line)
				a.Seen = append(a.Seen, seen(fmt.Sprintf("added to an operation by the library OS, threads: %g", l.Threads), first, "seconds", source), seen(fmt.Sprintf("added to an operation by SGX, threads: %g", l.Threads), second, "seconds", source))
			}
			if len(a.Seen) == 0 {
				return nil
			}
			a.Why += larger(f.Scaling) + atBest(f.Scaling)
			a.Do = []string{"where SGX adds more: fewer exits (the rule ocalls), a processor that pages and traps less", "where the library OS adds more: no setting of SGX helps. Compare gramine-direct with native, and profile it"}
			return a
		},
	}
}

// maxRanges bounds the ranges of threads that a sentence names. If noise dominates, each row may be a range.
const maxRanges = 6

// adder names what adds more to an operation: the library OS, SGX, or neither.
func adder(libraryOS, sgx float64) string {
	switch {
	case libraryOS > max(sgx, 0):
		return "the library OS"
	case sgx > max(libraryOS, 0):
		return "SGX"
	}
	return "neither"
}

// larger says with which numbers of threads the library OS adds more to an operation, and with which SGX. Rows that follow each
// other and have the same answer are a range.
func larger(all []read.Load) string {
	var ranges []string
	rows := make(map[string]int)
	last, first := "", 0.0
	for _, l := range all {
		libraryOS, sgx, known := l.Added()
		if !known {
			continue
		}
		who := adder(libraryOS, sgx)
		rows[who]++
		if who != last {
			last, first = who, l.Threads
			ranges = append(ranges, "")
		}
		with := fmt.Sprintf("%g", first)
		if l.Threads > first {
			with = fmt.Sprintf("%g to %g", first, l.Threads)
		}
		ranges[len(ranges)-1] = fmt.Sprintf(" Threads %s: %s adds more.", with, who)
	}
	if len(ranges) > maxRanges {
		return fmt.Sprintf(" SGX adds more in %d rows, and the library OS in %d.", rows["SGX"], rows["the library OS"])
	}
	return strings.Join(ranges, "")
}

// atBest says what part of the time that is added to an operation the library OS has at the best throughput in SGX, if that is known.
func atBest(all []read.Load) string {
	best := fastest(all)
	libraryOS, sgx, known := best.Added()
	if !known || libraryOS < 0 || sgx < 0 || libraryOS+sgx <= 0 {
		return ""
	}
	part := libraryOS / (libraryOS + sgx)
	return fmt.Sprintf(" At %g, where SGX is fastest, the library OS adds %.0f %% of both, and SGX %.0f %%.", best.Threads, 100*part, 100*(1-part))
}
