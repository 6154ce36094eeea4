// SPDX-License-Identifier: Apache-2.0

package query

import "net"

// PerMachine holds a value of each machine, by instance. The zero value is empty.
type PerMachine[T any] struct {
	values map[string]T
	hosts  map[string]string // the first instance of each host, by name
}

// Set sets the value of an instance. An empty instance is the only machine.
func (m *PerMachine[T]) Set(instance string, v T) {
	if m.values == nil {
		m.values, m.hosts = map[string]T{}, map[string]string{}
	}
	m.values[instance] = v
	if host, _, err := net.SplitHostPort(instance); err == nil {
		if first, ok := m.hosts[host]; !ok || instance < first {
			m.hosts[host] = instance
		}
	}
}

// Get returns the value of an instance, if necessary from another port of the same host.
func (m *PerMachine[T]) Get(instance string) (v T, ok bool) {
	if v, ok = m.values[instance]; ok {
		return v, true
	}
	if host, _, err := net.SplitHostPort(instance); err == nil {
		if other, ok := m.hosts[host]; ok {
			return m.values[other], true
		}
	}
	v, ok = m.values[""]
	return v, ok
}

// Len returns the number of instances.
func (m *PerMachine[T]) Len() int { return len(m.values) }
