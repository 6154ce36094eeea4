// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/teescope/teescope/internal/advise"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func forks() advise.Rule {
	return advise.Rule{
		ID: "forks", Title: "processes are created while the application works", Section: sectionProcesses, Analyze: judged.ProcessChurn,
		Needs:  [][]advise.Input{{advise.Findings}},
		Signal: "a finding of `process-churn`", Threshold: "the threshold of `process-churn`", Source: guide + ": some studies report 1,000 times the cost of a native fork",
		Advice: "fork before the load; sys.disallow_subprocesses", NotWhen: []string{"the processes do the work itself, as those of a shell script"},
		Judge: func(f *advise.Facts) *advise.Advice {
			found := f.Finding(judged.ProcessChurn)
			if found == nil {
				return nil
			}
			a := fromFinding(f, found)
			a.Do = slices.Clone(found.Advice)
			if f.Manifest == nil {
				return a
			}
			const key = "sys.disallow_subprocesses"
			v := f.Manifest.Get(key)
			a.Seen = append(a.Seen, setting(f.Manifest, v, "false"))
			if !v.Set || !isTrue(f.Manifest, key) && v.Unknown == "" {
				a.Do = append(a.Do, "if the application can do without these processes, as Python can: forbid them (Gramine 1.5 and later)")
				a.Changes, a.Choice, a.Risk = set(key, "true"), true, "fork and vfork fail: an application that needs a child process stops working"
			}
			return a
		},
	}
}
