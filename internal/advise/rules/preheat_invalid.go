// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
)

func preheatInvalid() advise.Rule {
	return advise.Rule{
		ID: "preheat-invalid", Title: "preheating cannot work here", Section: sectionOther,
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "`sgx.preheat_enclave` with EDMM, or with an enclave larger than the EPC", Threshold: "any", Source: sectionSyntax + "Pre-heating enclave: invalid with EDMM, and only for an enclave that fits into the EPC",
		Advice: "turn preheating off",
		Judge: func(f *advise.Facts) *advise.Advice {
			v := f.Manifest.Get(keyPreheat)
			if on, known := v.Bool(); !on || !known {
				return nil
			}
			bytes, sizeValue, known := size(f.Manifest)
			epc, ok := f.Machine.EPC()
			var a *advise.Advice
			switch {
			case isTrue(f.Manifest, keyEDMM):
				a = configured(analysis.High, analysis.Likely, "With EDMM there are no heap pages to fault in. Gramine's documentation calls the combination invalid.")
				a.Seen = []advise.Seen{setting(f.Manifest, v, "false"), setting(f.Manifest, f.Manifest.Get(keyEDMM), "false")}
			case known && ok && bytes > epc:
				pages := float64((bytes - epc) / pageSize)
				low, high := cost.Paging.CPU(pages, f.Machine.Clock())
				a = configured(analysis.Low, analysis.Likely, fmt.Sprintf("The enclave is larger than the EPC. Touching all its pages evicts at least %.0f of them, which takes %s to %s s of the start, if %s.", pages, analysis.Figure(low), analysis.Figure(high), cost.Paging.Assumption()))
				a.Seen = []advise.Seen{setting(f.Manifest, v, "false"), setting(f.Manifest, sizeValue, `"256M"`), seen("EPC", float64(epc), "bytes", f.Machine.Source("epc_bytes"))}
			default:
				return nil
			}
			a.Do = []string{"turn preheating off"}
			a.Changes = set(keyPreheat, "false")
			return a
		},
	}
}
