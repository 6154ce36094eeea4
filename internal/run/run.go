// SPDX-License-Identifier: Apache-2.0

// Package run describes recorded runs of a program, and reads and writes run files: what was run under which conditions,
// the samples of its metrics, its phases and its outcomes. docs/user/run-file.md describes the format.
//
// It does not record or evaluate, and does not depend on metrics, agents or benchmarks.
package run

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Run is the content of a run file.
type Run struct {
	Meta     Meta
	Series   []*Series // in the order of their first sample
	Times    []time.Time
	Phases   []Phase
	Outcomes []Outcome
	Notes    []string // warnings about the recording
	Profiles []Profile
	// End says how the recording ended. It is nil if the recording was cut off, for example by a kill: then the run has what
	// was written until the last interval.
	End *End
	// Damaged says why reading stopped before the end of the file; nil if it did not.
	Damaged error
}

// Meta says what was run, where and under which conditions.
type Meta struct {
	Teescope   string            `json:"teescope,omitempty"` // version of the program that recorded
	Started    time.Time         `json:"started"`
	Host       string            `json:"host,omitempty"`
	Command    []string          `json:"command,omitempty"` // empty if running programs were observed
	Watch      []string          `json:"watch,omitempty"`   // rules of the watched servers
	Interval   float64           `json:"interval_seconds"`  // between two samples
	Labels     map[string]string `json:"labels,omitempty"`  // given by the user; a sweep adds its settings
	Conditions []Condition       `json:"conditions,omitempty"`
}

// Condition is a property of the machine or of the program, such as the kernel's release.
type Condition struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Kind  string `json:"kind,omitempty"` // "identity": a difference can explain a difference in performance; "state" or "note": others
}

// Kind is the kind of a metric.
type Kind string

// The kinds of metrics. A counter only grows, except where its source restarts.
const (
	Counter Kind = "counter"
	Gauge   Kind = "gauge"
)

// Series is the samples of a metric with its labels. Values has a value for each of the run's times, and NaN where there
// was none.
type Series struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Kind   Kind              `json:"kind"`
	Unit   string            `json:"unit,omitempty"`
	// Before is the value at the times before the first sample of the series, if the recorder knows it. An agent does not
	// export a counter that is zero.
	Before *float64  `json:"before,omitempty"`
	Values []float64 `json:"-"`
}

// ID returns the name and the labels as in the exposition format of Prometheus.
func (s *Series) ID() string {
	if len(s.Labels) == 0 {
		return s.Name
	}
	var b strings.Builder
	b.WriteString(s.Name)
	for i, name := range slices.Sorted(maps.Keys(s.Labels)) {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(name + `="` + escaper.Replace(s.Labels[name]) + `"`)
	}
	b.WriteByte('}')
	return b.String()
}

var escaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// Phase is a part of a run's time. Phases of one repetition may overlap.
type Phase struct {
	Name       string    `json:"name"` // such as those below
	Repetition int       `json:"repetition"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
}

// Names of phases. The command of a repetition runs in its whole phase, which has the parts start and steady. Exec is from
// the execution of the command to its end. Setup and warm-up are before it.
const (
	Setup  = "setup"
	Warmup = "warmup"
	Whole  = "run"
	Exec   = "exec"
	Start  = "start"
	Steady = "steady"
)

// SteadyAfter is the name of the condition that gives the length of the start if the user chose it.
const SteadyAfter = "steady_after"

// Twin is the name of the condition that says that the program is the twin of one in an enclave, and runs outside of it.
const Twin = "twin"

// Outcome is a figure that a benchmark reports of a repetition.
type Outcome struct {
	Repetition int     `json:"repetition"`
	Name       string  `json:"name"` // such as throughput or SET.latency_p99
	Unit       string  `json:"unit,omitempty"`
	Value      float64 `json:"value"`
	Better     string  `json:"better,omitempty"` // "higher", "lower" or unknown
	From       string  `json:"from,omitempty"`   // the program or the expression that gave it
	Note       string  `json:"note,omitempty"`
}

// Profile is a profile of one repetition.
type Profile struct {
	Type       string `json:"type"` // such as pprof
	Name       string `json:"name,omitempty"`
	Repetition int    `json:"repetition,omitempty"` // from 1
	// Functions has the CPU time of the functions that ran most, by their innermost frame, and of all others together. They add
	// up to that of the profile.
	Functions []Function `json:"functions,omitempty"`
	// Faults has the CPU time of each workload in the kernel's handling of page faults outside of system calls, without that in
	// which evicted pages of enclaves are loaded. It is part of the time of Functions. It is empty if the functions of the kernel are not known.
	Faults []WorkloadTime `json:"page_faults,omitempty"`
	Data   []byte         `json:"data"`
}

// WorkloadTime is a CPU time of one workload.
type WorkloadTime struct {
	Workload string  `json:"workload,omitempty"`
	Seconds  float64 `json:"seconds"`
}

// Others is the name of what the functions that are not listed have together.
const Others = "[others]"

// Function is the CPU time of a function of one workload.
type Function struct {
	Workload string  `json:"workload,omitempty"`
	Name     string  `json:"name"`
	Seconds  float64 `json:"seconds"`
}

// End says how a recording ended.
type End struct {
	Time   time.Time `json:"time"`
	Reason string    `json:"reason"`           // "done", "interrupted", "failed"
	Status []int     `json:"status,omitempty"` // exit status of the command, by repetition
}

// Total returns the increase of a counter, or the mean of a gauge, over the samples from..to-1. The recorder takes a sample
// at each end of a phase. It returns NaN if there are too few samples with a value: a counter needs two, a gauge one.
func (s *Series) Total(from, to int) float64 {
	sum, last, n := 0.0, math.NaN(), 0
	for _, v := range s.Values[from:to] {
		switch {
		case math.IsNaN(v):
			continue
		case s.Kind != Counter, v < last:
			sum += v // of a counter whose source restarted from zero
		case !math.IsNaN(last):
			sum += v - last
		}
		last, n = v, n+1
	}
	switch {
	case s.Kind != Counter:
		return sum / float64(n)
	case n < 2:
		return math.NaN()
	}
	return sum
}
