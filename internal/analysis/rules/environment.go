// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// environment is the TEE and the runtime of a workload.
type environment struct {
	kind    teelabel.Kind
	runtime teelabel.Runtime
}

// environmentOf reads the signal tee. The processes of a workload may differ. A process in an enclave ranks above one in
// another TEE, and that one above a process in no TEE. Among equals, a process with a known runtime wins.
func environmentOf(w engine.Workload) environment {
	var e environment
	for _, s := range w.Samples(teeSignal) {
		found := environment{teelabel.Kind(s.Labels["tee"]), teelabel.Runtime(s.Labels["runtime"])}
		if found.kind == teelabel.Unknown {
			found.kind = teelabel.None // the workload is known, but no TEE is named
		}
		if found.rank() > e.rank() || found.rank() == e.rank() && e.runtime == "" {
			e = found
		}
	}
	return e
}

func (e environment) rank() int {
	switch e.kind {
	case teelabel.Unknown:
		return 0
	case teelabel.None:
		return 1
	case teelabel.SGX:
		return 3
	}
	return 2
}

// known reports whether the environment was measured. Otherwise rules about enclaves are silent, because their advice would
// be wrong for a program outside an enclave.
func (e environment) known() bool { return e.kind != teelabel.Unknown }

// enclave reports whether the workload has an SGX enclave. Its system calls then leave the TEE.
func (e environment) enclave() bool { return e.kind == teelabel.SGX }

// protected reports whether the workload is known to run in a TEE: an enclave or a confidential virtual machine.
func (e environment) protected() bool { return e.kind.IsTEE() }
