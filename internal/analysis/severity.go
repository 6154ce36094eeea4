// SPDX-License-Identifier: Apache-2.0

package analysis

// The least gains of the severities.
const (
	leastLow    = 0.01
	leastMedium = 0.05
	leastHigh   = 0.20
)

// LeastGain is the gain from which on a severity is given, -1 for an unknown severity.
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

// AtLeast tells whether one severity matters as much as another.
func (s Severity) AtLeast(other Severity) bool { return s.LeastGain() >= other.LeastGain() }

// SeverityOf goes by the middle of the gain. What brings less than 1 %, or nobody knows what, is info.
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

// Weight is what a gain is multiplied by for ranking, 0 for an unknown confidence.
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
