// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/read"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

// encryptedShare is the least share of the time in Gramine's own encryption. Proposed.
const encryptedShare = 0.20

// ofGramine reports whether a function belongs to the encryption that Gramine links into its own libraries.
func ofGramine(name string) bool {
	return strings.HasPrefix(name, "ipf_") || strings.HasPrefix(name, "mbedtls_gcm_") || strings.HasPrefix(name, "mbedtls_aes")
}

func encryptedFiles() advise.Rule {
	return advise.Rule{
		ID: "encrypted-files", Title: "encrypting files takes much of the time", Section: sectionOther, Analyze: judged.EncryptionTax,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Findings}, {advise.Manifest, advise.Profile}, {advise.Manifest, advise.Traffic}},
		Signal: "a finding of `encryption-tax`, share of Gramine's file encryption in a profile, or share of the bytes of a trace that are of files on such mounts, with a mount of the type \"encrypted\"", Threshold: "the threshold of `encryption-tax`; 20 %; 20 %",
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
			} else if a = movedMuch(f, "belong to files on encrypted mounts", func(t *read.Traffic) read.Moved { return t.Files(within(f.Manifest.EncryptedFiles())) }); a == nil {
				return nil
			}
			a.Seen = append(a.Seen, setting(f.Manifest, mounts[0], ""))
			a.Do = []string{"mount what need not be kept, such as temporary files and caches, as type = \"tmpfs\": it stays in the enclave's memory", "read and write larger blocks, and keep hot files in memory"}
			a.Risk = "what is in a tmpfs is lost when the process ends, other processes do not see it, and it takes enclave memory"
			return a
		},
	}
}
