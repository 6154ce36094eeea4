// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/analysis"
)

// olderFeatures reports whether the manifest has keys of Gramine up to 1.7, such as sgx.require_avx. They are booleans that
// require a feature or do not, so they cannot disable one. Gramine takes either spelling for all features.
func olderFeatures(m *manifest.Manifest) bool {
	return slices.ContainsFunc([]string{"avx", "avx512", "amx", "mpx", "pkru"}, func(name string) bool { return m.Get("sgx.require_" + name).Set })
}

func unusedFeatures() advise.Rule {
	return advise.Rule{
		ID: "unused-features", Title: "each exit saves registers that may be unused", Section: sectionFeatures, After: "ocalls",
		Needs:  [][]advise.Input{{advise.Manifest, advise.Findings}, {advise.Manifest, advise.Stats, advise.Elapsed}},
		Signal: "`sgx.cpu_features.avx512` and `amx` that are not \"disabled\", with the signal of `ocalls`", Threshold: "the threshold of `ocalls`",
		Source: "proposed; " + sectionSyntax + "Optional CPU features; sizes: Intel SDM, volume 1, XSAVE", Advice: "\"disabled\" for what the application does not use",
		NotWhen: []string{"the processor has neither AVX-512 nor AMX", "the application computes with them, as numerical libraries do"},
		Judge: func(f *advise.Facts) *advise.Advice {
			if olderFeatures(f.Manifest) {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, "Gramine saves and clears the state of these features around exits: 1.6 KiB more for AVX-512 and 8 KiB more for AMX. How much time that takes here is not known: measure it.")
			if a.Seen = exitsSeen(f); a.Seen == nil {
				return nil
			}
			for _, key := range []string{"sgx.cpu_features.avx512", "sgx.cpu_features.amx"} {
				v := f.Manifest.Get(key)
				if s, known := v.Str(); v.Set && (!known || s != "unspecified") {
					continue
				}
				a.Seen = append(a.Seen, setting(f.Manifest, v, `"unspecified"`))
				a.Changes = append(a.Changes, set(key, `"disabled"`)...)
			}
			if len(a.Changes) == 0 {
				return nil
			}
			a.Do = []string{"disable them and compare (teescope compare)"}
			a.Choice, a.Risk = true, "code that uses these instructions gets slower or fails, and the enclave's measurement changes"
			return a
		},
	}
}
