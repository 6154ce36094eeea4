// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func enclaveOverEPC() advise.Rule {
	return advise.Rule{
		ID: "enclave-over-epc", Title: "the enclave does not fit into the EPC", Section: sectionMachine, Analyze: judged.EPCThrashing,
		Needs:  [][]advise.Input{{advise.Manifest, advise.EPCSize}, {advise.Findings}},
		Signal: "`sgx.enclave_size` without EDMM against the EPC; a finding of `epc-thrashing` or `load-back-stalls`", Threshold: "100 %; the thresholds of these rules",
		Source: guide + ": pages beyond the EPC are evicted", Advice: "a smaller working set or enclave, EDMM, another machine",
		NotWhen: []string{"the application touches only a small part of the enclave: then only the start is slower"},
		Judge: func(f *advise.Facts) *advise.Advice {
			for _, name := range []string{judged.EPCThrashing, judged.LoadBackStalls} {
				if found := f.Finding(name); found != nil {
					a := fromFinding(f, found)
					a.Do = []string{"reduce the working set below the EPC: smaller caches and heaps, fewer processes", "or move to a machine with a larger EPC: servers from Ice Lake on have up to 1 TB"}
					return a
				}
			}
			epc, ok := f.Machine.EPC()
			if f.Manifest == nil || !ok {
				return nil
			}
			bytes, v, known := size(f.Manifest)
			if !known || bytes <= epc {
				return nil
			}
			pages := float64((bytes - epc) / pageSize)
			low, high := cost.Paging.CPU(pages, f.Machine.Clock())
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("Without EDMM all pages are added when the enclave is created, so at least %.0f of them are evicted before the application starts: %s to %s s, if %s. Those that it uses are loaded back one by one.",
				pages, analysis.Figure(low), analysis.Figure(high), cost.Paging.Assumption()))
			a.Seen = []advise.Seen{setting(f.Manifest, v, `"256M"`), seen("EPC", float64(epc), "bytes", f.Machine.Source("epc_bytes"))}
			a.Do = []string{"reduce sgx.enclave_size if the application needs less", "record a run: teescope analyze shows whether the enclave pages while it works (epc-thrashing)"}
			edmm(f, a)
			return a
		},
	}
}
