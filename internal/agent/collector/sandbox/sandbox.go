// SPDX-License-Identifier: Apache-2.0

// Package sandbox is the collector of the mechanisms that confine this process. It confines nothing itself.
package sandbox

import (
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric"
)

// The mechanisms, as values of the label "mechanism".
const (
	Capabilities = "capabilities"
	Landlock     = "landlock"
	Seccomp      = "seccomp"
	User         = "user"
)

// Collector is the collector.
type Collector struct {
	desc   *metric.Desc
	name   string
	labels []string // their values after the mechanism

	mu   sync.Mutex
	held []string // mechanisms that confine the process
}

// New returns the collector of a process that is not confined yet.
func New() *Collector { return &Collector{desc: describe("mechanism"), name: "sandbox"} }

// NewPart returns the collector of one of several processes whose metrics are served together.
func NewPart(process string) *Collector {
	return &Collector{desc: describe("mechanism", "process"), name: "sandbox-" + process, labels: []string{process}}
}

func describe(labels ...string) *metric.Desc {
	return metric.New(metric.Desc{
		Name: "teescope_sandbox", Kind: metric.Gauge, Labels: labels, Source: metric.Agent,
		Help: "1 when the mechanism confines this process. 0 until the start is over, and where the mechanism is missing. " +
			"user is 1 when the process is not root. A process that watches others is never confined by landlock.",
		Origin: "capset(2), landlock(7), seccomp(2), setresuid(2)",
	})
}

// Hold records that a mechanism confines the process from now on.
func (c *Collector) Hold(mechanism string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = append(c.held, mechanism)
}

// Name is "sandbox", or begins with it.
func (c *Collector) Name() string { return c.name }

// Describe lists the family.
func (c *Collector) Describe() []*metric.Desc { return []*metric.Desc{c.desc} }

// Collect emits one sample for each mechanism.
func (c *Collector) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range []string{Capabilities, Landlock, Seccomp, User} {
		value := 0.0
		if slices.Contains(c.held, m) {
			value = 1
		}
		emit(c.desc.Value(value, append([]string{m}, c.labels...)...))
	}
	return nil
}
