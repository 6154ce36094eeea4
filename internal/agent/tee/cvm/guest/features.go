// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"slices"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// Features for cryptography and vectors, by their names in /proc/cpuinfo (arch/x86/include/asm/cpufeatures.h). The models are
// those of Linux: arch/x86/kernel/cpu/amd.c and arch/x86/include/asm/intel-family.h. rdseed is not among them: Linux itself
// switches it off on EPYC 9005 with older microcode ("x86/CPU/AMD: Add RDSEED fix for Zen5").
var (
	zen3       = []string{"adx", "aes", "avx2", "bmi2", "pclmulqdq", "sha_ni", "vaes", "vpclmulqdq"}
	zen4       = append(slices.Clone(zen3), "avx512f", "avx512_bf16", "avx512_vnni", "gfni")
	iceLake    = append(slices.Clone(zen3), "avx512f", "avx512_vnni", "gfni")
	sapphire   = append(slices.Clone(iceLake), "amx_bf16", "amx_int8", "amx_tile", "avx512_bf16", "avx_vnni")
	generation = []struct {
		vendor            string
		family, low, high int // models
		features          []string
	}{
		{"AuthenticAMD", 0x19, 0x00, 0x0f, zen3}, // EPYC 7003
		{"AuthenticAMD", 0x19, 0x10, 0x1f, zen4}, // EPYC 9004
		{"AuthenticAMD", 0x19, 0xa0, 0xaf, zen4}, // EPYC 97x4
		{"AuthenticAMD", 0x1a, 0x00, 0x1f, zen4}, // EPYC 9005
		{"GenuineIntel", 6, 0x6a, 0x6a, iceLake}, // Xeon of the third generation
		{"GenuineIntel", 6, 0x8f, 0x8f, sapphire},
		{"GenuineIntel", 6, 0xcf, 0xcf, sapphire}, // Emerald Rapids
		{"GenuineIntel", 6, 0xad, 0xad, sapphire}, // Granite Rapids
	}
)

// missing returns the features that other processors of this model have.
func missing(p hostfs.Processor) []string {
	if len(p.Flags) == 0 {
		return nil
	}
	var out []string
	for _, g := range generation {
		if g.vendor != p.Vendor || g.family != p.Family || p.Model < g.low || p.Model > g.high {
			continue
		}
		for _, feature := range g.features {
			if !p.Has(feature) {
				out = append(out, feature)
			}
		}
	}
	return out
}
