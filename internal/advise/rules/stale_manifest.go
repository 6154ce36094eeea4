// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func staleManifest() advise.Rule {
	return advise.Rule{
		ID: "stale-manifest", Title: "the program does not run with this manifest", Section: sectionSyntax + "Enclave size",
		Needs:  [][]advise.Input{{advise.Manifest, advise.Running}},
		Signal: "pages of the enclave of a running process against `sgx.enclave_size`", Threshold: "another size",
		Source: "Intel SDM, volume 3D: an enclave keeps the size that it was created with", Advice: "start it again, or name its manifest",
		Judge: func(f *advise.Facts) *advise.Advice {
			v := f.Manifest.Get(keySize)
			bytes, known := v.Size()
			if !v.Set {
				bytes, known = 256<<20, notHidden(f.Manifest, keyEDMM) && !isTrue(f.Manifest, keyEDMM)
			}
			enclave := f.Live.Processes[0].Enclave
			if !known || enclave == 0 || enclave == bytes {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, fmt.Sprintf("The enclave has %s and the manifest says %s, so it is not the one that the program was started with. Other advice may be about settings that are not in use.", mib(enclave), mib(bytes)))
			a.Seen = []advise.Seen{seen("enclave", float64(enclave), "bytes", running), setting(f.Manifest, v, `"256M"`)}
			a.Do = []string{"start the program again with the changed manifest, or name the manifest that it runs with (--manifest)"}
			return a
		},
	}
}
