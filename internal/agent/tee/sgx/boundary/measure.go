// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"reflect"
	goruntime "runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
)

// Costs of one hit, in those of a cheap one, which is about 0.6 us. The others are what is assumed where they
// cannot be measured.
const (
	costEmulated   = 1
	costStepped    = 40
	costBreakpoint = 16
)

// returns is a function of one instruction, a return, which the kernel does not emulate.
//
//go:noinline
func returns() {}

// measureStepping tells what a hit costs where the kernel executes the instruction under single stepping, in
// hits on an emulated one: 2 to 4 on bare metal, 40 under some hypervisors. It probes a function of this very
// program, so that nobody else pays.
func (k *kernelSide) measureStepping() (uint8, error) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return costStepped, err
	}
	defer f.Close()
	p, err := readProgram(f)
	if err != nil {
		return costStepped, fmt.Errorf("reading this program: %w", err)
	}
	offset, ok := p.offset(uint64(reflect.ValueOf(returns).Pointer()), elf.PF_X)
	const ret = 0xc3
	if code := make([]byte, 1); !ok || readAt(f, offset, code) != nil || code[0] != ret {
		return costStepped, errors.New("this program was built in a way that does not let it be measured")
	}
	l, err := k.call.Attach("/proc/self/exe", []bpf.Site{{Offset: offset, Cookie: cookie(maxFiles, rolePlain, 0, 0)}})
	if err != nil {
		return costStepped, err
	}
	return costOfReturns(), l.Close()
}

// measureBreakpoints tells what a hit of a breakpoint costs, in the same unit: 16 under a hypervisor that wants to
// know of each.
func (k *kernelSide) measureBreakpoints() (uint8, error) {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	point, err := k.breakpoints.Set(unix.Gettid(), uint64(reflect.ValueOf(returns).Pointer()))
	if err != nil {
		return costBreakpoint, err
	}
	if err := point.Switch(true); err != nil {
		return costBreakpoint, errors.Join(err, point.Close())
	}
	return costOfReturns(), point.Close()
}

// costOfReturns is that of one call of returns, while it is probed.
func costOfReturns() uint8 {
	const (
		hits  = 50
		cheap = 600 * time.Nanosecond
	)
	best := time.Hour // of a few rounds: the others were interrupted
	for range 4 {
		began := time.Now()
		for range hits {
			returns()
		}
		best = min(best, time.Since(began))
	}
	return uint8(min(max(best/hits/cheap, 1), 255))
}
