// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

const (
	// edmmShare is the least share of OCALLs that add or remove enclave pages. Proposed (rule 13 of the advisor).
	edmmShare = 0.10
	// cryptoShare is the least share of the time in ciphers without instructions for them. Proposed; the guide has no share.
	cryptoShare = 0.10
	// encryptedShare is the least share of the time in Gramine's own encryption. Proposed (rule 31 of the advisor).
	encryptedShare = 0.20
	// pipeShare is the same for TLS between processes. Documented (Multi-process workloads): encryption costs 1 to 10 %.
	pipeShare = 0.10
)

// share returns the figures about functions of a profile of the kind that is needed, and false without one or if their share
// is below the least one.
func share(f *advise.Facts, kind advise.Input, what string, least float64, match func(name string) bool) (part float64, figures []advise.Seen, found bool) {
	if !f.Has(kind) {
		return 0, nil, false
	}
	part, top := f.Profile.Share(match)
	if part < least {
		return 0, nil, false
	}
	source := f.ProfileFile
	if top.Line > 0 {
		source = at(source, top.Line)
	}
	return part, []advise.Seen{
		seen(what, part, "ratio", source),
		seen("of it "+top.Name, top.Value/f.Profile.Total, "ratio", source),
	}, true
}

func edmmCalls() advise.Rule {
	return advise.Rule{
		ID: "edmm-calls", Title: "adding and removing enclave pages takes many exits", Section: sectionSyntax + "EDMM",
		Needs:  [][]advise.Input{{advise.Manifest, advise.Calls}},
		Signal: "share of `sgx_ocall_edmm_*` among the OCALLs of a profile, with `sgx.edmm_enable`", Threshold: "10 %",
		Source: "proposed; naive EDMM is up to 58 % slower (arXiv 2504.16251)", Advice: "EDMM off, or an allocator that keeps memory",
		NotWhen: []string{"the profile is of the start, when the heap grows once"},
		Judge: func(f *advise.Facts) *advise.Advice {
			if !isTrue(f.Manifest, keyEDMM) {
				return nil
			}
			part, figures, found := share(f, advise.Calls, "share of OCALLs that change pages", edmmShare, func(name string) bool { return strings.Contains(name, "ocall_edmm_") })
			if !found {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, fmt.Sprintf("%.0f %% of the OCALLs change pages of the running enclave, as memory is allocated and freed.", 100*part))
			a.Seen = append(slices.Clone(figures), setting(f.Manifest, f.Manifest.Get(keyEDMM), "false"))
			a.Do = []string{"keep freed memory in the application: loader.env.MALLOC_TRIM_THRESHOLD_ and MALLOC_TOP_PAD_ of Glibc, or a pool", "or turn EDMM off and give the enclave the size that it needs (sgx.enclave_size)"}
			a.Changes, a.Choice, a.Risk = set(keyEDMM, "false"), true, "the whole enclave is committed at the start, which takes longer, and sgx.enclave_size and sgx.max_threads become limits"
			return a
		},
	}
}

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
			const key = "sgx.cpu_features.avx"
			v := f.Manifest.Get(key)
			if s, _ := v.Str(); s == "required" || v.Unknown != "" {
				return nil
			}
			part, figures, found := share(f, advise.Profile, "share of portable ciphers and hashes", cryptoShare, software)
			if !found {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("%.0f %% of the time is in functions that a crypto library uses if it finds no AVX. On some machines a library in the enclave does not find it.", 100*part))
			a.Seen = append(slices.Clone(figures), setting(f.Manifest, v, `"unspecified"`))
			a.Do = []string{"require AVX, and compare a profile of the same load"}
			a.Changes, a.Choice, a.Risk = set(key, `"required"`), true, "the enclave does not start on a processor without AVX, and its measurement changes"
			return a
		},
	}
}

// ofGramine reports whether a function belongs to the encryption that Gramine links into its own libraries.
func ofGramine(name string) bool {
	return strings.HasPrefix(name, "ipf_") || strings.HasPrefix(name, "mbedtls_gcm_") || strings.HasPrefix(name, "mbedtls_aes")
}

func encryptedFiles() advise.Rule {
	return advise.Rule{
		ID: "encrypted-files", Title: "encrypting files takes much of the time", Section: sectionOther, Analyze: judged.EncryptionTax,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Findings}, {advise.Manifest, advise.Profile}},
		Signal: "a finding of `encryption-tax`, or share of Gramine's file encryption in a profile, with a mount of the type \"encrypted\"", Threshold: "that of `encryption-tax`; 20 %",
		Source: "proposed; " + guide + ": each access to an encrypted file is encrypted or decrypted", Advice: "tmpfs for what need not be kept",
		NotWhen: []string{"the application itself uses mbed TLS"},
		Judge: func(f *advise.Facts) *advise.Advice {
			mounts := f.Manifest.EncryptedMounts()
			if len(mounts) == 0 {
				return nil
			}
			var a *advise.Advice
			if found := f.Finding(judged.EncryptionTax); found != nil {
				a = fromFinding(f, found)
			} else if part, figures, found := share(f, advise.Profile, "share of file encryption", encryptedShare, ofGramine); found {
				a = configured(analysis.Info, analysis.Possible, fmt.Sprintf("%.0f %% of the time encrypts and decrypts. The manifest has %d encrypted mounts.", 100*part, len(mounts)))
				a.Seen = figures
			} else {
				return nil
			}
			a.Seen = append(a.Seen, setting(f.Manifest, mounts[0], ""))
			a.Do = []string{"mount what need not be kept, such as temporary files and caches, as type = \"tmpfs\": it stays in the enclave's memory", "read and write larger blocks, and keep hot files in memory"}
			a.Risk = "what is in a tmpfs is lost when the process ends, other processes do not see it, and it takes enclave memory"
			return a
		},
	}
}

func encryptedPipes() advise.Rule {
	return advise.Rule{
		ID: "encrypted-pipes", Title: "processes exchange much data through pipes and sockets", Section: sectionProcesses, Analyze: judged.EncryptionTax,
		Needs:  [][]advise.Input{{advise.Findings}, {advise.Profile}},
		Signal: "a finding of `encryption-tax` without a mount of the type \"encrypted\", or share of TLS of Gramine's pipes (`mbedtls_ssl_*`) in a profile", Threshold: "that of `encryption-tax`; 10 %",
		Source: guide + ": encryption between processes costs 1 to 10 %", Advice: "fewer and larger messages",
		NotWhen: []string{"the application itself uses mbed TLS, as for its connections to clients"},
		Judge: func(f *advise.Facts) *advise.Advice {
			var a *advise.Advice
			if found := f.Finding(judged.EncryptionTax); found != nil && (f.Manifest == nil || len(f.Manifest.EncryptedMounts()) == 0) {
				a = fromFinding(f, found)
			} else if part, figures, found := share(f, advise.Profile, "share of TLS between processes", pipeShare, func(name string) bool { return strings.HasPrefix(name, "mbedtls_ssl_") }); found {
				a = configured(analysis.Info, analysis.Possible, fmt.Sprintf("%.0f %% of the time is in TLS. Gramine encrypts pipes, FIFOs and UNIX sockets between its processes, and each new thread makes such a pipe.", 100*part))
				a.Seen = figures
			} else {
				return nil
			}
			a.Do = []string{"send fewer and larger messages between processes", "use threads of one process instead of several processes", "start threads once and give them work (thread pool)"}
			return a
		},
	}
}
