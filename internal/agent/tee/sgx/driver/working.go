// SPDX-License-Identifier: Apache-2.0

package driver

// workingSet estimates the pages that an enclave needed in the enclave page cache in the last minute: resident pages, and
// pages that are not resident but were loaded back in this time. Each page counts once. The result is limited by the number
// of the enclave's pages.
//
// It is an upper bound. A used resident page is distinguished from an unused one only when the driver looks for
// pages to evict. So without pressure the estimate is all resident pages.
func (r *record) workingSet() uint64 {
	return min(uint64(r.Pages), uint64(r.Resident)+uint64(r.Away)<<min(r.Bits, 32))
}
