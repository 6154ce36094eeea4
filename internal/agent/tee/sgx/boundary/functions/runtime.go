// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// direction is the kind of a call.
type direction uint8

const (
	ecall      direction = iota
	switchless           // an ECALL that a worker thread inside may execute
	ocall
	enter // EENTER for an ECALL, if that is a separate function
)

// spot is a function that is probed.
type spot struct {
	direction direction
	role      uint8
	name      string // of the call; empty if the argument determines it
}

// runtime is a kind of untrusted runtime: its functions, and in which files they are.
type runtime struct {
	name string // beginning of the label source
	spot func(symbol string) (spot, bool)
	// crossings are the directions in which each call is one EENTER and one EEXIT.
	crossings []direction
	// worker is the symbol of the function in which a thread outside the enclave makes OCALLs for threads that stay
	// inside. It is empty if the runtime has no such threads, or none that is known.
	worker string
}

// The names of the runtimes. They are values of the label runtime of files, and begin the label source.
const (
	sdkName         = "sdk"
	openEnclaveName = "openenclave"
	occlumName      = "occlum"
	gramineName     = "gramine"
)

var (
	// The worker is of libsgx_uswitchless.a, which is linked into the file that has the OCALLs (sl_fcall_mngr_common.h).
	sdk = &runtime{name: sdkName, crossings: []direction{ecall, ocall}, worker: "process_switchless_call", spot: func(symbol string) (spot, bool) {
		switch symbol {
		case "sgx_ecall":
			return spot{ecall, roleSDKECall, ""}, true
		case "sgx_ecall_switchless":
			return spot{switchless, roleSDKECall, ""}, true
		}
		return spot{}, false // OCALLs are found through the table that an ECALL passes
	}}
	openEnclave = &runtime{name: openEnclaveName, crossings: []direction{enter, ocall}, spot: func(symbol string) (spot, bool) {
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
	occlum = &runtime{name: occlumName, crossings: []direction{ecall, ocall}, spot: func(symbol string) (spot, bool) {
		if name, ok := strings.CutPrefix(symbol, "occlum_ecall_"); ok {
			return spot{ecall, rolePlain, name}, true
		}
		name, ok := strings.CutPrefix(symbol, "occlum_ocall_")
		return spot{ocall, rolePlain, name}, ok
	}}
	// Gramine's own counters count the transitions. The worker is that of Exitless (host_ocalls.c).
	gramine = &runtime{name: gramineName, worker: "rpc_thread_loop", spot: func(symbol string) (spot, bool) {
		name, ok := strings.CutPrefix(symbol, "sgx_ocall_")
		return spot{ocall, rolePlain, name}, ok
	}}
)

// runtimes maps the names to all kinds.
var runtimes = map[string]*runtime{sdk.name: sdk, openEnclave.name: openEnclave, occlum.name: occlum, gramine.name: gramine}

// InFile returns the runtime whose functions a mapped file of a process may have, or "". The functions of Gramine and Open Enclave
// are in the executable itself.
func InFile(detected teelabel.Runtime, file string, isExe bool) string {
	name := path.Base(file)
	switch {
	case detected == teelabel.GramineSGX:
		if isExe {
			return gramineName
		}
	case strings.HasPrefix(name, "libocclum-pal.so"):
		return occlumName
	case strings.HasPrefix(name, "libsgx_urts.so") && detected == teelabel.SDK:
		return sdkName
	case isExe && (detected == teelabel.OpenEnclave || detected == teelabel.EGo || detected == teelabel.SDK):
		return openEnclaveName
	}
	return ""
}

// plainName removes the suffix that a compiler adds to a variant of a function (".constprop.0", ".isra.0"). It
// refuses parts that a compiler split off (".part.0", ".cold"), because a call enters them in its middle.
func plainName(symbol string) (name string, variant bool) {
	name, suffix, variant := strings.Cut(symbol, ".")
	if strings.HasPrefix(suffix, "cold") || strings.Contains(suffix, "part") {
		return "", true
	}
	return name, variant
}

// maxSpots is the limit of probed functions of a file.
const maxSpots = 512

// find returns the functions of the runtime in the file by their linked address, and the function of its workers.
func (r *runtime) find(p *executable.Program) (spots map[uint64]spot, worker executable.Function, err error) {
	dispatches := false
	spots = map[uint64]spot{}
	err = p.Functions(func(fn executable.Function) {
		if r.isWorker(fn) {
			worker = fn
		}
		name, variant := plainName(fn.Name)
		s, ok := r.spot(name)
		// A variant may get its arguments in other registers.
		if ok && (!variant || s.role == rolePlain) && len(spots) < maxSpots {
			spots[fn.Address] = s
			dispatches = dispatches || s.role == roleOEDispatch
		}
	})
	if err != nil {
		return nil, worker, err
	}
	if r == openEnclave && !dispatches {
		clear(spots) // for example a __morestack of split stacks
	}
	return spots, worker, nil
}

// isWorker reports whether the function is the one from which workers call.
func (r *runtime) isWorker(fn executable.Function) bool {
	name, _ := plainName(fn.Name)
	return name != "" && name == r.worker
}

// ocallTable reads the addresses of the OCALLs' bridges. It reads the file that contains the table, never the memory of the
// process. The process chooses the address, and may choose one in a library of the system whose bytes look like a table. So
// the file must be one that makes ECALLs, as the code beside a table does, and an instruction must begin at each bridge for
// certain. The other bridges are 0, and the error has their number.
//
//	struct { size_t count; void *ocall[]; }   as sgx_edger8r writes it
func ocallTable(p *executable.Program, address uint64) ([]uint64, error) {
	const most = maxSpots
	head, err := p.Words(address, 1)
	if err != nil {
		return nil, fmt.Errorf("reading the OCALL table: %w", err)
	}
	if head[0] > most {
		return nil, fmt.Errorf("the OCALL table at %#x has %d entries: at most %d are accepted", address, head[0], most)
	}
	bridges, err := p.Words(address+8, int(head[0]))
	if err != nil {
		return nil, fmt.Errorf("reading the OCALL table: %w", err)
	}
	if err := makesECalls(p); err != nil {
		return nil, err
	}
	certain, err := p.Begins(slices.Compact(slices.Sorted(slices.Values(bridges)))...)
	if err != nil {
		return nil, fmt.Errorf("reading the functions of the OCALL table: %w", err)
	}
	left := 0
	for i, a := range bridges {
		if _, ok := slices.BinarySearch(certain, a); a != 0 && !ok {
			bridges[i] = 0
			left++
		}
	}
	if left > 0 {
		return bridges, fmt.Errorf("for %d functions of the OCALL table at %#x it is not certain that an instruction begins there", left, address)
	}
	return bridges, nil
}

// makesECalls returns an error if a file calls no function of the SDK that makes ECALLs.
func makesECalls(p *executable.Program) error {
	for _, name := range []string{"sgx_ecall", "sgx_ecall_switchless"} {
		if refers, err := p.Refers(name); err != nil || refers {
			return err
		}
	}
	return errors.New("the OCALL table is in a file that makes no ECALLs")
}
