// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// registrations records registered collectors, so that they can be removed before the database is opened again.
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

// undo unregisters all recorded collectors.
func (r *registrations) undo() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.all {
		r.Unregister(c)
	}
	r.all = nil
}
