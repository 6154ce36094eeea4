// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func enclavesOverEPC() advise.Rule {
	return advise.Rule{
		ID: "enclaves-over-epc", Title: "the enclaves of all processes do not fit into the EPC", Section: sectionProcesses, Analyze: judged.EPCThrashing,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Stats, advise.EPCSize}, {advise.Manifest, advise.Running, advise.EPCSize}},
		Signal: "processes of the SGX stats or of the running program times `sgx.enclave_size` without EDMM, where one fits", Threshold: "100 % of the EPC",
		Source: "proposed; " + sectionSyntax + "Enclave size: each process has an enclave of this size", Advice: "fewer processes, EDMM",
		NotWhen: []string{"the processes ran one after the other: SGX stats do not say when"},
		Judge: func(f *advise.Facts) *advise.Advice {
			bytes, v, known := size(f.Manifest)
			epc, ok := f.Machine.EPC()
			counted := processes(f)
			n := int(counted.Value)
			if !known || !ok || n < 2 || f.Live != nil && f.Live.Runtime != runtimeSGX || bytes > epc || float64(n)*float64(bytes) <= float64(epc) {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("%d processes have an enclave of %s each, %.0f MiB together. The EPC has %s.", n, mib(bytes), float64(n)*float64(bytes)/(1<<20), mib(epc)))
			a.Seen = []advise.Seen{
				counted, setting(f.Manifest, v, `"256M"`), seen("EPC", float64(epc), "bytes", f.Machine.Source("epc_bytes")),
			}
			a.Do = []string{"run fewer processes: threads of one enclave share its memory", "reduce sgx.enclave_size"}
			edmm(f, a)
			return a
		},
	}
}
