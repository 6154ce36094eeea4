// SPDX-License-Identifier: Apache-2.0

package analysis

// The least gains of the severities.
const (
	leastLow    = 0.01
	leastMedium = 0.05
	leastHigh   = 0.20
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

// SeverityOf returns the severity of a gain by its middle. A gain below 1 %, and an unknown one, is info.
func SeverityOf(g *Gain) Severity {
	if g != nil {
		for _, s := range []Severity{High, Medium, Low} {
			if g.Mid() >= s.LeastGain() {
				return s
			}
		}
	}
	return Info
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
