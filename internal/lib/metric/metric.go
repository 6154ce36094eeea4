// SPDX-License-Identifier: Apache-2.0

// Package metric describes metrics: name, unit, type, help, labels, and who could forge the value.
//
// It holds descriptions and makes samples of them. It does not store samples or register anything globally, and does not
// depend on the source of a number. docs/user/metrics.md is generated from these descriptions.
package metric

import (
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Kind is the Prometheus type of a family.
type Kind int

// The kinds of family that teescope exports.
const (
	Counter Kind = iota
	Gauge
	// Info is a gauge that is always 1 and whose labels are the information.
	Info
	// Untyped is for families named by another exporter that have no type there. Teescope's own families have one.
	Untyped
	// Histogram is a family whose samples are made with [Desc.Distribution].
	Histogram
)

// String returns the name of the kind in the exposition format.
func (k Kind) String() string {
	switch k {
	case Counter:
		return "counter"
	case Gauge, Info:
		return "gauge"
	case Untyped:
		return "untyped"
	case Histogram:
		return "histogram"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Source states where a value comes from, and thereby who could forge it. A TEE distrusts its host, so counts of the
// host kernel are no evidence for anyone who distrusts that kernel.
type Source string

// The sources of values.
const (
	// Kernel values are counted by the host kernel: host root can forge them.
	Kernel Source = "host kernel"
	// Guest values are counted by the kernel of a confidential virtual machine in which the agent runs. It is inside the trust
	// boundary, so the host cannot change them. It can cause some of what they count.
	Guest Source = "guest kernel"
	// Agent values are teescope's own: anyone who controls the agent can forge them.
	Agent Source = "agent"
)

// Desc describes one metric family.
type Desc struct {
	Name   string // full name, base unit as suffix, "_total" for counters
	Kind   Kind
	Unit   string // "seconds", "bytes", or what is counted: "calls", "faults", ...
	Help   string // one sentence
	Labels []string
	// Bounds are the upper bounds of the buckets of a histogram, rising. A further bucket counts the values above the
	// last one.
	Bounds []float64
	Source Source
	// Origin is where the number is read: kernel tracepoint, struct field, or file.
	Origin string
	// Proven states for a family of a TEE's backend how it was tested where the TEE itself was not at hand.
	Proven string

	prom *prometheus.Desc
}

// New completes a description, so that [Desc.Value] can make samples.
func New(d Desc) *Desc {
	d.prom = prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
	return &d
}

// Own returns a function that completes descriptions of what teescope knows about itself, from one origin.
func Own(origin string) func(Desc) *Desc {
	return func(d Desc) *Desc {
		d.Source, d.Origin = Agent, origin
		return New(d)
	}
}

// Value makes one sample and keeps the label values. It panics when their number is wrong. That is a programming error,
// and the golden tests run every family.
func (d *Desc) Value(v float64, labels ...string) prometheus.Metric {
	return d.sample(time.Time{}, v, len(labels), Sample{Labels: labels})
}

// sample completes a sample that has the values of n labels.
func (d *Desc) sample(began time.Time, v float64, n int, s Sample) *Sample {
	if n != len(d.Labels) {
		panic(fmt.Sprintf("%s has the labels %q and was given %q and %q", d.Name, d.Labels, s.Labels, s.Last))
	}
	if s.Of, s.Value = d, v; d.Kind == Counter {
		s.Began = began
	}
	return &s
}

// Since is Value for a counter that counts from a time on ([Sample.Began]). A zero time is an unknown one. It does not matter
// for other kinds.
func (d *Desc) Since(began time.Time, v float64, labels ...string) prometheus.Metric {
	return d.sample(began, v, len(labels), Sample{Labels: labels})
}

// With is Since with the values of all labels except the last one in a list, which other samples may share, and that of the last one.
func (d *Desc) With(began time.Time, v float64, labels []string, last string) prometheus.Metric {
	return d.sample(began, v, len(labels)+1, Sample{Labels: labels, Last: last})
}

// Doubled returns n bounds of durations in seconds: 2^shift nanoseconds, and twice as much each.
func Doubled(shift, n int) []float64 {
	bounds := make([]float64, n)
	for i := range bounds {
		bounds[i] = math.Ldexp(1e-9, shift+i)
	}
	return bounds
}
