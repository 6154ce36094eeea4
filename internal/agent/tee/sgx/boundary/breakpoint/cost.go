// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
)

// assumedCost is the cost of a hit if it cannot be measured: the cost under a hypervisor that intercepts each
// hit.
const assumedCost = 16

// measure measures the cost of a hit of a breakpoint.
func measure(breakpoints *bpf.Breakpoints) (uint8, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	point, err := breakpoints.Set(unix.Gettid(), window.Address())
	if err != nil {
		return assumedCost, err
	}
	if err := point.Switch(true); err != nil {
		return assumedCost, errors.Join(err, point.Close())
	}
	return window.MeasureHit(), point.Close()
}
