// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"fmt"
	"strconv"

	"github.com/teescope/teescope/internal/run"
)

// Recorded returns the repetitions of recorded runs as a table: the labels are the settings.
func Recorded(all []*run.Run) ([]Run, error) {
	t := newTable()
	for _, r := range all {
		for _, repetition := range repetitions(r) {
			one := Run{Settings: make(map[string]string), Outcomes: make(map[string]float64)}
			for name, value := range r.Meta.Labels {
				if err := t.set(one, name, value); err != nil {
					return nil, err
				}
			}
			for _, o := range r.Outcomes {
				if o.Repetition != repetition {
					continue
				}
				if err := t.outcome(one, o.Name, strconv.FormatFloat(o.Value, 'g', -1, 64)); err != nil {
					return nil, err
				}
			}
			if t.runs = append(t.runs, one); len(t.runs) > Max {
				return nil, fmt.Errorf("more than %d repetitions", Max)
			}
		}
	}
	if _, err := t.done(); err != nil {
		return nil, fmt.Errorf("the recorded runs have %d repetitions with %d labels and %d outcomes: there must be some of each", len(t.runs), len(t.settings), len(t.outcomes))
	}
	return t.runs, nil
}

// repetitions returns the numbers of the repetitions with outcomes, in the order of the file.
func repetitions(r *run.Run) []int {
	var all []int
	seen := map[int]bool{}
	for _, o := range r.Outcomes {
		if !seen[o.Repetition] {
			seen[o.Repetition] = true
			all = append(all, o.Repetition)
		}
	}
	return all
}
