// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"fmt"
	"strings"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/executable"
)

// direction is what a call is counted as.
type direction uint8

const (
	ecall      direction = iota
	switchless           // an ECALL that a worker thread inside may take over
	ocall
	enter // EENTER for an ECALL, where that is a function of its own
)

// spot is a function that is probed.
type spot struct {
	direction direction
	role      uint8
	name      string // of the call; empty where the argument tells it
}

// runtime is a kind of untrusted runtime: in which files its functions are, and what they mean.
type runtime struct {
	name string // as the label source begins
	spot func(symbol string) (spot, bool)
	// crossings are the directions each of which is one EENTER and one EEXIT.
	crossings []direction
}

// The names of the runtimes: the label runtime of their files, and how the label source begins.
const (
	SDK         = "sdk"
	OpenEnclave = "openenclave"
	Occlum      = "occlum"
	Gramine     = "gramine"
)

var (
	sdk = &runtime{name: SDK, crossings: []direction{ecall, ocall}, spot: func(symbol string) (spot, bool) {
		switch symbol {
		case "sgx_ecall":
			return spot{ecall, roleSDKECall, ""}, true
		case "sgx_ecall_switchless":
			return spot{switchless, roleSDKECall, ""}, true
		}
		return spot{}, false // OCALLs are found through the table that an ECALL passes along
	}}
	openEnclave = &runtime{name: OpenEnclave, crossings: []direction{enter, ocall}, spot: func(symbol string) (spot, bool) {
		switch symbol {
		case "oe_ecall":
			return spot{ecall, roleOEECall, ""}, true
		// On Linux the function is called __morestack, so that debuggers accept its stack (asmdefs.h).
		case "oe_enter", "oe_vdso_enter", "__morestack":
			return spot{enter, rolePlain, ""}, true
		case "__oe_dispatch_ocall":
			return spot{ocall, roleOEDispatch, ""}, true
		}
		return spot{}, false
	}}
	occlum = &runtime{name: Occlum, crossings: []direction{ecall, ocall}, spot: func(symbol string) (spot, bool) {
		if name, ok := strings.CutPrefix(symbol, "occlum_ecall_"); ok {
			return spot{ecall, rolePlain, name}, true
		}
		name, ok := strings.CutPrefix(symbol, "occlum_ocall_")
		return spot{ocall, rolePlain, name}, ok
	}}
	// Gramine's own counters tell the crossings.
	gramine = &runtime{name: Gramine, spot: func(symbol string) (spot, bool) {
		name, ok := strings.CutPrefix(symbol, "sgx_ocall_")
		return spot{ocall, rolePlain, name}, ok
	}}
)

// runtimes are all kinds by their names.
var runtimes = map[string]*runtime{sdk.name: sdk, openEnclave.name: openEnclave, occlum.name: occlum, gramine.name: gramine}

// plainName takes off what a compiler adds to the name of a function that it made a variant of
// (".constprop.0", ".isra.0"). Parts that it split off (".part.0", ".cold") are entered in the middle of a
// call: they are no functions.
func plainName(symbol string) (name string, variant bool) {
	name, suffix, variant := strings.Cut(symbol, ".")
	if strings.HasPrefix(suffix, "cold") || strings.Contains(suffix, "part") {
		return "", true
	}
	return name, variant
}

// maxSpots bounds the functions of a file that are probed.
const maxSpots = 512

// find looks for the functions of the runtime in the file, by address as linked.
func (r *runtime) find(p *executable.Program) (map[uint64]spot, error) {
	spots, dispatches := map[uint64]spot{}, false
	err := p.Functions(func(fn executable.Function) {
		name, variant := plainName(fn.Name)
		s, ok := r.spot(name)
		// A variant may get its arguments elsewhere.
		if ok && (!variant || s.role == rolePlain) && len(spots) < maxSpots {
			spots[fn.Address] = s
			dispatches = dispatches || s.role == roleOEDispatch
		}
	})
	if err != nil {
		return nil, err
	}
	if r == openEnclave && !dispatches {
		clear(spots) // a __morestack of split stacks, say
	}
	return spots, nil
}

// ocallTable reads the addresses of the OCALLs' bridges from the file that has the table, never from the
// memory of the process: what a file says of itself can only be wrong for those who run that file.
//
//	struct { size_t count; void *ocall[]; }   as sgx_edger8r writes it
func ocallTable(p *executable.Program, address uint64) ([]uint64, error) {
	const most = maxSpots
	head, err := p.Words(address, 1)
	if err != nil {
		return nil, fmt.Errorf("reading the OCALL table: %w", err)
	}
	if head[0] > most {
		return nil, fmt.Errorf("the OCALL table at %#x has %d entries: at most %d are believed", address, head[0], most)
	}
	bridges, err := p.Words(address+8, int(head[0]))
	if err != nil {
		return nil, fmt.Errorf("reading the OCALL table: %w", err)
	}
	return bridges, nil
}
