// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// registrations remembers what was registered, so that a database that is opened again can register the
// same again.
type registrations struct {
	*prometheus.Registry
	mu  sync.Mutex
	all []prometheus.Collector
}

// Register implements prometheus.Registerer.
func (r *registrations) Register(c prometheus.Collector) error {
	err := r.Registry.Register(c)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, c)
	}
	return err
}

// MustRegister implements prometheus.Registerer.
func (r *registrations) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// undo takes everything back.
func (r *registrations) undo() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.all {
		r.Unregister(c)
	}
	r.all = nil
}
