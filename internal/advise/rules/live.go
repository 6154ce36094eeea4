// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
)

const (
	// running names the processes of a running program as a source.
	running = "the running processes"
	// runtimeSGX is the runtime of a program in an enclave of Gramine (package teelabel).
	runtimeSGX    = "gramine-sgx"
	runtimeDirect = "gramine-direct"
)

// slotsUsed returns the threads that need a slot of the enclave, of the process that has most. Threads of Exitless never enter,
// and gramine-direct has none of them.
func slotsUsed(f *advise.Facts) int64 {
	p := f.Live.Largest(func(p advise.Process) int { return p.Threads })
	used := int64(p.Threads)
	if n, _, known := rpc(f.Manifest); known && f.Live.Runtime == runtimeSGX {
		used -= n
	}
	return max(used, 0)
}

// processes returns how many processes with an enclave run, or else how many wrote SGX stats.
func processes(f *advise.Facts) advise.Seen {
	if f.Has(advise.Running) {
		return seen("processes", float64(len(f.Live.Processes)), "1", running)
	}
	return seen("processes", float64(f.Stats.Processes), "1", at(f.StatsFile, f.Stats.Line))
}
