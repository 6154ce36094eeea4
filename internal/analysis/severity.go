// SPDX-License-Identifier: Apache-2.0

package analysis

import "github.com/teescope/teescope/internal/analysis/estimate"

// The least gains of the severities.
const (
	leastLow    = 0.01
	leastMedium = 0.05
	leastHigh   = 0.20
	// leastCores is the least saving that is low, of any workload. Proposed: less than a hundredth of a core is worth no
	// alert, and programs that do little reach 1 % of their own time by chance.
	leastCores = 0.01
)

// LeastGain returns the least gain of a severity, or -1 for an unknown one.
func (s Severity) LeastGain() float64 {
	switch s {
	case High:
		return leastHigh
	case Medium:
		return leastMedium
	case Low:
		return leastLow
	case Info:
		return 0
	}
	return -1
}

// AtLeast reports whether s is as severe as other, or more.
func (s Severity) AtLeast(other Severity) bool { return s.LeastGain() >= other.LeastGain() }

// CountAtLeast counts the entries of a list that are as severe as least, or more.
func CountAtLeast[T any](list []T, severity func(T) Severity, least Severity) int {
	n := 0
	for _, entry := range list {
		if severity(entry).AtLeast(least) {
			n++
		}
	}
	return n
}

// SeverityOf returns the severity of the certain part of a gain. Without a gain, CPU time that is saved is low from 1 %
// of the cores that the workload uses and from 0.01 cores. Everything else is info.
func SeverityOf(g *estimate.Gain, s *estimate.Saving, cores float64) Severity {
	return severityOf(g, s, cores, 1)
}

// severityOf is [SeverityOf] for a part of the least gains.
func severityOf(g *estimate.Gain, s *estimate.Saving, cores, part float64) Severity {
	if g != nil {
		for _, severity := range []Severity{High, Medium, Low} {
			if g.Sure() >= part*severity.LeastGain() {
				return severity
			}
		}
	}
	if s != nil && s.Low >= part*max(leastLow*cores, leastCores) {
		return Low
	}
	return Info
}

// Closing is the fraction of its threshold below which an open finding ends.
const Closing = 0.8

// SeverityWhile is [SeverityOf] for a finding that was open with another severity. It falls only when the gain is clearly
// below the least gain of that severity. An empty severity means that the finding was not open.
func SeverityWhile(was Severity, g *estimate.Gain, s *estimate.Saving, cores float64) Severity {
	now := SeverityOf(g, s, cores)
	if was == "" || now.AtLeast(was) {
		return now
	}
	if kept := severityOf(g, s, cores, Closing); !kept.AtLeast(was) {
		return kept
	}
	return was
}

// Weight is the factor of a gain in the ranking. It is 0 for an unknown confidence.
func (c Confidence) Weight() float64 {
	switch c {
	case Measured:
		return 1
	case Likely:
		return 0.8
	case Possible:
		return 0.5
	}
	return 0
}
