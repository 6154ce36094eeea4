// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func configThreads() advise.Rule {
	return advise.Rule{
		ID: "config-threads", Title: "the enclave admits fewer threads than the application uses", Section: sectionOther, Analyze: judged.ThreadsOverCapacity,
		Needs:  [][]advise.Input{{advise.Config, advise.Scaling}},
		Signal: "Open Enclave's `NumTCS` against the largest number of threads of --scaling that was measured in SGX", Threshold: "more threads",
		Source: "Open Enclave, oe_result_t: OE_OUT_OF_THREADS", Advice: "as many as the application has threads",
		NotWhen: []string{"the benchmark's threads are clients, and the application serves several with one thread"},
		Judge: func(f *advise.Facts) *advise.Advice {
			most := 0.0
			for _, l := range f.Scaling {
				if l.SGX > 0 {
					most = max(most, l.Threads)
				}
			}
			if f.Config.Runtime != "Open Enclave" || f.Config.Threads == 0 || most <= float64(f.Config.Threads) {
				return nil
			}
			a := configured(analysis.Medium, analysis.Possible, fmt.Sprintf("The enclave admits %d threads at once, and %.0f were measured. A call that finds no free slot (TCS) fails.", f.Config.Threads, most))
			a.Seen = []advise.Seen{seen("NumTCS", float64(f.Config.Threads), "1", f.ConfigFile), seen("threads", most, "1", f.ScalingFile)}
			a.Do = []string{fmt.Sprintf("set NumTCS to at least %.0f, and sign the enclave again", most), "or limit the application to as many threads as the enclave admits"}
			return a
		},
	}
}
