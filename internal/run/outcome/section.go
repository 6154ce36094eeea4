// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
)

// section is one report of a benchmark about one test.
type section struct {
	tool, test string
	outcomes   []Outcome
}

// maxSection bounds the outcomes of a section. Later ones are ignored.
const maxSection = 200

// maxName bounds the name of a test or a custom metric, in bytes.
const maxName = 120

// maxNote bounds a note, in bytes. A note may have text of the output.
const maxNote = 200

// clean returns a name without blanks, quotes and control characters. They become "_".
func clean(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_.:/+=-", r):
			return r
		}
		return ' '
	}, text.Cut(text.UTF8(name), maxName))
	return strings.Join(strings.Fields(name), "_")
}

// add adds an outcome with the direction of its unit. A name that the section has already keeps its first value. A value that
// is not a number is not added.
func (s *section) add(name, unit string, value float64) *Outcome {
	return s.put(Outcome{Name: name, Unit: unit, Value: value, Better: direction(name, unit)})
}

// custom adds a metric that the benchmark's author defined.
func (s *section) custom(name, unit string, value float64, better Direction) *Outcome {
	return s.put(Outcome{Name: name, Unit: unit, Value: value, Better: better})
}

func (s *section) put(o Outcome) *Outcome {
	o.From, o.Test = s.tool, s.test
	custom := o.Better == Neither && o.Unit != Operations
	if math.IsNaN(o.Value) || math.IsInf(o.Value, 0) || o.Value < 0 && !custom || o.Name == "" || len(s.outcomes) >= maxSection || s.find(o.Name) != nil {
		return new(Outcome) // takes the note
	}
	s.outcomes = append(s.outcomes, o)
	return &s.outcomes[len(s.outcomes)-1]
}

func (s *section) find(name string) *Outcome {
	for i := range s.outcomes {
		if s.outcomes[i].Name == name {
			return &s.outcomes[i]
		}
	}
	return nil
}

// time adds a time in seconds. Zero means that it is below the resolution of the benchmark, or that there was none.
func (s *section) time(name string, seconds float64) *Outcome {
	if seconds <= 0 {
		return new(Outcome)
	}
	return s.add(name, Seconds, seconds)
}

// repeats reports whether a benchmark repeats a test to estimate its noise.
func repeats(tool string) bool { return tool == goTool || tool == googleTool }

// named makes the outcomes of sections one list with unique names.
func named(sections []section) []Outcome {
	sections = merged(sections)
	return newNames(sections).list(sections)
}

// names are the names of outcomes of several tests and programs.
type names struct {
	tests map[string]map[string]bool // by the program
	taken map[string]map[string]bool // the programs that have it, by the name of the outcome
}

func newNames(sections []section) names {
	tests, taken := map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, s := range sections {
		if tests[s.tool] == nil {
			tests[s.tool] = map[string]bool{}
		}
		tests[s.tool][s.test] = true
	}
	n := names{tests, taken}
	for _, s := range sections {
		for _, o := range s.outcomes {
			name := n.inTool(s, o)
			if taken[name] == nil {
				taken[name] = map[string]bool{}
			}
			taken[name][s.tool] = true
		}
	}
	return n
}

// inTool is the name of an outcome among those of its program.
func (n names) inTool(s section, o Outcome) string {
	if s.test != "" && len(n.tests[s.tool]) > 1 {
		return s.test + "." + o.Name
	}
	return o.Name
}

// list returns the outcomes of sections with their names.
func (n names) list(sections []section) []Outcome {
	var all []Outcome
	for _, s := range sections {
		for _, o := range s.outcomes {
			o.Name = n.inTool(s, o)
			if len(n.taken[o.Name]) > 1 {
				o.Name = clean(o.From) + "." + o.Name
			}
			o.Note = text.Short(text.Label(o.Note), maxNote)
			all = append(all, o)
		}
	}
	return unique(all[:min(len(all), maxOutcomes)])
}

// unique removes outcomes whose name an earlier one has. Different tests can have the same name after clean.
func unique(all []Outcome) []Outcome {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(o Outcome) bool {
		twice := seen[o.Name]
		seen[o.Name] = true
		return twice
	})
}

// merged makes sections of the same test one.
func merged(sections []section) []section {
	type key struct{ tool, test string }
	same, order := map[key][]section{}, []key{}
	for _, s := range sections {
		if len(s.outcomes) == 0 {
			continue
		}
		k := key{s.tool, s.test}
		if same[k] == nil {
			order = append(order, k)
		}
		same[k] = append(same[k], s)
	}
	var all []section
	for _, k := range order {
		of := same[k]
		s := of[len(of)-1]
		if n := len(of); n > 1 && repeats(k.tool) {
			s = medians(of)
		} else if n > 1 {
			for i := range s.outcomes {
				s.outcomes[i].note(fmt.Sprintf("the last of %d in the output", n))
			}
		}
		all = append(all, s)
	}
	return all
}

// note adds a remark to an outcome.
func (o *Outcome) note(remark string) {
	if o.Note != "" {
		remark = o.Note + "; " + remark
	}
	o.Note = remark
}

// medians combines repetitions of a test: numbers of operations and errors add up, other values become their median.
func medians(of []section) section {
	values := map[string][]float64{}
	all := section{tool: of[0].tool, test: of[0].test}
	for _, s := range of {
		for _, o := range s.outcomes {
			if values[o.Name] == nil {
				all.outcomes = append(all.outcomes, o)
			}
			values[o.Name] = append(values[o.Name], o.Value)
		}
	}
	for i := range all.outcomes {
		o := &all.outcomes[i]
		of := values[o.Name]
		if o.Unit == Operations || o.Unit == Errors {
			o.Value = 0
			for _, v := range of {
				o.Value += v
			}
			continue
		}
		slices.Sort(of)
		o.Value = (of[(len(of)-1)/2] + of[len(of)/2]) / 2
		o.note(fmt.Sprintf("median of %d", len(of)))
	}
	return all
}
