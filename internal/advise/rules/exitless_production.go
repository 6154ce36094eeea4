// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
)

func exitlessProduction() advise.Rule {
	return advise.Rule{
		ID: "exitless-production", Title: "a production enclave uses an insecure option", Section: sectionExitless,
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "`sgx.insecure__rpc_thread_num` above 0 without `sgx.debug`", Threshold: "any", Source: sectionSyntax + "Number of RPC threads: CVE-2022-21233, CVE-2022-21166",
		Advice: "turn Exitless off",
		Judge: func(f *advise.Facts) *advise.Advice {
			n, v, known := rpc(f.Manifest)
			if !known || n == 0 || !production(f.Manifest) {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "Gramine marks Exitless as insecure: it uses untrusted memory in a way that CVE-2022-21233 and CVE-2022-21166 concern. The enclave is not a debug enclave.")
			a.Seen = []advise.Seen{setting(f.Manifest, v, "0"), setting(f.Manifest, f.Manifest.Get(keyDebug), "false")}
			a.Do = []string{"turn Exitless off in production, and make fewer calls instead"}
			a.Changes, a.Choice = set(keyRPC, "0"), true
			a.Risk = "without Exitless each call leaves the enclave: " + cost.OCALL.Assumption()
			return a
		},
	}
}

// production reports whether the enclave is not a debug enclave for certain.
func production(m *manifest.Manifest) bool { return !isTrue(m, keyDebug) && notHidden(m, keyDebug) }
