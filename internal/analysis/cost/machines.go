// SPDX-License-Identifier: Apache-2.0

package cost

import "github.com/teescope/teescope/internal/analysis/query"

// Queries for what [Machines] holds.
const (
	ClockQuery = `max by (instance) (node_cpu_frequency_max_hertz or node_cpu_scaling_frequency_max_hertz or node_cpu_frequency_hertz)`
	OCALLQuery = `max by (instance, bound) (teescope_enclave_crossing_seconds)`
)

// Machines holds the clocks of machines, and the costs of an OCALL that users measured and configured on them. The zero
// value is empty.
type Machines struct {
	clocks query.PerMachine[Clock]
	ocalls query.PerMachine[Seconds]
	bounds map[string]Seconds // of ocalls, also incomplete and invalid ones
}

// AddClock adds a sample of [ClockQuery].
func (m *Machines) AddClock(labels map[string]string, hz float64) {
	if hz > 0 {
		m.clocks.Set(labels["instance"], Clock{Low: hz, High: hz, Measured: true})
	}
}

// AddOCALL adds a sample of [OCALLQuery]. A cost has two, and is used if they are a valid range.
func (m *Machines) AddOCALL(labels map[string]string, seconds float64) {
	instance := labels["instance"]
	c := m.bounds[instance]
	c.What, c.Source = OCALL.What, "transitions.cost: measured on this machine"
	switch labels["bound"] {
	case "low":
		c.Low = seconds
	case "high":
		c.High = seconds
	}
	if m.bounds == nil {
		m.bounds = map[string]Seconds{}
	}
	m.bounds[instance] = c
	if c.Low > 0 && c.High >= c.Low {
		m.ocalls.Set(instance, c)
	}
}

// Measured returns the number of machines with a configured cost of an OCALL.
func (m *Machines) Measured() int { return m.ocalls.Len() }

// Clock returns the processor clock of an instance.
func (m *Machines) Clock(instance string) Clock {
	if c, ok := m.clocks.Get(instance); ok {
		return c
	}
	return UnknownClock
}

// OCALL returns the cost of an OCALL on an instance: the configured one, or else [OCALL].
func (m *Machines) OCALL(instance string) Cost {
	if c, ok := m.ocalls.Get(instance); ok {
		return c
	}
	return OCALL
}
