// SPDX-License-Identifier: Apache-2.0

// Package tee says which trusted execution environments a machine offers, and which of them a process
// uses under which runtime. It looks at device nodes, module parameters and /proc only; the figures of
// a TEE are for the backends, one folder each. It refuses to know how metrics are scraped.
package tee

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/metric"
)

// Kind is a TEE, as the label tee spells it.
type Kind string

// The kinds. None is the value for a workload that runs in no TEE.
const (
	SGX  Kind = "sgx"
	TDX  Kind = "tdx"
	SEV  Kind = "sev"
	None Kind = "none"
)

// Roots are where the machine is looked at.
type Roots struct{ Proc, Dev, Sys string }

// Backend reads the figures of one TEE. A new one is a folder below this package and a line in
// internal/app. One that has to prepare something, or has work of its own, also has Init, Run or Shutdown, as
// a service has (package service): internal/agent/collector/teehost serves it.
type Backend interface {
	// Name is the TEE, and so the name of the folder.
	Name() Kind
	// Describe lists every family that Collect can emit. It is constant.
	Describe() []*metric.Desc
	// Collect emits the samples of one scrape. A machine without this TEE is no error and has no
	// samples. What was emitted before an error is kept.
	Collect(ctx context.Context, emit func(prometheus.Metric)) error
}

// sgxNodes are the device nodes that make enclaves: of the in-tree driver and DCAP's last, of DCAP's
// earlier ones, and of the legacy driver.
var sgxNodes = []string{"sgx_enclave", "sgx/enclave", "isgx"}

// hasSGX tells whether a driver offers enclaves.
func (r Roots) hasSGX() bool {
	for _, node := range sgxNodes {
		if hostfs.At(r.Dev).Exists(node) {
			return true
		}
	}
	return false
}

// Available tells, for each kind, whether the machine offers it to workloads or runs inside it.
func (d *Detector) Available() map[Kind]bool {
	return map[Kind]bool{
		SGX: d.roots.hasSGX(),
		TDX: d.guest == TDX || IsOn(d.roots.Sys, "module/kvm_intel/parameters/tdx"),
		SEV: d.guest == SEV || IsOn(d.roots.Sys, "module/kvm_amd/parameters/sev"),
	}
}

// guestOf says which TEE the whole machine runs in.
func guestOf(r Roots) Kind {
	switch {
	case hostfs.At(r.Dev).Exists("tdx_guest"):
		return TDX
	case hostfs.At(r.Dev).Exists("sev-guest"):
		return SEV
	}
	return None
}

// IsOn reads a boolean module parameter.
func IsOn(sys string, parameter string) bool {
	data, err := hostfs.At(sys).Read(64, parameter)
	if err != nil {
		return false
	}
	value := strings.TrimSpace(string(data))
	return value == "Y" || value == "1"
}
