// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"fmt"
	"os"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
)

const (
	// assumedStepping is the cost of a single-stepped hit if it cannot be measured.
	assumedStepping = 40
	// costReturn is the cost of probing a return, and of finding the pairs of calls: 0.45 us for each call (6.18, a virtual
	// machine, n=250,000), beside 0.9 us without them.
	costReturn = 2
)

// measureStepping measures the cost of a hit that the kernel single-steps, in hits on an emulated instruction. It
// is 2 to 4 on bare metal and 40 under some hypervisors.
func measureStepping(call *bpf.UserProbe) (uint8, error) {
	const self = "/proc/self/exe"
	f, err := os.Open(self)
	if err != nil {
		return assumedStepping, err
	}
	defer f.Close()
	p, err := executable.Read(f)
	if err != nil {
		return assumedStepping, fmt.Errorf("reading this program: %w", err)
	}
	where, err := p.ProbePoint(window.Address())
	const ret = 0xc3
	if code, ok := p.Bytes(window.Address(), 1); err != nil || !ok || code[0] != ret {
		return assumedStepping, window.ErrNotMeasurable
	}
	l, err := call.Attach(self, []bpf.Site{{Offset: where.Offset, Cookie: window.NoFile}})
	if err != nil {
		return assumedStepping, err
	}
	return window.MeasureHit(), l.Close()
}
