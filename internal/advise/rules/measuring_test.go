// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/teescope/teescope/internal/analysis"
)

// "If a production enclave is started with this option set, Gramine will fail initialization of the enclave" (manifest syntax, 1.0 to 1.9, of
// SGX stats and of profiles). For both, and for VTune, the loader sets TCS.FLAGS.DBGOPTIN (host_thread.c), which a production enclave refuses.
func TestMeasuringThatGramineRefuses(t *testing.T) {
	for text, want := range map[string]analysis.Severity{
		"sgx.enable_stats = true":                                                analysis.High,
		"sgx.vtune_profile = true":                                               analysis.High,
		"sgx.debug = true\nsgx.vtune_profile = true":                             analysis.Info,
		"sgx.profile.enable = \"all\"":                                           analysis.High,
		"sgx.debug = false\nsgx.profile.enable = \"main\"":                       analysis.High,
		"sgx.debug = true\nsgx.profile.enable = \"main\"\nsgx.enable_stats=true": analysis.Info,
	} {
		if all, _ := fires(t, measuring(), given{manifest: text}); len(all) != 1 || all[0].Severity != want {
			t.Errorf("%q: %+v, want %s", text, all, want)
		}
	}
}

func measuringCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.enable_stats = true"},
			{manifest: "sgx.debug = true\nsgx.profile.enable = \"main\""},
			{manifest: "sgx.debug = true\nsgx.vtune_profile = true"},
		},
		near: []given{
			{manifest: "sgx.enable_stats = false"},
			{manifest: "sgx.print_stats = true"},
			{manifest: "sgx.profile.enable = \"none\"\nsgx.profile.mode = \"aex\""},
		},
		negative: []given{
			{manifest: "a=1"},
		},
	}
}
