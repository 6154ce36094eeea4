// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/teescope/teescope/internal/advise"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func threadCreation() advise.Rule {
	return advise.Rule{
		ID: "thread-creation", Title: "threads are created while the application works", Section: sectionThreads, Analyze: judged.ThreadChurn,
		Needs:  [][]advise.Input{{advise.Findings}},
		Signal: "a finding of `thread-churn`", Threshold: "that of `thread-churn`: 10/s",
		Source: "proposed; Gramine's sources: each new thread makes a pipe with a TLS handshake (create_pollable_event)", Advice: "a thread pool",
		Judge: func(f *advise.Facts) *advise.Advice {
			found := f.Finding(judged.ThreadChurn)
			if found == nil {
				return nil
			}
			a := fromFinding(f, found)
			a.Do = slices.Clone(found.Advice)
			if f.Calls != nil {
				clones, row := f.Calls.Share("clone", "clone3")
				if binds, _ := f.Calls.Share("bind"); clones > 0 && binds > 0 {
					a.Seen = append(a.Seen, seen("sockets bound for each clone", binds/clones, "1", at(f.CallsFile, row.Line)))
				}
			}
			return a
		},
	}
}
