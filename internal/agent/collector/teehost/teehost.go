// SPDX-License-Identifier: Apache-2.0

// Package teehost is the collector of the TEEs of this machine and of the metrics of their backends. It does not depend on
// any backend: internal/app has the list.
package teehost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/metric"
)

// Collector is the collector.
type Collector struct {
	roots     tee.Roots
	backends  []tee.Backend
	available *metric.Desc
}

// New returns the collector.
func New(r tee.Roots, backends ...tee.Backend) *Collector {
	return &Collector{roots: r, backends: backends, available: metric.New(metric.Desc{
		Name: "teescope_tee_available", Kind: metric.Gauge, Labels: []string{"tee"}, Source: metric.Kernel,
		Help:   "1 when the machine offers this TEE to workloads, or runs inside it, and its driver is loaded and ready.",
		Origin: "device nodes in /dev; /sys/module/kvm_{intel,amd}/parameters",
	})}
}

// Name is "tee".
func (c *Collector) Name() string { return "tee" }

// Describe lists the families.
func (c *Collector) Describe() []*metric.Desc {
	all := []*metric.Desc{c.available}
	for _, b := range c.backends {
		all = append(all, b.Describe()...)
	}
	return all
}

// Collect examines the machine at each scrape, because a driver may have been loaded meanwhile. A backend that fails
// does not prevent the others from being read.
func (c *Collector) Collect(ctx context.Context, emit func(prometheus.Metric)) error {
	for kind, ok := range tee.NewDetector(c.roots, nil).Available() {
		v := 0.0
		if ok {
			v = 1
		}
		emit(c.available.Value(v, string(kind)))
	}
	var errs []error
	for _, b := range c.backends {
		if err := b.Collect(ctx, emit); err != nil {
			errs = append(errs, fmt.Errorf("backend %s: %w", b.Name(), err))
		}
	}
	return errors.Join(errs...)
}

// Init initialises the backends that need it. If one fails, the backends before it are shut down.
func (c *Collector) Init(ctx context.Context) error {
	for i, b := range c.backends {
		s, ok := b.(initializer)
		if !ok {
			continue
		}
		if err := s.Init(ctx); err != nil {
			return errors.Join(fmt.Errorf("backend %s: %w", b.Name(), err), shutdown(ctx, c.backends[:i]))
		}
	}
	return nil
}

// Run runs the backends that have work of their own, until ctx ends.
func (c *Collector) Run(ctx context.Context) error {
	errs := make([]error, len(c.backends))
	var wg sync.WaitGroup
	for i, b := range c.backends {
		if s, ok := b.(runner); ok {
			wg.Go(func() {
				if err := s.Run(ctx); err != nil {
					errs[i] = fmt.Errorf("backend %s: %w", b.Name(), err)
				}
			})
		}
	}
	<-ctx.Done()
	wg.Wait()
	return errors.Join(errs...)
}

// Shutdown shuts down the backends, last first.
func (c *Collector) Shutdown(ctx context.Context) error { return shutdown(ctx, c.backends) }

func shutdown(ctx context.Context, backends []tee.Backend) error {
	var errs []error
	for _, b := range slices.Backward(backends) {
		if s, ok := b.(shutdowner); ok {
			if err := s.Shutdown(ctx); err != nil {
				errs = append(errs, fmt.Errorf("backend %s: %w", b.Name(), err))
			}
		}
	}
	return errors.Join(errs...)
}

// A backend may also be a service (package service), under the name of its TEE.
type (
	initializer interface{ Init(context.Context) error }
	runner      interface{ Run(context.Context) error }
	shutdowner  interface{ Shutdown(context.Context) error }
)
