// SPDX-License-Identifier: Apache-2.0

// Package runs keeps run files that were pushed to a server, in a directory of bounded size, and serves them: the list, the
// files and comparisons of them.
//
// It does not record, and does not compute or write comparisons: its caller passes a function for that.
package runs

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
)

// Bounds of a summary, so that the list of all runs stays small.
const (
	mostName     = 100 // bytes of a name, also of labels
	mostCommand  = 200 // bytes
	mostLabels   = 16
	mostOutcomes = 8
	mostValue    = 1e300 // of an outcome, so that the mean of two is finite
)

// Summary describes a run of the list.
type Summary struct {
	ID       string    `json:"id"`   // of the content: the same file has the same ID
	Name     string    `json:"name"` // of the file that was pushed
	Size     int64     `json:"size_bytes"`
	PushedAt time.Time `json:"pushed_at"`
	// PushedBy is the user whose password or certificate was checked, or empty.
	PushedBy    string            `json:"pushed_by,omitempty"`
	Started     time.Time         `json:"started"`
	Host        string            `json:"host,omitempty"`
	Command     string            `json:"command,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Repetitions int               `json:"repetitions"` // with a phase of their own
	Samples     int               `json:"samples"`
	Outcomes    []Outcome         `json:"outcomes,omitempty"`
	Ended       string            `json:"ended"` // done, interrupted, failed, or cut off
}

// Outcome is the median of a figure of the benchmark over the repetitions.
type Outcome struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit,omitempty"`
	Median float64 `json:"median"`
	N      int     `json:"n"`
}

// cutOff is how a run ended whose recorder was killed.
const cutOff = "cut off"

// summarize describes a run. The caller knows who pushed it and when.
func summarize(r *run.Run, name string) Summary {
	s := Summary{
		Name: clean(filepath.Base(name)), Started: r.Meta.Started.UTC(), Host: clean(r.Meta.Host), Samples: len(r.Times), Ended: cutOff,
		Command: text.Short(text.Label(strings.Join(r.Meta.Command, " ")), mostCommand), Labels: map[string]string{}, Outcomes: outcomes(r.Outcomes),
	}
	if r.End != nil {
		s.Ended = clean(r.End.Reason)
	}
	for _, label := range slices.Sorted(maps.Keys(r.Meta.Labels)) {
		if len(s.Labels) < mostLabels {
			s.Labels[clean(label)] = clean(r.Meta.Labels[label])
		}
	}
	repetitions := map[int]bool{}
	for _, p := range r.Phases {
		if p.Name == run.Whole {
			repetitions[p.Repetition] = true
		}
	}
	s.Repetitions = len(repetitions)
	return s
}

func clean(s string) string { return text.Short(text.Label(s), mostName) }

// outcomes returns the medians of the first outcomes, in the order of the file.
func outcomes(all []run.Outcome) []Outcome {
	var named []Outcome
	values := map[string][]float64{}
	for _, o := range all {
		if math.Abs(o.Value) > mostValue {
			continue
		}
		if _, there := values[o.Name]; !there {
			if len(named) == mostOutcomes {
				continue
			}
			named = append(named, Outcome{Name: o.Name, Unit: o.Unit})
		}
		values[o.Name] = append(values[o.Name], o.Value)
	}
	for i := range named {
		o := &named[i]
		o.Median, o.N = stat.Median(values[o.Name]), len(values[o.Name])
		o.Name, o.Unit = clean(o.Name), clean(o.Unit)
	}
	return named
}
