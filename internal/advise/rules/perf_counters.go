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
		Signal: "counters of the processor by perf stat, without `sgx.debug`, or without `sgx.enable_stats`, `sgx.vtune_profile` and SGX stats beside the counters", Threshold: "any",
		Source: sectionSyntax + "Enabling SGX enclave stats: the option sets TCS.FLAGS.DBGOPTIN, which enables performance counters in a debug enclave", Advice: "ignore these counters, or measure a debug enclave with sgx.enable_stats",
		NotWhen: []string{"the program ran without SGX, as with gramine-direct"},
		Judge: func(f *advise.Facts) *advise.Advice {
			v, kind := f.Manifest.Get(keyDebug), "a production enclave"
			if !production(f.Manifest) {
				v, kind = f.Manifest.Get(keyStats), "an enclave without the opt-in to debugging that sgx.enable_stats sets"
				if counts(f) {
					return nil
				}
			}
			a := configured(analysis.Info, analysis.Likely, "The processor does not count what happens in "+kind+". The counters of perf stat are of the code outside and of Gramine's loader only.")
			for _, c := range f.Stats.Counters[:min(len(f.Stats.Counters), 8)] {
				a.Seen = append(a.Seen, seen("not of the enclave: "+c.Name, c.Value, "1", at(f.StatsFile, c.Line)))
			}
			a.Seen = append(a.Seen, setting(f.Manifest, v, "false"))
			a.Do = []string{"use the times of perf stat, which are right, and not its counters", "to count in the enclave, set sgx.debug = true and sgx.enable_stats = true: not for production, and from Gramine 1.8 on with a debug build"}
			return a
		},
	}
}

// counts reports whether the processor may count in a debug enclave: an option sets TCS.FLAGS.DBGOPTIN (set_tcs_debug_flag_if_debugging in
// host_thread.c), a template hides it, or the program wrote SGX stats.
func counts(f *advise.Facts) bool {
	for _, key := range []string{keyStats, "sgx.vtune_profile"} {
		if isTrue(f.Manifest, key) || !notHidden(f.Manifest, key) {
			return true
		}
	}
	return !isTrue(f.Manifest, keyDebug) || f.Stats.Processes > 0
}
