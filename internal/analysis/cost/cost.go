// SPDX-License-Identifier: Apache-2.0

// Package cost holds what one event costs, as a range with its source.
//
// It refuses to know how often an event happens.
package cost

import "fmt"

// A Cost is what one event costs the thread that it happens to, as a range of cycles.
type Cost struct {
	What      string
	Low, High float64 // cycles
	Source    string
	// Timed says that Low and High are seconds: what somebody has measured on the machine.
	Timed bool
}

// Costs of events, without what the event is for: an OCALL's cost is that of leaving and entering, and not of the
// system call outside.
var (
	// CostOCALL is of one way out of an enclave and back, with the caches and translations lost on it.
	OCALL = Cost{
		What: "an OCALL", Low: 8000, High: 14000,
		Source: "Gramine, Performance tuning and analysis: 8,000 to 12,000 cycles; Weisse et al., HotCalls, ISCA 2017: 8,200 to 14,000",
	}
	// CostExitless is of the same call handed to a thread outside.
	Exitless = Cost{
		What: "an exitless call", Low: 600, High: 1400,
		Source: "Weisse et al., HotCalls, ISCA 2017: 620 cycles, 1,400 at the 99.97th percentile",
	}
	// CostAEX is of an interrupt or exception in an enclave with the return to it (ERESUME).
	AEX = Cost{
		What: "an asynchronous exit", Low: 5000, High: 14000,
		Source: "proposed: as an OCALL, of which it is the half that the processor does, at least",
	}
	// CostPaging is of one enclave page written out and loaded back.
	Paging = Cost{
		What: "a page written out and loaded back", Low: 12000, High: 40000,
		Source: "Orenbach et al., Eleos, EuroSys 2017: EWB and ELDU 12,000 cycles each way at least, 40,000 with the fault",
	}
	// CostSwitch is of one context switch, without the caches lost on it.
	Switch = Cost{
		What: "a context switch", Low: 2000, High: 6000,
		Source: "measured: half a round trip through a pipe on Linux 6.18, 1.3 us (docs/dev/probe-cost.md has the machine)",
	}
	// CostFault is of one page fault that needs no device and no enclave page.
	Fault = Cost{
		What: "a page fault", Low: 1500, High: 5000,
		Source: "measured: 1.1 us on Linux 6.18, on the machine of docs/dev/probe-cost.md",
	}
	// CostSyscall is of entering and leaving the kernel outside of any enclave.
	Syscall = Cost{
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

// Seconds is what so many events cost, as a range; with events per second it is CPU seconds per second.
func (c Cost) Seconds(events float64, clock Clock) (low, high float64) {
	if c.Timed {
		return events * c.Low, events * c.High
	}
	return events * c.Low / clock.High, events * c.High / clock.Low
}

// Assumption is the sentence that belongs to an estimate made with this cost.
func (c Cost) Assumption() string {
	switch {
	case c.Timed && c.Low == c.High:
		return fmt.Sprintf("%s costs %.3g us (%s)", c.What, 1e6*c.Low, c.Source)
	case c.Timed:
		return fmt.Sprintf("%s costs %.3g to %.3g us (%s)", c.What, 1e6*c.Low, 1e6*c.High, c.Source)
	}
	return fmt.Sprintf("%s costs %.0f to %.0f cycles (%s)", c.What, c.Low, c.High, c.Source)
}
