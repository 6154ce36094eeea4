// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func enclaveSizePower() advise.Rule {
	return advise.Rule{
		ID: "enclave-size-power", Title: "the enclave's size is not a power of two", Section: sectionSyntax + "Enclave size",
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "`sgx.enclave_size`", Threshold: "any other number", Source: "Gramine, host_main.c: \"Enclave size not a power of two (an SGX-imposed requirement)\"",
		Advice: "the next power of two",
		Judge: func(f *advise.Facts) *advise.Advice {
			v := f.Manifest.Get(keySize)
			bytes, known := v.Size()
			if !known || bytes != 0 && bytes&(bytes-1) == 0 {
				return nil
			}
			a := configured(analysis.High, analysis.Likely, "Gramine refuses to start such an enclave.")
			a.Seen = []advise.Seen{setting(f.Manifest, v, `"256M"`)}
			a.Do = []string{"use the next power of two"}
			if _, size, ok := largerSize(bytes); ok {
				a.Changes = set(keySize, size)
			}
			return a
		},
	}
}
