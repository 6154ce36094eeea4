// SPDX-License-Identifier: Apache-2.0

// Package cost holds the cost of single events, as ranges with sources.
//
// It does not depend on how often an event happens.
package cost

import (
	"fmt"
	"math"
)

// A Cost is the time that one event takes from its thread, as a range: [Cycles], or [Seconds].
type Cost interface {
	// CPU returns the CPU time of events in seconds, as a range. For events per second the result is a number of cores.
	CPU(events float64, clock Clock) (low, high float64)
	// Assumption states this cost in a sentence for the assumptions of an estimate.
	Assumption() string
	// Origin returns the source of the figures.
	Origin() string
}

// Cycles is a cost in cycles of the processor, as most publications state it.
type Cycles struct {
	What      string
	Low, High float64
	Source    string
}

// Seconds is a cost in seconds, as measured on one machine.
type Seconds struct {
	What      string
	Low, High float64
	Source    string
}

// Costs of events, without the work that the event is for. The cost of an OCALL is that of leaving and entering the
// enclave, without the system call outside.
var (
	// OCALL is the cost of one exit from an enclave and the entry that follows it (EEXIT and EENTER together), with the
	// lost caches and translations. It is the one figure for a crossing of the enclave boundary. Rules, alerts,
	// documents and panels state it, and a test compares them with it.
	//
	// HotCalls measured the pair: 8,200 cycles with warm caches and 14,000 with cold ones (Weisse et al., ISCA 2017).
	// Gramine's guide, "Performance tuning and analysis", says that some studies show each EEXIT and EENTER to cost 8,000
	// to 12,000 cycles. It names no study. The published measurements of that size are of the pair, so this range is too.
	OCALL = Cycles{
		What: "an OCALL", Low: 8000, High: 14000,
		Source: "Gramine, Performance tuning and analysis: 8,000 to 12,000 cycles for each EEXIT and EENTER; Weisse et al., HotCalls, ISCA 2017: 8,200 to 14,000",
	}
	// Exitless is the cost of the same call by a thread outside.
	Exitless = Cycles{
		What: "an exitless call", Low: 600, High: 1400,
		Source: "Weisse et al., HotCalls, ISCA 2017: 620 cycles, 1,400 at the 99.97th percentile",
	}
	// AEX is the cost of an interrupt or exception in an enclave and the return to it (ERESUME).
	AEX = Cycles{
		What: "an asynchronous exit", Low: 5000, High: 14000,
		Source: "proposed: at most that of an OCALL, and at least the processor's half of it",
	}
	// Paging is the cost of writing out one enclave page and loading it back.
	Paging = Cycles{
		What: "a page written out and loaded back", Low: 12000, High: 40000,
		Source: "Orenbach et al., Eleos, EuroSys 2017: 12,000 cycles at least for EWB and ELDU together, 40,000 with the fault",
	}
	// Switch is the cost of one context switch, without the caches that it loses.
	Switch = Cycles{
		What: "a context switch", Low: 2000, High: 6000,
		Source: "measured: half a round trip through a pipe on Linux 6.18, 1.3 us (docs/dev/probe-cost.md has the machine)",
	}
	// Fault is the cost of one page fault that needs no device and no enclave page.
	Fault = Cycles{
		What: "a page fault", Low: 1500, High: 5000,
		Source: "measured: 1.1 us on Linux 6.18, on the machine of docs/dev/probe-cost.md",
	}
	// Syscall is the cost of entering and leaving the kernel outside an enclave.
	Syscall = Cycles{
		What: "a system call outside an enclave", Low: 100, High: 400,
		Source: "Gramine, Performance tuning and analysis: about 100 cycles; measured: 103 ns for getppid on Linux 6.18",
	}
	// Handed is the cost of a system call that SCONE hands to a thread outside, for the thread that makes it.
	//
	// TEEMon's authors removed the clock readings of Redis (Krahn et al., Middleware 2020, 6.4): 267,952 operations a second
	// became 621,504, and 370,000 readings a second became 100. That is 2.1 us for an operation and 1.5 us for a reading, at
	// 3.4 GHz. Futex calls were frequent too, and may have taken a part of it. The lower end is half.
	Handed = Cycles{
		What: "a system call in SCONE", Low: 2600, High: 14000,
		Source: "Krahn et al., TEEMon, Middleware 2020, 6.4: 1.5 us for each clock reading that was removed, of which half is certain; at most an OCALL",
	}
	// Added is the cost of a page that is added to a running enclave (EAUG and EACCEPT), without the fault and the exit.
	// Proposed: EAUG zeroes the page (Intel SDM, EAUG), which takes at least as long as in ordinary memory. Both take at
	// most as long as EWB and ELDU, which encrypt and decrypt it as well (Eleos).
	Added = Cycles{
		What: "a page added to a running enclave", Low: 1500, High: 12000,
		Source: "proposed: EAUG zeroes 4 KiB, and EAUG and EACCEPT take at most the 12,000 cycles of EWB and ELDU (Orenbach et al., Eleos, EuroSys 2017)",
	}
	// HostException is the cost of an exception that the guest can only handle by asking the host. Proposed: half of the
	// measured cost of one, because processors differ.
	HostException = Cycles{
		What: "an instruction that causes a #VE or #VC and an exit to the host", Low: 5200, High: 10400,
		Source: "TUM-DSE/CVM_eval, vmexit: 10,400 cycles for CPUID if the host is asked; at least half of it on other processors (proposed)",
	}
	// Exception is the cost of an instruction of a confidential virtual machine that causes a #VE or #VC.
	Exception = Cycles{
		What: "an instruction that causes a #VE or #VC", Low: 1744, High: 10400,
		Source: "TUM-DSE/CVM_eval, vmexit: CPUID in a confidential virtual machine takes 1,744 cycles if the host is not asked, 10,400 if it is",
	}
)

// Clock is the frequency of the processor, as a range if it is unknown.
type Clock struct {
	Low, High float64 // Hz
	Measured  bool    // both are the machine's own figure
}

// UnknownClock covers the processors with SGX or TDX, from E3-1200 v5 to Xeon 6, at base and turbo frequency.
var UnknownClock = Clock{Low: 2.0e9, High: 4.0e9}

// Assumption states this clock in a sentence for the assumptions of an estimate.
func (c Clock) Assumption() string {
	if c.Measured {
		return fmt.Sprintf("the processor runs at %.3g GHz, the highest frequency that the machine reports", c.High/1e9)
	}
	return fmt.Sprintf("the processor runs at %.3g to %.3g GHz: its frequency is not known", c.Low/1e9, c.High/1e9)
}

// CPU implements [Cost].
func (c Cycles) CPU(events float64, clock Clock) (low, high float64) {
	return events * c.Low / clock.High, events * c.High / clock.Low
}

// Assumption implements [Cost].
func (c Cycles) Assumption() string {
	return fmt.Sprintf("%s costs %.0f to %.0f cycles (%s)", c.What, c.Low, c.High, c.Source)
}

// Origin implements [Cost].
func (c Cycles) Origin() string { return c.Source }

// CPU implements [Cost].
func (c Seconds) CPU(events float64, _ Clock) (low, high float64) {
	return events * c.Low, events * c.High
}

// Assumption implements [Cost].
func (c Seconds) Assumption() string {
	if c.Low == c.High {
		return fmt.Sprintf("%s costs %.3g us (%s)", c.What, 1e6*c.Low, c.Source)
	}
	return fmt.Sprintf("%s costs %.3g to %.3g us (%s)", c.What, 1e6*c.Low, 1e6*c.High, c.Source)
}

// Origin implements [Cost].
func (c Seconds) Origin() string { return c.Source }

// Saved returns the CPU time in seconds that events save if each costs the second cost and not the first, as a range. For
// events per second the result is a number of cores. The clock is the same for both.
func Saved(from, to Cost, events float64, clock Clock) (low, high float64) {
	low = math.Inf(1)
	for _, hz := range []float64{clock.Low, clock.High} {
		at := Clock{Low: hz, High: hz}
		fromLow, fromHigh := from.CPU(events, at)
		toLow, toHigh := to.CPU(events, at)
		low, high = min(low, fromLow-toHigh), max(high, fromHigh-toLow)
	}
	return max(low, 0), high
}

// Between returns the range from one cost to another, in the unit of the upper one.
func Between(what string, from Cycles, to Cost, clock Clock) Cost {
	source := func(to string, s string) string {
		return "from " + from.What + " to " + to + ": " + from.Source + "; " + s
	}
	switch to := to.(type) {
	case Seconds:
		low, _ := from.CPU(1, clock)
		return Seconds{What: what, Low: min(low, to.High), High: to.High, Source: source(to.What, to.Source)}
	case Cycles:
		return Cycles{What: what, Low: min(from.Low, to.High), High: to.High, Source: source(to.What, to.Source)}
	}
	return to
}
