// SPDX-License-Identifier: Apache-2.0

// Package vm is the backend for virtual machines of this host: trust domains (TDX), SEV, SEV-ES and SEV-SNP guests, and
// plain ones for comparison. It counts exits from guests by reason in KVM, and finds the names of virtual machines. The
// package does not read data of a guest.
package vm

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
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/service"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// Options of the backend.
type Options struct {
	Roots  tee.Roots
	Cgroup string       // root of the cgroup file systems
	Reads  *reader.Pool // reads command lines, whose processes may not answer
	Budget float64      // share of the machine's CPU time that counting may take; above it, counting ends. 1 is no limit
	// Pods completes the identity of a workload in a pod. If nil, the identity keeps the UID of the pod.
	Pods func(*workload.Identity) bool
	Log  *slog.Logger
}

// Backend implements tee.Backend. Init loads the programs, Run attaches them when KVM is there and follows the virtual
// machines, and Shutdown detaches.
type Backend struct {
	opts     Options
	log      *slog.Logger
	families *families
	probes   *probe.Families

	mu       sync.Mutex // protects all fields below
	kernel   *kernelSide
	machines *machines
	spending sampling.Spending
	failed   error // why exits are not counted although this machine can have KVM
}

// New returns a backend.
func New(o Options) *Backend {
	return &Backend{
		opts: o, log: o.Log, families: newFamilies(), probes: probe.NewFamilies("vm/"),
		spending: sampling.Spending{Budget: o.Budget, CPUs: runtime.NumCPU()},
	}
}

// Name implements tee.Backend. The backend serves several TEEs.
func (b *Backend) Name() teelabel.Kind { return "vm" }

// Describe implements tee.Backend.
func (b *Backend) Describe() []*metric.Desc { return b.families.all() }

// housekeeping is the interval of finding new and ended virtual machines, and of looking for KVM.
const housekeeping = 5 * time.Second

// Init loads the programs if this machine can have KVM. A failure does not end the agent: Collect reports it.
func (b *Backend) Init(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !canVirtualize(b.opts.Roots) {
		b.log.Debug("no virtual machines to watch: the processor cannot virtualize")
		return nil
	}
	k, err := load()
	if err != nil {
		b.failed = err
		b.log.Warn("virtual machines are not watched", "err", err)
		return nil
	}
	b.kernel, b.machines = k, newMachines(b.opts, k)
	b.tend(time.Now())
	return nil
}

// Run follows the virtual machines until ctx ends.
func (b *Backend) Run(ctx context.Context) error {
	service.After(ctx, housekeeping, func() { // a check at the start would compare milliseconds with the budget
		b.mu.Lock()
		defer b.mu.Unlock()
		b.tend(time.Now())
	})
	return nil
}

// tend attaches to KVM when it has been loaded, and updates the list of virtual machines.
func (b *Backend) tend(now time.Time) {
	if b.kernel == nil || b.kernel.stopped {
		return
	}
	if !b.kernel.attached && hasKVM(b.opts.Roots) {
		if err := b.kernel.attach(); err != nil {
			if b.failed == nil {
				b.log.Warn("virtual machines are not watched", "err", err)
			}
			b.failed = err
			return
		}
		b.failed = nil
		b.log.Info("virtual machines are watched")
	}
	if err := b.machines.refresh(now); err != nil {
		b.log.Warn("following virtual machines", "err", err)
	}
	b.keepBudget(now)
}

// Collect implements tee.Backend.
func (b *Backend) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := []error{b.failed, b.families.emitKeys(b.opts.Cgroup, emit)}
	if b.kernel != nil && b.kernel.attached {
		errs = append(errs, b.machines.refresh(time.Now()))
		b.machines.emit(b.families, emit)
		b.machines.emitStatistics(b.families, hostfs.At(b.opts.Roots.Sys), emit)
		if b.machines.anyPrivate() {
			errs = append(errs, b.machines.emitPrivate(b.families, hostfs.At(b.opts.Cgroup), emit))
		}
	}
	if b.kernel != nil && (b.kernel.attached || b.kernel.stopped) {
		b.probes.Emit(b.kernel.object, b.kernel.status, emit)
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
	b.kernel, b.machines = nil, nil
	return k.object.Close()
}
