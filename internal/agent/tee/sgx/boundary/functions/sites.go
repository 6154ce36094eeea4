// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"slices"

	"github.com/teescope/teescope/internal/agent/executable"
)

// Call is a function of an untrusted runtime whose calls cross the boundary of enclaves.
type Call struct {
	Address uint64 // as linked
	Out     bool   // true for an OCALL, false for an ECALL
	Table   bool   // an ECALL whose third argument is the table of the enclave's OCALLs
}

// Calls returns the functions of a runtime in a file, for profiles of calls. The OCALLs of the SDK are not among them: OCalls
// returns those.
func Calls(runtime string, p *executable.Program) ([]Call, error) {
	spots, _, err := runtimes[runtime].find(p)
	if err != nil {
		return nil, err
	}
	var all []Call
	for address, s := range spots {
		if s.direction != enter {
			all = append(all, Call{Address: address, Out: s.direction == ocall, Table: s.role == roleSDKECall})
		}
	}
	return all, nil
}

// OCalls returns the linked addresses of the functions in an OCALL table of the SDK, each once. If it returns an error, the list
// is incomplete.
func OCalls(p *executable.Program, table uint64) ([]uint64, error) {
	all, err := ocallTable(p, table)
	all = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(all))), func(a uint64) bool { return a == 0 })
	return all, err
}
