// SPDX-License-Identifier: Apache-2.0

// Package guest is the backend for confidential virtual machines (TDX, SEV-SNP), seen from inside. It counts the data that the
// machine copies through shared memory for its devices (bounce buffers), reads the state of their pool, counts exceptions instead
// of instructions (#VE, #VC), and times work on the state of memory. It also works in other virtual machines that copy everything
// (swiotlb=force).
//
// It does not guess: a value without a source has no sample. On machines that do not copy data it loads nothing.
package guest

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/probe"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/service"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// groupsPerWorkload is the number of groups for each workload. A workload has several if its programs run in several
// cgroups.
const groupsPerWorkload = 2

// housekeeping is the interval of refreshing groups without scrapes.
const housekeeping = 10 * time.Second

// Options of the backend.
type Options struct {
	Roots  tee.Roots
	Cgroup string // root of the cgroup file systems
	// MaxWorkloads limits the values of the label workload. Further workloads are counted as "other".
	MaxWorkloads int
	// Pods completes the identity of a workload in a pod. It returns false if the names of the pod are not known yet. If nil, the
	// identity keeps the UID of the pod.
	Pods func(*workload.Identity) bool
	Log  *slog.Logger
}

// Backend implements tee.Backend. Init attaches, Run maintains the groups, and Shutdown detaches.
type Backend struct {
	opts     Options
	log      *slog.Logger
	families *families
	probes   *probe.Families

	mu     sync.Mutex // protects all fields below
	kernel *kernelSide
	owners *owners
	guest  teelabel.Kind // the TEE, or none
	halts  string        // see families.info
	last   time.Time     // of the last refresh
	failed error         // why a machine that copies is not watched
}

// New returns a backend.
func New(o Options) *Backend {
	return &Backend{opts: o, log: o.Log, families: newFamilies(), probes: probe.NewFamilies("cvm/")}
}

// Name implements tee.Backend.
func (*Backend) Name() teelabel.Kind { return "cvm" }

// Describe implements tee.Backend.
func (b *Backend) Describe() []*metric.Desc { return b.families.all() }

// Copies reports whether this machine copies data for its devices: a trust domain, an SNP guest, or a machine that was
// booted with swiotlb=force.
func Copies(r tee.Roots) bool {
	if tee.GuestOf(r) != teelabel.None {
		return true
	}
	const longest = 64 << 10
	line, err := hostfs.At(r.Proc).Read(longest, "cmdline")
	return err == nil && forced(string(line))
}

// forced reports whether a kernel's command line demands that all data is copied.
func forced(line string) bool {
	for _, word := range strings.Fields(line) {
		value, found := strings.CutPrefix(word, "swiotlb=")
		if !found {
			continue
		}
		for part := range strings.SplitSeq(value, ",") {
			if part == "force" {
				return true
			}
		}
	}
	return false
}

// Init attaches, if this machine copies data for its devices. A failure does not end the agent: Collect reports it at
// each scrape.
func (b *Backend) Init(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !Copies(b.opts.Roots) {
		b.log.Debug("this machine does not copy data for its devices")
		return nil
	}
	if b.failed = b.start(); b.failed != nil {
		b.log.Warn("this confidential machine is not watched", "err", b.failed)
		return nil
	}
	for _, s := range b.kernel.status {
		if !s.Attached() {
			b.log.Info("probe not attached", "probe", s.Probe, "reason", s.Reason)
		}
	}
	return nil
}

func (b *Backend) start() error {
	cpus, err := bpf.CPUs()
	if err != nil {
		return err
	}
	types, err := bpf.ReadTypes()
	if err != nil {
		return err
	}
	b.guest = tee.GuestOf(b.opts.Roots)
	b.halts = haltsBy(b.guest, types.HasFunction)
	k, err := load(cpus, 1+groupsPerWorkload*b.opts.MaxWorkloads, int32(cgroup.Naming(b.opts.Cgroup)), probes(b.guest, types.HasFunction))
	if err != nil {
		return err
	}
	b.kernel, b.owners = k, newOwners(k, b.opts.MaxWorkloads, b.opts.Pods)
	return b.refresh(time.Now())
}

func (b *Backend) refresh(now time.Time) error {
	b.last = now
	return b.owners.refresh(now)
}

// Run refreshes groups until ctx ends.
func (b *Backend) Run(ctx context.Context) error {
	service.Every(ctx, housekeeping, func() {
		if err := b.tend(time.Now()); err != nil {
			b.log.Warn("refreshing the counts of a confidential machine", "err", err)
		}
	})
	return nil
}

func (b *Backend) tend(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kernel == nil || now.Sub(b.last) < housekeeping/2 {
		return nil
	}
	return b.refresh(now)
}

// Shutdown detaches.
func (b *Backend) Shutdown(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kernel == nil {
		return nil
	}
	k := b.kernel
	b.kernel, b.owners = nil, nil
	return k.object.Close()
}

// Collect implements tee.Backend.
func (b *Backend) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kernel == nil {
		return b.failed
	}
	errs := []error{b.refresh(time.Now()), emitPool(b.opts.Roots.Sys, b.families, emit), b.emitState(emit)}
	b.emitMachine(emit)
	b.emitWorkloads(emit)
	b.probes.Emit(b.kernel.object, b.kernel.status, emit)
	return errors.Join(errs...)
}
