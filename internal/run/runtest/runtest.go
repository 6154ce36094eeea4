// SPDX-License-Identifier: Apache-2.0

// Package runtest makes run files for tests, of repetitions with known figures.
//
// It must not be imported by the program, and it computes nothing that a test judges.
package runtest

import (
	"bytes"
	"io"
	"time"

	"github.com/teescope/teescope/internal/run"
)

// Began is when a run begins if a test does not say.
var Began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Spec describes a run.
type Spec struct {
	Labels      map[string]string
	Conditions  []run.Condition
	Started     time.Time // Began if zero
	Repetitions []Repetition
	Samples     int // in a repetition; 2 if zero
}

// Repetition describes one repetition.
type Repetition struct {
	Seconds  float64 // 10 if zero
	Outcomes []run.Outcome
	Counters []Value // with their increase in the repetition
	Gauges   []Value
}

// Value is a series with its value.
type Value struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// Counter describes a series of the workload app. part is the name and the value of a further label.
func Counter(v float64, name string, part ...string) Value {
	labels := map[string]string{"workload": "app"}
	for i := 0; i+1 < len(part); i += 2 {
		labels[part[i]] = part[i+1]
	}
	return Value{name, labels, v}
}

// Throughput is the usual outcome.
func Throughput(v float64) run.Outcome {
	return run.Outcome{Name: "throughput", Unit: "operations_per_second", Value: v, Better: "higher", From: "test"}
}

// Run returns the run as a reader has it.
func Run(s Spec) (*run.Run, error) {
	var file bytes.Buffer
	if err := Write(&file, s); err != nil {
		return nil, err
	}
	return run.Read(&file)
}

// Create writes a run file.
func Create(name string, s Spec) error {
	w, err := run.Create(name, meta(s))
	if err != nil {
		return err
	}
	return write(w, s)
}

// Write writes the content of a run file.
func Write(out io.Writer, s Spec) error {
	w, err := run.NewWriter(out, meta(s))
	if err != nil {
		return err
	}
	return write(w, s)
}

func meta(s Spec) run.Meta {
	if s.Started.IsZero() {
		s.Started = Began
	}
	return run.Meta{Started: s.Started, Host: "host", Command: []string{"benchmark"}, Interval: 1, Labels: s.Labels, Conditions: s.Conditions}
}

func write(w *run.Writer, s Spec) error {
	at, samples := meta(s).Started, max(2, s.Samples)
	last := map[string]float64{}
	status := make([]int, len(s.Repetitions))
	for i, r := range s.Repetitions {
		length := time.Duration(r.Seconds * float64(time.Second))
		if length == 0 {
			length = 10 * time.Second
		}
		p := run.Phase{Name: run.Whole, Repetition: i + 1, From: at, To: at.Add(length)}
		for k := range samples {
			share := float64(k) / float64(samples-1)
			var values []run.Value
			for _, c := range r.Counters {
				series := &run.Series{Name: c.Name, Labels: c.Labels, Kind: run.Counter}
				values = append(values, run.Value{Series: series, Value: last[series.ID()] + c.Value*share})
				if k == samples-1 {
					last[series.ID()] += c.Value
				}
			}
			for _, g := range r.Gauges {
				values = append(values, run.Value{Series: &run.Series{Name: g.Name, Labels: g.Labels, Kind: run.Gauge}, Value: g.Value})
			}
			if _, err := w.Sample(at.Add(time.Duration(share*float64(length))), values); err != nil {
				return err
			}
		}
		if err := w.Phase(p); err != nil {
			return err
		}
		for _, o := range r.Outcomes {
			o.Repetition = i + 1
			if err := w.Outcome(o); err != nil {
				return err
			}
		}
		at = p.To.Add(time.Second)
	}
	return w.Close(run.End{Time: at, Reason: "done", Status: status})
}
