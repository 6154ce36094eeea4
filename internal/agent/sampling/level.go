// SPDX-License-Identifier: Apache-2.0

package sampling

// Level is the amount of counting. Each level costs less than the one before.
type Level int

// The levels.
const (
	Full        Level = iota // everything that is configured
	Untimed                  // without the time of system calls
	Sampled                  // frequent events are sampled
	SampledSums              // frequent events are sampled, without counts of watched processes
	Off                      // frequent events are not counted
	Levels                   // number of levels
)

var levelNames = [Levels]string{"full", "untimed", "sampled", "totals", "off"}

func (l Level) String() string { return levelNames[l] }

// Samples reports whether frequent events are sampled at this level.
func (l Level) Samples() bool { return l == Sampled || l == SampledSums }
