// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

// cryptoShare is the least share of the time in ciphers without instructions for them. Proposed; the guide has no share.
const cryptoShare = 0.10

// software reports whether a function is a cipher or hash of OpenSSL, mbed TLS, Libgcrypt or Go that uses no instruction for it.
func software(name string) bool {
	for _, known := range []string{
		"AES_encrypt", "AES_decrypt", "_x86_64_AES_encrypt", "_x86_64_AES_decrypt", "asm_AES_", "gcm_ghash_4bit", "gcm_gmult_4bit", "gcm_init_4bit", "ChaCha20_ctr32",
		"sha256_block_data_order", "sha1_block_data_order", "mbedtls_internal_aes_", "gcm_mult_smalltable", "gcm_mult_largetable", "crypto/aes.encryptBlockGo", "crypto/aes.decryptBlockGo",
	} {
		if name == known || strings.HasSuffix(known, "_") && strings.HasPrefix(name, known) || strings.HasPrefix(name, known+".") {
			return true
		}
	}
	return false
}

func softwareCrypto() advise.Rule {
	return advise.Rule{
		ID: "software-crypto", Title: "encryption does not use the processor's instructions", Section: sectionFeatures,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Profile}},
		Signal: "share of portable AES, GHASH and SHA functions in a profile, with `sgx.cpu_features.avx` not \"required\"", Threshold: "10 %",
		Source: "proposed; " + guide + ": libraries that do not recognise AVX are 10 to 100 times slower", Advice: "sgx.cpu_features.avx = \"required\"",
		NotWhen: []string{"the processor has no AVX or AES instructions", "the library was built without assembler"},
		Judge: func(f *advise.Facts) *advise.Advice {
			key, on, off := "sgx.cpu_features.avx", `"required"`, `"unspecified"`
			v := f.Manifest.Get(key)
			if !v.Set && olderFeatures(f.Manifest) {
				key, on, off = "sgx.require_avx", "true", "false"
				v = f.Manifest.Get(key)
			}
			if s, _ := v.Str(); s == "required" || isTrue(f.Manifest, key) || v.Unknown != "" {
				return nil
			}
			part, figures, found := share(f, advise.Profile, "share of portable ciphers and hashes", cryptoShare, software)
			if !found {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("%.0f %% of the time is in functions that a crypto library uses if it finds no AVX. On some machines a library in the enclave does not find it.", 100*part))
			a.Seen = append(slices.Clone(figures), setting(f.Manifest, v, off))
			a.Do = []string{"require AVX, and compare a profile of the same load"}
			a.Changes, a.Choice, a.Risk = set(key, on), true, "the enclave does not start on a processor without AVX, and its measurement changes"
			return a
		},
	}
}
