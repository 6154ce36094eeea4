// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func measuring() advise.Rule {
	return advise.Rule{
		ID: "measuring", Title: "options for measuring are on", Section: sectionStats,
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "`sgx.enable_stats`, `sgx.profile.enable`, `sgx.vtune_profile`", Threshold: "any option that is on", Source: sectionSyntax + "Enabling SGX enclave stats, SGX profiling: for debug builds and debug enclaves only",
		Advice: "turn them off when not measuring",
		Judge: func(f *advise.Facts) *advise.Advice {
			a := configured(analysis.Info, analysis.Likely, "These options need a debug build of Gramine, which is slower than a release build. A release build ends at the start with sgx.profile.enable, "+
				"and from Gramine 1.8 on with sgx.enable_stats. Profiling itself slows the program too.")
			for _, key := range []string{keyStats, "sgx.vtune_profile"} {
				if v := f.Manifest.Get(key); isTrue(f.Manifest, key) && v.Key == key { // Gramine ignores the spelling before 1.0
					a.Seen = append(a.Seen, setting(f.Manifest, v, "false"))
					a.Changes = append(a.Changes, set(key, "false")...)
				}
			}
			profile := f.Manifest.Get("sgx.profile.enable")
			s, known := profile.Str()
			if known && (s == "main" || s == "all") {
				a.Seen = append(a.Seen, setting(f.Manifest, profile, `"none"`))
				a.Changes = append(a.Changes, set("sgx.profile.enable", `"none"`)...)
			}
			if len(a.Seen) == 0 {
				return nil
			}
			if production(f.Manifest) {
				// host_main.c refuses a profile. For the others the loader opts in to debugging in each TCS, which only a debug enclave allows.
				a.Severity = analysis.High
				a.Why = "The enclave is not a debug enclave, and Gramine measures no other one: it ends at the start. " + a.Why
				a.Seen = append(a.Seen, setting(f.Manifest, f.Manifest.Get(keyDebug), "false"))
			}
			a.Do = []string{"turn them off for production and for comparisons of throughput, and use a release build (meson --buildtype=release)"}
			a.Choice = true
			return a
		},
	}
}
