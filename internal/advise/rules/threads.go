// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise/manifest"
)

// exitlessRisk says why Exitless is not for production.
const exitlessRisk = "insecure: not for production. The option reads and writes untrusted memory in a way that CVE-2022-21233 (INTEL-SA-00657) and CVE-2022-21166 (INTEL-SA-00615) concern; each thread outside also takes a CPU"

// rpc returns the number of threads outside. Known is false if a template hides it.
func rpc(m *manifest.Manifest) (n int64, v manifest.Value, known bool) {
	v = m.Get(keyRPC)
	if !v.Set {
		return 0, v, true
	}
	n, known = v.Int()
	return n, v, known && n >= 0
}

// hasNoRPC reports whether the manifest has no threads outside for certain.
func hasNoRPC(m *manifest.Manifest) bool {
	n, _, known := rpc(m)
	return known && n == 0
}
