// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func perfCounters() advise.Rule {
	return advise.Rule{
		ID: "perf-counters", Title: "perf stat cannot count in this enclave", Section: sectionStats,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Counters}},
		Signal: "counters of the processor by perf stat, without `sgx.debug`", Threshold: "any",
		Source: sectionSyntax + "Debug/production enclave: performance counters do not count in production enclaves", Advice: "ignore these counters, or measure a debug enclave",
		NotWhen: []string{"the program ran without SGX, as with gramine-direct"},
		Judge: func(f *advise.Facts) *advise.Advice {
			v := f.Manifest.Get(keyDebug)
			if on, known := v.Bool(); v.Set && (!known || on) {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "The processor does not count what happens in a production enclave. The counters of perf stat are of the code outside and of Gramine's loader only.")
			for _, c := range f.Stats.Counters[:min(len(f.Stats.Counters), 8)] {
				a.Seen = append(a.Seen, seen("not of the enclave: "+c.Name, c.Value, "1", at(f.StatsFile, c.Line)))
			}
			a.Seen = append(a.Seen, setting(f.Manifest, v, "false"))
			a.Do = []string{"use the times of perf stat, which are right, and not its counters", "to count in the enclave, set sgx.debug = true: not for production"}
			return a
		},
	}
}
