// SPDX-License-Identifier: Apache-2.0

package rules

import "github.com/teescope/teescope/internal/analysis/engine"

// teeKind is the TEE that a workload runs in, as teescope_workload_info spells it.
type teeKind string

const (
	teeUnknown teeKind = "" // not measured
	teeNone    teeKind = "none"
	teeSGX     teeKind = "sgx"
	teeTDX     teeKind = "tdx"
	teeSEV     teeKind = "sev"
)

// place is the TEE and the runtime of a workload.
type place struct {
	tee     teeKind
	runtime string // as teescope_workload_info spells it; empty when unknown. Some runtimes also run outside an enclave
}

// placeOf reads the signal tee. The processes of a workload may differ. A process in an enclave ranks above one in
// another TEE, and that one above a process in no TEE. Among equals, a process with a known runtime wins.
func placeOf(w engine.Workload) place {
	var p place
	for _, s := range w.Samples(teeSignal) {
		found := place{teeKind(s.Labels["tee"]), s.Labels["runtime"]}
		if found.tee == teeUnknown {
			found.tee = teeNone // the workload is known, but no TEE is named
		}
		if found.rank() > p.rank() || found.rank() == p.rank() && p.runtime == "" {
			p = found
		}
	}
	return p
}

func (p place) rank() int {
	switch p.tee {
	case teeUnknown:
		return 0
	case teeNone:
		return 1
	case teeSGX:
		return 3
	}
	return 2
}

// known reports whether the place was measured. Rules about enclaves say nothing where it was not, because their advice
// would be wrong for a program outside an enclave.
func (p place) known() bool { return p.tee != teeUnknown }

// enclave reports whether the workload has an SGX enclave. Its system calls then leave the TEE.
func (p place) enclave() bool { return p.tee == teeSGX }

// protected reports whether the workload is known to run in a TEE: an enclave or a confidential virtual machine.
func (p place) protected() bool { return p.tee != teeUnknown && p.tee != teeNone }
