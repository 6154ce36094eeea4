// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"time"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

// longLoad is the least time that loading an enclave takes. Proposed.
const longLoad = 5 * time.Second

func slowLoad() advise.Rule {
	return advise.Rule{
		ID: "slow-load", Title: "loading the enclave takes long", Section: sectionSyntax + "EDMM", Analyze: judged.SlowStart,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Stats}, {advise.Manifest, advise.Findings}},
		Signal: "\"SGX enclave loading time\" without EDMM; a finding of `slow-start`", Threshold: "5 s; the threshold of `slow-start`", Source: "proposed; EDMM loads 28 to 93 % faster (arXiv 2504.16251)",
		Advice: "EDMM, or a smaller enclave",
		Judge: func(f *advise.Facts) *advise.Advice {
			bytes, v, known := size(f.Manifest)
			if !known {
				return nil
			}
			var a *advise.Advice
			if found := f.Finding(judged.SlowStart); found != nil {
				a = fromFinding(f, found)
			} else if f.Stats != nil && f.Stats.Longest > longLoad {
				a = configured(analysis.Info, analysis.Measured, fmt.Sprintf("Each of the %.0f pages of the enclave is added and measured before the application starts, and again for each child process.", float64(bytes/pageSize)))
				a.Seen = []advise.Seen{seen("longest loading time", f.Stats.Longest.Seconds(), "seconds", at(f.StatsFile, f.Stats.LoadLine))}
			}
			if a == nil {
				return nil
			}
			a.Seen = append(a.Seen, setting(f.Manifest, v, `"256M"`))
			a.Do = []string{"reduce sgx.enclave_size: the loading time grows with it"}
			edmm(f, a)
			return a
		},
	}
}
