// SPDX-License-Identifier: Apache-2.0

// Package nitro is the backend for the parent instances of Nitro Enclaves: the list of enclaves, and the traffic between
// each enclave and its parent. It counts vsock, so it also serves hosts whose virtual machines have it. The inside of an
// enclave is not visible.
package nitro

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/probe"
	"github.com/teescope/teescope/internal/agent/sampling"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/service"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// Options of the backend.
type Options struct {
	Roots  tee.Roots
	Reads  *reader.Pool // reads command lines, whose processes may not answer
	Budget float64      // share of the machine's CPU time that counting may take; above it, counting ends. 1 is no limit
	Log    *slog.Logger
}

// Backend implements tee.Backend. Init loads the programs, Run attaches them when vsock is there, and Shutdown detaches.
type Backend struct {
	opts     Options
	families *families
	probes   *probe.Families

	mu       sync.Mutex // protects all fields below
	kernel   *kernelSide
	spending sampling.Spending
	failed   error // why the traffic is not counted
}

// New returns a backend.
func New(o Options) *Backend {
	return &Backend{
		opts: o, families: newFamilies(), probes: probe.NewFamilies("nitro/"),
		spending: sampling.Spending{Budget: o.Budget, CPUs: runtime.NumCPU()},
	}
}

// Name implements tee.Backend.
func (*Backend) Name() teelabel.Kind { return teelabel.Nitro }

// Describe implements tee.Backend.
func (b *Backend) Describe() []*metric.Desc { return b.families.all() }

// housekeeping is the interval of looking for the module with the tracepoints, and for quiet peers.
const housekeeping = 10 * time.Second

// canHaveVsock reports whether this machine is the parent of enclaves, or can run virtual machines with vsock. Other machines use
// vsock only to communicate with their own host.
func canHaveVsock(r tee.Roots) bool { return tee.IsParent(r) || hostfs.At(r.Dev).Exists("vhost-vsock") }

// hasVsock reports whether there can be traffic now: the device for virtual machines exists before its module is loaded.
func hasVsock(r tee.Roots) bool {
	return tee.IsParent(r) || hostfs.At(r.Sys).Exists("module", "vhost_vsock")
}

// Init loads the programs on a machine that is watched. A failure does not end the agent: Collect reports it.
func (b *Backend) Init(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !canHaveVsock(b.opts.Roots) {
		return nil
	}
	if b.kernel, b.failed = load(); b.failed != nil {
		b.opts.Log.Warn("traffic by vsock is not counted", "err", b.failed)
		return nil
	}
	b.tend(time.Now())
	return nil
}

// Run attaches when it is possible, and removes quiet peers, until ctx ends.
func (b *Backend) Run(ctx context.Context) error {
	service.After(ctx, housekeeping, func() { // a check at the start would compare milliseconds with the budget
		b.mu.Lock()
		defer b.mu.Unlock()
		b.tend(time.Now())
	})
	return nil
}

// tend attaches to tracepoints that exist, updates the list of peers, and checks the budget.
func (b *Backend) tend(now time.Time) {
	k := b.kernel
	if k == nil || k.stopped {
		return
	}
	if !k.attached {
		if !hasVsock(b.opts.Roots) {
			return
		}
		if err := k.attach(); err != nil {
			b.opts.Log.Debug("vsock is not watched yet", "err", err)
			return
		}
	}
	if err := k.refresh(now); err != nil {
		b.opts.Log.Warn("following the peers of vsock", "err", err)
	}
	share, over := b.spending.Exceeded(now, k.spent())
	if !over {
		return
	}
	reason := b.spending.Reason(share)
	b.opts.Log.Warn("traffic by vsock is not counted any more", "reason", reason, "err", k.stop(reason))
}

// Collect implements tee.Backend.
func (b *Backend) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	var parent error
	if tee.IsParent(b.opts.Roots) {
		parent = b.emitParent(emit) // reads processes, so without the lock
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := []error{parent, b.failed}
	if k := b.kernel; k != nil && k.attached {
		errs = append(errs, k.refresh(time.Now()))
		k.emit(b.families, emit)
	}
	if k := b.kernel; k != nil && (k.attached || k.stopped) {
		b.probes.Emit(k.object, k.status, emit)
	}
	return errors.Join(errs...)
}

// Shutdown detaches.
func (b *Backend) Shutdown(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kernel == nil {
		return nil
	}
	k := b.kernel
	b.kernel = nil
	return k.object.Close()
}
