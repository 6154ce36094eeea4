// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"slices"
)

// The families of one enclave, by its number (A) and its process (B).
const (
	enclaveSize     = "sgx_enclave_size_bytes"
	enclaveResident = "sgx_enclave_resident_bytes"
	enclavePagedOut = "sgx_enclave_paged_out_bytes"
	enclaveVersions = "sgx_enclave_version_array_bytes"
	enclaveAdded    = "sgx_enclave_pages_added_total"
)

// enclaveLines returns the table of enclaves. Those that use the most of the enclave page cache come first.
func (sc screen) enclaveLines() []string {
	st, all := newStyles(), sc.table.Enclaves
	of := func(family string, e Series) float64 { return one(all, Series{family, e.A, e.B}) }
	var list []Series
	for s := range all {
		if s.Family == enclaveSize {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b Series) int {
		return cmp.Or(
			cmp.Compare(of(enclaveResident, b), of(enclaveResident, a)), cmp.Compare(of(enclaveSize, b), of(enclaveSize, a)),
			cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
	})
	line := func(cells ...string) string {
		text := left(cells[0], 10) + left(cells[1], 12)
		for _, c := range cells[2:] {
			text += right(c, 11)
		}
		return left(text, sc.width)
	}
	lines := []string{st.heading.Render(line("ENCLAVE", "PID", "SIZE", "RESIDENT", "PAGED OUT", "VERSIONS", "ADDED/s"))}
	for _, e := range list {
		lines = append(lines, line(" "+e.A, e.B, size(of(enclaveSize, e)), size(of(enclaveResident, e)),
			size(of(enclavePagedOut, e)), size(of(enclaveVersions, e)), number(of(enclaveAdded, e))))
	}
	if len(list) == 0 {
		lines = append(lines, cut(" none, or the driver does not report each enclave", sc.width))
	}
	return lines
}
