// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
)

// exitProbe is the probe on the ends of system calls.
const exitProbe = "syscall_exit"

// detachedReason is the reason of a probe that is detached because of its cost.
const detachedReason = "over the budget (overhead.budget): not attached until there is less to count"

// notWantedReason is the reason of the probe on the ends of system calls while nothing is watched or timed.
const notWantedReason = "not switched on: needed while processes are watched, or system calls are timed"

// attachExits attaches the probe on the ends of system calls, or detaches it for a reason. While it is attached, every call
// takes the kernel's slow path.
func (k *kernelSide) attachExits(on bool, reason string) {
	for _, s := range k.status {
		if s.Probe != exitProbe || !s.Attached() {
			continue
		}
		if p := (attachedProbe{s.Probe, s.Program, s.Mechanism}); on {
			k.switches.on(p)
		} else {
			k.switches.stop(p, reason)
		}
	}
}

// current returns the current status of a probe, which may be detached because of its cost.
func (k *kernelSide) current(s bpf.Status) bpf.Status {
	if reason := k.switches.reason(s.Probe); reason != "" {
		return bpf.Status{Probe: s.Probe, Mechanism: bpf.NotAttached, Reason: reason}
	}
	return s
}

// attached reports whether a probe sees events.
func (k *kernelSide) attached(probe string) bool {
	for _, s := range k.status {
		if s.Probe == probe {
			return k.current(s).Attached()
		}
	}
	return false
}

// setTimed switches the timing of system calls on or off.
func (k *kernelSide) setTimed(on bool) error {
	since := &k.controls[0].TimingSince
	if !on {
		atomic.StoreUint64(since, timingOff)
		return nil
	}
	if *since != timingOff {
		return nil
	}
	if err := k.durations.forgetStarts(); err != nil {
		return err
	}
	// Only calls that begin from now on are timed. The probe on their ends is attached already.
	now, err := monotonic()
	if err == nil {
		atomic.StoreUint64(since, now)
	}
	return err
}

// monotonic returns the time as bpf_ktime_get_ns does.
func monotonic() (uint64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("reading the clock: %w", err)
	}
	return uint64(now.Nano()), nil
}

// timed reports whether the time of system calls is measured now.
func (k *kernelSide) timed() bool { return k.controls[0].TimingSince != timingOff }
