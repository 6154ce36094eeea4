// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// maxEnclaves is the number of enclaves of a process that are kept.
const maxEnclaves = 64

// span is the memory of an enclave.
type span struct{ start, end uint64 }

// mapped is what one look at the mappings of a process found, in ascending order.
type mapped struct {
	mappings []*Mapping // with code
	enclaves []span
}

// addEnclave adds a mapping, if it is of an enclave. Runtimes map the whole range of an enclave first, and its parts then
// have different permissions. So adjacent mappings are one enclave.
func addEnclave(all []span, m hostfs.Mapping) []span {
	if !tee.IsEnclaveDevice(string(m.Path)) {
		return all
	}
	if n := len(all); n > 0 && all[n-1].end == m.Start {
		all[n-1].end = m.End
		return all
	}
	if len(all) >= maxEnclaves {
		return all
	}
	return append(all, span{m.Start, m.End})
}

// Enclave returns the first address of the enclave that has an address, or 0 if it is not known.
func (t *Table) Enclave(p *Process, address uint64) uint64 {
	for range 2 {
		for _, e := range p.enclaves {
			if address >= e.start && address < e.end {
				return e.start
			}
		}
		if !t.lookAgain(p) {
			break
		}
	}
	return 0
}
