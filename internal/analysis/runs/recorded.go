// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/condition"
)

// Recorded returns the repetitions of recorded runs as a table. The settings are the labels, and what the runs know of the
// machine and of the program where that differs between them, such as a variable or a key of a manifest.
func Recorded(all []*run.Run) ([]Run, error) {
	t := newTable()
	names := differing(all)
	for _, r := range all {
		for _, repetition := range repetitions(r) {
			one := Run{Settings: make(map[string]string), Outcomes: make(map[string]float64)}
			for name, value := range r.Meta.Labels {
				if err := t.set(one, name, value); err != nil {
					return nil, err
				}
			}
			if err := t.conditions(one, r, names); err != nil {
				return nil, err
			}
			for _, o := range r.Outcomes {
				if o.Repetition != repetition {
					continue
				}
				if err := t.outcome(one, o.Name, strconv.FormatFloat(o.Value, 'g', -1, 64)); err != nil {
					return nil, err
				}
			}
			if t.runs = append(t.runs, one); len(t.runs) > maxRuns {
				return nil, fmt.Errorf("more than %d repetitions", maxRuns)
			}
		}
	}
	if _, err := t.done(); err != nil {
		return nil, fmt.Errorf("the recorded runs have %d repetitions with %d labels and %d outcomes: there must be some of each", len(t.runs), len(t.settings), len(t.outcomes))
	}
	return t.runs, nil
}

// differing returns the names of conditions that all runs know and that differ between them, sorted. Hashes and commits are
// omitted: they show that something has changed, and not what.
func differing(all []*run.Run) (names []string) {
	known, values := make(map[string]int), make(map[string]map[string]bool)
	for _, r := range all {
		seen := make(map[string]bool) // a file may name one twice
		for _, c := range r.Meta.Conditions {
			if seen[c.Name] || !compares(c) {
				continue
			}
			seen[c.Name] = true
			known[c.Name]++
			if values[c.Name] == nil {
				values[c.Name] = make(map[string]bool)
			}
			values[c.Name][c.Value] = true
		}
	}
	for name, n := range known {
		if n == len(all) && len(values[name]) > 1 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// compares reports whether a condition can be a setting.
func compares(c run.Condition) bool {
	kind := condition.Kind(c.Kind)
	opaque := strings.HasPrefix(c.Name, "program_") || strings.HasPrefix(c.Name, "git_") || strings.HasPrefix(c.Value, "sha256:")
	return (kind == condition.Identity || kind == condition.Program) && !opaque && c.Name != "" && len(c.Name) <= maxName && c.Value != "" && len(c.Value) <= maxText &&
		text.Terminal(c.Name+c.Value) == c.Name+c.Value
}

// conditions adds conditions of a run to its settings. Labels come first: a user has given them.
func (t *table) conditions(one Run, r *run.Run, names []string) error {
	for _, name := range names {
		if _, labelled := one.Settings[name]; labelled || !t.settings[name] && len(t.settings) >= maxColumns {
			continue
		}
		i := slices.IndexFunc(r.Meta.Conditions, func(c run.Condition) bool { return c.Name == name && compares(c) })
		if err := t.set(one, name, r.Meta.Conditions[i].Value); err != nil {
			return err
		}
	}
	return nil
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
