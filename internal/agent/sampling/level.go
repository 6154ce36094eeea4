// SPDX-License-Identifier: Apache-2.0

package sampling

// Level is how much is counted. Each costs less than the one before.
type Level int

// The levels.
const (
	Full        Level = iota // everything that was asked for
	Untimed                  // without the time of system calls
	Sampled                  // frequent events are sampled
	SampledSums              // the same, and watched processes are not broken down
	Off                      // frequent events are not counted
	Levels                   // how many there are
)

var levelNames = [Levels]string{"full", "untimed", "sampled", "totals", "off"}

func (l Level) String() string { return levelNames[l] }

// Samples tells whether frequent events are sampled at this level.
func (l Level) Samples() bool { return l == Sampled || l == SampledSums }

// ladder lists the levels that make a difference for what was asked for.
func (g *Governor) ladder() []Level {
	all := []Level{Full}
	if g.Timing {
		all = append(all, Untimed)
	}
	if g.Watching {
		return append(all, SampledSums, Off)
	}
	return append(all, Sampled, Off)
}
