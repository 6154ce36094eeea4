// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/teescope/teescope/internal/advise"
)

const (
	pageSize = 4096
	// leastSize and mostSize bound the sizes of an enclave that advice asks for. Gramine's default with EDMM is 1 TiB.
	leastSize, mostSize = 1 << 20, 1 << 44
)

// largerSize returns the smallest power of two above a size, as the manifest writes it. It returns false if no enclave has that size.
func largerSize(bytes uint64) (next uint64, setting string, ok bool) {
	if bytes < leastSize || bytes >= mostSize {
		return 0, "", false
	}
	next = 1 << bits.Len64(bytes)
	return next, fmt.Sprintf(`"%dM"`, next>>20), true
}

// edmm completes advice to turn EDMM on, where the machine has it. EDMM takes Gramine 1.4, SGX2 and Linux 6.0.
func edmm(f *advise.Facts, a *advise.Advice) {
	can, known := f.Machine.EDMM()
	switch {
	case known && can:
		a.Do = append([]string{"turn EDMM on: memory is added when it is used (Gramine 1.4 and later)"}, a.Do...)
		a.Changes = set(keyEDMM, "true")
		if isTrue(f.Manifest, keyPreheat) {
			a.Do = slices.Insert(a.Do, 1, "turn preheating off with it: Gramine does not start with both")
			a.Changes = append(a.Changes, set(keyPreheat, "false")...)
		}
		a.Choice = true
		a.Risk = "adding a page to a running enclave takes exits: a program that allocates and frees often gets slower. Measure both (teescope compare)"
	case !known:
		a.Do = append(a.Do, "if the processor has SGX2 and the kernel is 6.0 or later, turn EDMM on (sgx.edmm_enable). To have that checked, name the output of is-sgx-available with --machine")
	}
}
