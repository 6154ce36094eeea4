// SPDX-License-Identifier: Apache-2.0

package teelabel

import "testing"

func TestIsTEE(t *testing.T) {
	for kind, want := range map[Kind]bool{Unknown: false, None: false, SGX: true, TDX: true, SEV: true, "cca": true} {
		if kind.IsTEE() != want {
			t.Errorf("%q: %t, want %t", kind, kind.IsTEE(), want)
		}
	}
}
