// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/teescope/teescope/internal/advise"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func exitlessOff() advise.Rule {
	return advise.Rule{
		ID: "exitless-off", Title: "threads outside cost more than they save", Section: sectionExitless, Analyze: judged.Exitless,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Findings}},
		Signal: "a finding of `exitless` with `sgx.insecure__rpc_thread_num` above 0", Threshold: "the threshold of `exitless`", Source: guide + ": threads outside burn CPU cycles",
		Advice: "turn Exitless off",
		Judge: func(f *advise.Facts) *advise.Advice {
			n, v, known := rpc(f.Manifest)
			found := f.Finding(judged.Exitless)
			if found == nil || !known || n == 0 {
				return nil
			}
			a := fromFinding(f, found)
			a.Seen = append(a.Seen, setting(f.Manifest, v, "0"))
			a.Do = slices.Clone(found.Advice)
			a.Changes = set(keyRPC, "0")
			return a
		},
	}
}
