// SPDX-License-Identifier: Apache-2.0

// Package aex lists why threads leave enclaves asynchronously, and the tracepoints that show it. The programs at these are in
// bpf/include/aex_programs.h. It attaches and counts nothing.
package aex

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// The causes of an AEX, as indices of Causes.
const (
	Other      = causeOther
	PageFault  = causePageFault
	Timer      = causeTimer
	Reschedule = causeReschedule
	Device     = causeDevice
)

// Causes has a value for each cause.
type Causes[T any] [causes]T

// Names are the values of the label cause.
var Names = Causes[string]{Other: "other", PageFault: "page_fault", Timer: "timer", Reschedule: "reschedule", Device: "device"}

// Event is a program and the tracepoint at which it sees a cause.
type Event struct {
	Program, Tracepoint string
	Cause               int
}

// Events are the programs of all causes.
var Events = []Event{
	{"aex_page_fault", "page_fault_user", PageFault},
	{"aex_timer", "local_timer_entry", Timer},
	{"aex_device", "irq_handler_entry", Device},
	{"aex_reschedule", "reschedule_entry", Reschedule},
	{"aex_function", "call_function_entry", Other},
	{"aex_function_single", "call_function_single_entry", Other},
	{"aex_work", "irq_work_entry", Other},
}

// errOtherClock means that timer and devices may interrupt in another way than on a real machine: Hyper-V delivers both by
// vectors without these tracepoints, and Xen delivers its timer as a device. A count would then be too small or another's.
var errOtherClock = errors.New("the timer of this machine is not that of its processors (current_device of clockevent0), " +
	"so the hypervisor may interrupt in another way than these tracepoints show")

// Seen returns an error if not all events of a cause pass its tracepoint.
func Seen(sys hostfs.Root, cause int) error {
	if cause != Timer && cause != Device {
		return nil
	}
	clock, err := sys.Read(64, "devices/system/clockevents/clockevent0/current_device")
	if err != nil {
		return fmt.Errorf("finding out how the timer interrupts: %w", err)
	}
	if !bytes.HasPrefix(clock, []byte("lapic")) {
		return errOtherClock
	}
	return nil
}
