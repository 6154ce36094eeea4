// SPDX-License-Identifier: Apache-2.0

// Package estimate bounds what a workload would save and gain without a cause that slows it.
//
// It does not depend on the cause: a rule states the time that the cause takes, and what limits the throughput.
package estimate

import "math"

// MaxShare is the largest share of the time that an estimate removes. A cost per event is a documented range and not a
// measurement, so a twentieth of the time always remains.
const MaxShare = 0.95

// Gain is the additional throughput without the cause, as a ratio: 0.2 is 20 % more. It is an interval. Amdahl's law
// bounds its upper end by the time that the cause can take. A finding has a gain only where something shows what limits
// the workload's throughput: CPU time that is saved elsewhere does not raise it.
type Gain struct {
	Low         float64  `json:"low"`
	High        float64  `json:"high"`
	Limit       string   `json:"limit"` // what limits the throughput now
	Assumptions []string `json:"assumptions"`
	// Operations is the gain in operations per second, where an application counts them.
	Operations *Span `json:"operations_per_second,omitempty"`

	sure float64 // what severity and rank count
}

// Saving is the CPU time that the workload would not use without the cause, in cores: 0.2 is a fifth of one CPU.
type Saving struct {
	Low         float64  `json:"low"`
	High        float64  `json:"high"`
	Assumptions []string `json:"assumptions"`
}

// Amdahl estimates the gain from removing a wait that was measured and takes a share of the time between low and high.
// For a share s the gain is s/(1-s) (G. Amdahl, AFIPS 1967). Shares are clipped to the range from 0 to [MaxShare].
// Severity and rank count the middle of the shares, because the wait itself is certain. It returns nil when a share is NaN
// or the upper one is not positive.
func Amdahl(limit string, low, high float64, assumptions ...string) *Gain {
	if math.IsNaN(low) || math.IsNaN(high) || high <= 0 {
		return nil
	}
	high = min(high, MaxShare)
	low = min(max(low, 0), high)
	return &Gain{Low: more(low), High: more(high), Limit: limit, Assumptions: assumptions, sure: more((low + high) / 2)}
}

func more(share float64) float64 { return share / (1 - share) }

// Saves returns the saving of low to high cores, or nil when a bound is NaN or the upper one is not positive.
func Saves(low, high float64, assumptions ...string) *Saving {
	if math.IsNaN(low) || math.IsNaN(high) || high <= 0 {
		return nil
	}
	return &Saving{Low: min(max(low, 0), high), High: high, Assumptions: assumptions}
}

// A Claim says how CPU time that is saved raises the throughput of a workload.
type Claim struct {
	Limit string // what limits the throughput now; empty: no measurement shows a limit
	// Waiting is the largest number of threads that the cause keeps from running, such as in a queue for a CPU. It raises
	// the upper end of the gain only, because they may wait for something else.
	Waiting float64
	// Unsure is set if the limit is not CPU time. The lower end of the gain is then zero.
	Unsure bool
}

// Gain returns the additional throughput that the saving makes possible for a workload that uses this many cores. At
// best all waiting threads run, and none of their CPU time is for the cause: of cores+waiting threads, waiting+saved
// are gained. Severity and rank count the lower end, because the cost of an event is an assumption. It is nil without a
// limit.
func (s *Saving) Gain(cores float64, c Claim) *Gain {
	if s == nil || c.Limit == "" || cores <= 0 {
		return nil
	}
	low, waiting := s.Low/cores, max(0, c.Waiting)
	if c.Unsure {
		low = 0
	}
	g := Amdahl(c.Limit, low, (waiting+s.High)/(waiting+cores), s.Assumptions...)
	if g != nil {
		g.sure = g.Low
	}
	return g
}

// Sure is the gain that severity and rank count: the lower end where costs are assumed, and the middle of the shares where
// a wait was measured.
func (g *Gain) Sure() float64 {
	if g == nil {
		return 0
	}
	return max(g.sure, g.Low)
}

// And returns the estimate that covers both. Where one of them is missing, the lower end is zero.
func (g *Gain) And(other *Gain) *Gain {
	if g == nil {
		return nil
	}
	both := *g
	if other == nil {
		both.Low, both.sure = 0, 0
		return &both
	}
	both.Low, both.High, both.sure = min(g.Low, other.Low), max(g.High, other.High), min(g.sure, other.sure)
	return &both
}

// And returns the estimate that covers both. Where one of them is missing, the lower end is zero.
func (s *Saving) And(other *Saving) *Saving {
	if s == nil {
		return nil
	}
	both := *s
	if other == nil {
		both.Low = 0
		return &both
	}
	both.Low, both.High = min(s.Low, other.Low), max(s.High, other.High)
	return &both
}

// Assumptions returns the assumptions of both estimates, each once.
func Assumptions(s *Saving, g *Gain) []string {
	var all []string
	seen := make(map[string]bool)
	add := func(lines []string) {
		for _, line := range lines {
			if !seen[line] {
				seen[line] = true
				all = append(all, line)
			}
		}
	}
	if s != nil {
		add(s.Assumptions)
	}
	if g != nil {
		add(g.Assumptions)
	}
	return all
}

// Span is a range of values.
type Span struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Times returns the gain with its additional operations per second, for a workload that does perSecond operations now.
func (g *Gain) Times(perSecond float64) *Gain {
	if g == nil {
		return nil
	}
	more := *g
	more.Operations = &Span{Low: g.Low * perSecond, High: g.High * perSecond}
	return &more
}
