// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/teescope/teescope/internal/analysis"
)

// Gramine 1.9 (host_main.c) checks the debug flag of the enclave for profiles only. For SGX stats it checks how it was built.
func TestMeasuringThatGramineRefuses(t *testing.T) {
	for text, want := range map[string]analysis.Severity{
		"sgx.enable_stats = true":                                                analysis.Info,
		"sgx.vtune_profile = true":                                               analysis.Info,
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
