// SPDX-License-Identifier: Apache-2.0

// Package tee detects the trusted execution environments (TEEs) that a machine offers, and which of them a process uses
// under which runtime. It reads only device nodes, module parameters and /proc. Backends read the figures of a TEE, and have
// one folder each. The package does not depend on how metrics are scraped.
package tee

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// Roots are the directories below which the machine is read.
type Roots struct{ Proc, Dev, Sys string }

// Backend reads the figures of one TEE. A new backend is a folder below this package and a line in internal/app.
// A backend that prepares something or has background work also has Init, Run or Shutdown, as a service has
// (package service). The collector internal/agent/collector/teehost uses the backends.
type Backend interface {
	// Name names the backend in errors: the TEE, or the folder of a further backend for the same TEE.
	Name() teelabel.Kind
	// Describe lists every family that Collect can emit. The list is constant.
	Describe() []*metric.Desc
	// Collect emits the samples of one scrape. A machine without this TEE has no samples, and that is not an error. Samples
	// emitted before an error are kept.
	Collect(ctx context.Context, emit func(prometheus.Metric)) error
}

// sgxNodes are the device nodes that create enclaves: of the in-tree driver and the last DCAP driver, of earlier
// DCAP drivers, and of the legacy driver.
var sgxNodes = []string{"sgx_enclave", "sgx/enclave", "isgx"}

// hasSGX reports whether a driver offers enclaves.
func (r Roots) hasSGX() bool {
	for _, node := range sgxNodes {
		if hostfs.At(r.Dev).Exists(node) {
			return true
		}
	}
	return false
}

// Available returns, for each kind, whether the machine offers it to workloads or runs inside it.
func (d *Detector) Available() map[teelabel.Kind]bool {
	return map[teelabel.Kind]bool{
		teelabel.SGX:   d.roots.hasSGX(),
		teelabel.TDX:   d.guest == teelabel.TDX || IsOn(d.roots.Sys, "module/kvm_intel/parameters/tdx"),
		teelabel.SEV:   d.guest == teelabel.SEV || IsOn(d.roots.Sys, "module/kvm_amd/parameters/sev"),
		teelabel.CCA:   d.guest == teelabel.CCA, // no released kernel hosts realms
		teelabel.Nitro: IsParent(d.roots),
	}
}

// IsParent reports whether the machine can run Nitro Enclaves (drivers/virt/nitro_enclaves).
func IsParent(r Roots) bool { return hostfs.At(r.Dev).Exists("nitro_enclaves") }

// GuestOf returns the TEE in which the whole machine runs.
func GuestOf(r Roots) teelabel.Kind {
	switch {
	case hostfs.At(r.Dev).Exists("tdx_guest"):
		return teelabel.TDX
	case hostfs.At(r.Dev).Exists("sev-guest"):
		return teelabel.SEV
	case hostfs.At(r.Sys).Exists("devices/platform/arm-cca-dev"): // arch/arm64/kernel/rsi.c, from Linux 6.13 on
		return teelabel.CCA
	}
	return teelabel.None
}

// IsOn returns the value of a boolean module parameter.
func IsOn(sys string, parameter string) bool {
	data, err := hostfs.At(sys).Read(64, parameter)
	if err != nil {
		return false
	}
	value := strings.TrimSpace(string(data))
	return value == "Y" || value == "1"
}
