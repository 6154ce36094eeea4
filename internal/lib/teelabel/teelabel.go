// SPDX-License-Identifier: Apache-2.0

// Package teelabel has the values of the labels tee and runtime. The agent sets them, and other parts compare with them. It
// does not detect a TEE.
package teelabel

// Kind is a trusted execution environment (TEE), as the label tee of teescope_workload_info names it.
type Kind string

// The kinds of TEE.
const (
	Unknown Kind = "" // not measured, or not named
	None    Kind = "none"
	SGX     Kind = "sgx"
	TDX     Kind = "tdx"
	SEV     Kind = "sev"
	CCA     Kind = "cca"   // a realm of Arm
	Nitro   Kind = "nitro" // enclaves of this machine, which is their parent
)

// IsTEE reports whether the kind is known and is a TEE. This includes kinds that this package does not list.
func (k Kind) IsTEE() bool { return k != Unknown && k != None }

// Runtime is a runtime that starts programs in a TEE, as the label runtime names it. It is empty when unknown. Some
// runtimes also run programs outside a TEE.
type Runtime string

// The runtimes that the agent recognises.
const (
	GramineSGX    Runtime = "gramine-sgx"
	GramineDirect Runtime = "gramine-direct" // without an enclave
	Occlum        Runtime = "occlum"
	SCONE         Runtime = "scone"
	SDK           Runtime = "sgx-sdk" // Intel's
	OpenEnclave   Runtime = "openenclave"
	EGo           Runtime = "ego"
	FortanixEDP   Runtime = "fortanix-edp"
	SGXLKL        Runtime = "sgx-lkl"
	GrapheneSGX   Runtime = "graphene-sgx" // Gramine's predecessor
)
