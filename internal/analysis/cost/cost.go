// SPDX-License-Identifier: Apache-2.0

// Package cost holds what one event costs, as a range with its source.
//
// It refuses to know how often an event happens.
package cost

import "fmt"

// A Cost is what one event costs the thread that it happens to, as a range: [Cycles], or [Seconds].
type Cost interface {
	// CPU is what so many events cost in seconds of CPU time, as a range. With events per second it is a number of cores.
	CPU(events float64, clock Clock) (low, high float64)
	// Assumption is the sentence that belongs to an estimate made with this cost.
	Assumption() string
	// Origin says where the figures come from.
	Origin() string
}

// Cycles is a cost in cycles of the processor, as most publications state it.
type Cycles struct {
	What      string
	Low, High float64
	Source    string
}

// Seconds is a cost in seconds, as it was measured on one machine.
type Seconds struct {
	What      string
	Low, High float64
	Source    string
}

// Costs of events, without what the event is for: the cost of an OCALL is that of leaving and entering the enclave, and
// not that of the system call outside.
var (
	// OCALL is of one exit from an enclave and the entry that follows it (EEXIT and EENTER together), with the caches and
	// translations lost on the way. It is the one figure for a crossing of the enclave boundary: rules, alerts, documents
	// and panels state it, and a test compares them with it.
	//
	// HotCalls measured the pair: 8,200 cycles with warm caches and 14,000 with cold ones (Weisse et al., ISCA 2017).
	// Gramine's guide, "Performance tuning and analysis", says that some studies show each EEXIT and EENTER to cost 8,000
	// to 12,000 cycles. It names no study. The published measurements of that size are of the pair, so this range is too.
	OCALL = Cycles{
		What: "an OCALL", Low: 8000, High: 14000,
		Source: "Gramine, Performance tuning and analysis: 8,000 to 12,000 cycles; Weisse et al., HotCalls, ISCA 2017: 8,200 to 14,000",
	}
	// Exitless is of the same call handed to a thread outside.
	Exitless = Cycles{
		What: "an exitless call", Low: 600, High: 1400,
		Source: "Weisse et al., HotCalls, ISCA 2017: 620 cycles, 1,400 at the 99.97th percentile",
	}
	// AEX is of an interrupt or exception in an enclave with the return to it (ERESUME).
	AEX = Cycles{
		What: "an asynchronous exit", Low: 5000, High: 14000,
		Source: "proposed: as an OCALL, of which it is the half that the processor does, at least",
	}
	// Paging is of one enclave page written out and loaded back.
	Paging = Cycles{
		What: "a page written out and loaded back", Low: 12000, High: 40000,
		Source: "Orenbach et al., Eleos, EuroSys 2017: EWB and ELDU 12,000 cycles each way at least, 40,000 with the fault",
	}
	// Switch is of one context switch, without the caches lost on it.
	Switch = Cycles{
		What: "a context switch", Low: 2000, High: 6000,
		Source: "measured: half a round trip through a pipe on Linux 6.18, 1.3 us (docs/dev/probe-cost.md has the machine)",
	}
	// Fault is of one page fault that needs no device and no enclave page.
	Fault = Cycles{
		What: "a page fault", Low: 1500, High: 5000,
		Source: "measured: 1.1 us on Linux 6.18, on the machine of docs/dev/probe-cost.md",
	}
	// Syscall is of entering and leaving the kernel outside of any enclave.
	Syscall = Cycles{
		What: "a system call outside an enclave", Low: 100, High: 400,
		Source: "Gramine, Performance tuning and analysis: about 100 cycles; measured: 103 ns for getppid on Linux 6.18",
	}
)

// Clock is how fast the processor goes: a range where it is not known.
type Clock struct {
	Low, High float64 // Hz
	Measured  bool    // both are what the machine says
}

// UnknownClock covers the processors with SGX or TDX, from E3-1200 v5 to Xeon 6, at base and at turbo.
var UnknownClock = Clock{Low: 2.0e9, High: 4.0e9}

// Assumption is the sentence that belongs to an estimate made with this clock.
func (c Clock) Assumption() string {
	if c.Measured {
		return fmt.Sprintf("the processor goes at %.3g GHz, the highest frequency that the machine tells", c.High/1e9)
	}
	return fmt.Sprintf("the processor goes at %.3g to %.3g GHz: its frequency is not known", c.Low/1e9, c.High/1e9)
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

// Between is the range from one cost up to another one, in the unit of the upper one.
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
