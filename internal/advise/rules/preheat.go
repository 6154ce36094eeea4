// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func preheat() advise.Rule {
	return advise.Rule{
		ID: "preheat", Title: "pages are first touched while the application works", Section: sectionOther, Analyze: judged.PageFaultStorm,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Findings, advise.EPCSize}},
		Signal: "a finding of `page-fault-storm`, with an enclave that fits into the EPC and no EDMM", Threshold: "the threshold of `page-fault-storm`", Source: guide,
		Advice: "sgx.preheat_enclave = true", NotWhen: []string{"the faults are of files that the host reads, not of enclave memory"},
		Judge: func(f *advise.Facts) *advise.Advice {
			found := f.Finding(judged.PageFaultStorm)
			bytes, v, known := size(f.Manifest)
			epc, ok := f.Machine.EPC()
			if found == nil || !known || !ok || bytes > epc || isTrue(f.Manifest, keyPreheat) || !notHidden(f.Manifest, keyPreheat) {
				return nil
			}
			a := fromFinding(f, found)
			a.Seen = append(a.Seen, setting(f.Manifest, v, `"256M"`), seen("EPC", float64(epc), "bytes", f.Machine.Source("epc_bytes")))
			a.Do = []string{"fault all pages in before the application starts"}
			a.Changes, a.Choice, a.Risk = set(keyPreheat, "true"), true, "the start takes longer, by a page fault for each page of the heap"
			return a
		},
	}
}
