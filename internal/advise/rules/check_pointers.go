// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func checkPointers() advise.Rule {
	return advise.Rule{
		ID: "check-pointers", Title: "each system call checks its pointers", Section: sectionOther, After: "ocalls",
		Needs:     [][]advise.Input{{advise.Manifest, advise.Findings}, {advise.Manifest, advise.Stats, advise.Elapsed}},
		Signal:    "`libos.check_invalid_pointers` with the signal of `ocalls`",
		Threshold: "the threshold of `ocalls`", Source: "proposed; " + guide + ": most real-world applications never provide invalid arguments",
		Advice: "libos.check_invalid_pointers = false",
		Judge: func(f *advise.Facts) *advise.Advice {
			const key = "libos.check_invalid_pointers"
			v := f.Manifest.Get(key)
			if on, known := v.Bool(); v.Set && (!known || !on) {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, "Gramine checks the pointers of each system call, and this program makes many. How much that saves is not known: measure it.")
			if a.Seen = exitsSeen(f); a.Seen == nil {
				return nil
			}
			a.Seen = append(a.Seen, setting(f.Manifest, v, "true"))
			a.Do = []string{"turn the check off, if the application passes no invalid pointers"}
			a.Changes, a.Choice, a.Risk = set(key, "false"), true, "a system call with an invalid pointer crashes the application instead of returning EFAULT"
			return a
		},
	}
}
