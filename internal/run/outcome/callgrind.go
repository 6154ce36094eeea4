// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"fmt"
	"strings"

	"github.com/teescope/teescope/internal/lib/lazy"
)

// Callgrind is the tool of Valgrind that counts the instructions of a program on a simulated processor.
const Callgrind = "callgrind"

var (
	callgrindLine = lazy.Regexp(`^==([0-9]+)== (Callgrind,|Events +:|Collected +:)(.*)$`)
	// callgrindEvents are the outcomes and the events of callgrind that they add up (callgrind/sim.c and bbcc.c).
	callgrindEvents = []struct {
		name   string
		events []string
	}{
		{"instructions", []string{"Ir"}}, {"branches", []string{"Bc", "Bi"}}, {"branch_misses", []string{"Bcm", "Bim"}},
	}
)

// callgrind reads the counts that callgrind prints at the end of each process, and adds up those of all processes. Branches are
// there with --branch-sim=yes.
func callgrind(all []string) []section {
	s := section{tool: Callgrind}
	sums, named, processes, titled := map[string]float64{}, map[string][]string{}, 0, false
	for _, line := range all {
		if !strings.HasPrefix(line, "==") {
			continue
		}
		m := callgrindLine().FindStringSubmatch(line)
		switch {
		case m == nil:
		case strings.HasPrefix(m[2], "Callgrind"):
			titled = true
		case strings.HasPrefix(m[2], "Events"):
			if len(named) < maxOutcomes {
				named[m[1]] = strings.Fields(m[3])
			}
		default:
			values := strings.Fields(m[3])
			if len(values) != len(named[m[1]]) {
				continue
			}
			processes++
			for i, name := range named[m[1]] {
				if v, ok := number(values[i]); ok {
					sums[name] += v
				}
			}
		}
	}
	if !titled || processes == 0 {
		return nil
	}
	for _, e := range callgrindEvents {
		sum, known := 0.0, false
		for _, name := range e.events {
			v, there := sums[name]
			sum, known = sum+v, known || there
		}
		if !known {
			continue
		}
		if o := s.custom(e.name, e.name, sum, Lower); processes > 1 {
			o.Note = fmt.Sprintf("of %d processes", processes)
		}
	}
	return []section{s}
}
