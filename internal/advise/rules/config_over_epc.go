// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func configOverEPC() advise.Rule {
	return advise.Rule{
		ID: "config-over-epc", Title: "the memory of the enclave does not fit into the EPC", Section: sectionMachine, Analyze: judged.EPCThrashing,
		Needs:  [][]advise.Input{{advise.Config, advise.EPCSize}},
		Signal: "EGo's `heapSize`, Occlum's `user_space_size` and `kernel_space_heap_size` (with EDMM `user_space_max_size` and `kernel_space_heap_max_size`), Open Enclave's `NumHeapPages`, or SCONE's `SCONE_HEAP` without the simulation against the EPC", Threshold: "100 %",
		Source: guide + ": pages beyond the EPC are evicted, in any runtime", Advice: "a smaller heap and working set, another machine",
		NotWhen: []string{"the application touches only a small part of the memory: then only the start is slower"},
		Judge: func(f *advise.Facts) *advise.Advice {
			epc, ok := f.Machine.EPC()
			if !ok || f.Config.Memory <= epc || f.Config.SCONE.Simulated {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("The enclave may use %s, and the EPC has %s. Pages beyond it are encrypted, written to RAM and loaded back.", mib(f.Config.Memory), mib(epc)))
			a.Seen = []advise.Seen{
				seen(f.Config.Runtime+", "+f.Config.Key, float64(f.Config.Memory), "bytes", f.ConfigFile), seen("EPC", float64(epc), "bytes", f.Machine.Source("epc_bytes")),
			}
			a.Do = []string{"reduce the memory of the enclave to what the application needs, and its caches with it", "or move to a machine with a larger EPC: servers from Ice Lake on have up to 1 TB"}
			return a
		},
	}
}
