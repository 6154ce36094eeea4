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

// place is what a workload runs in.
type place struct {
	tee     teeKind
	runtime string // as teescope_workload_info spells it; empty when none is recognised. Some run outside of enclaves
}

// placeOf reads the signal tee. Of the processes of a workload it takes one in an enclave before one in another TEE, and
// that before one in none; of equals it takes one with a runtime.
func placeOf(w engine.Workload) place {
	var p place
	for _, s := range w.Samples(teeSignal) {
		found := place{teeKind(s.Labels["tee"]), s.Labels["runtime"]}
		if found.tee == teeUnknown {
			found.tee = teeNone // the workload is known, and its TEE is not named
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

// known tells whether it was measured what the workload runs in. Rules about enclaves are silent where it was not: a
// program outside of an enclave must not get advice about leaving it.
func (p place) known() bool { return p.tee != teeUnknown }

// enclave tells whether the workload has an SGX enclave, so that system calls leave the TEE.
func (p place) enclave() bool { return p.tee == teeSGX }

// protected tells whether the workload is known to run in a TEE, an enclave or a confidential virtual machine.
func (p place) protected() bool { return p.tee != teeUnknown && p.tee != teeNone }
