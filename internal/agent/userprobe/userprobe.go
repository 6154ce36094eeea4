// SPDX-License-Identifier: Apache-2.0

// Package userprobe attaches the probes of a user's file and counts their events by workload. Their eBPF programs are fixed
// templates with constants.
//
// It does not generate code from the user's text. A probe that cannot be attached, or costs too much, has no samples, and a
// status with the reason.
package userprobe

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/probe"
	"github.com/teescope/teescope/internal/agent/userprobe/probefile"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/metric"
)

// Options of the collector.
type Options struct {
	File              string // empty: there are no probes of the user
	Proc, Sys, Cgroup string // roots of /proc, /sys and of the cgroup file systems
	Root              string // of the file systems that the paths of programs are in; empty is /
	// MaxWorkloads limits the values of the label workload. Further workloads are counted as "other".
	MaxWorkloads int
	// Budget is the share of the machine's CPU time that all measuring may take. 0, or 1 and more, means no limit.
	Budget float64
	// Pods completes the identity of a workload in a pod. It returns false if the names of the pod are not known yet. If nil, the
	// identity keeps the UID of the pod.
	Pods func(*workload.Identity) bool
	Log  *slog.Logger
}

// Collector counts the events of the user's probes. Init attaches, Run maintains the groups and keeps the budget, and
// Shutdown detaches.
type Collector struct {
	opts     Options
	log      *slog.Logger
	families *families
	probes   *probe.Families

	program, path atomic.Int64  // CPU time taken in nanoseconds, see Spent
	relative      atomic.Uint64 // how slow this machine is, relative to that of the constant costs, as the bits of a number

	mu       sync.Mutex // protects all fields below
	kernel   *kernelSide
	owners   *owners
	last     time.Time // of the last refresh
	spending spending
}

// New returns a collector. Nothing is read or loaded before Init.
func New(o Options) *Collector {
	b := &Collector{
		opts: o, log: o.Log, families: newFamilies(), probes: probe.NewFamilies(statusPrefix),
		spending: spending{budget: o.Budget, cpus: runtime.NumCPU()},
	}
	b.relative.Store(math.Float64bits(1))
	return b
}

// Name implements collector.Collector.
func (*Collector) Name() string { return "userprobe" }

// Describe implements collector.Collector. It cannot list the families of the file's probes.
func (b *Collector) Describe() []*metric.Desc { return b.families.all() }

// Init reads the file and attaches the probes. A file with problems ends the agent. A probe that cannot be attached does
// not.
func (b *Collector) Init(context.Context) error {
	if b.opts.File == "" {
		return nil
	}
	began := time.Now()
	probes, err := probefile.Read(b.opts.File)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	k, err := load(probes, b.opts, int32(cgroup.Naming(b.opts.Cgroup)))
	if err != nil {
		return err
	}
	b.kernel, b.owners = k, newOwners(k, b.opts.MaxWorkloads, b.opts.Pods)
	attached := 0
	for _, a := range k.probes {
		if a.status.Attached() {
			attached++
			continue
		}
		b.log.Warn("a probe of the file is not attached", "probe", a.Name, "line", a.Line, "reason", a.status.Reason)
	}
	b.log.Info("the user's probes are attached", "file", b.opts.File, "attached", attached, "of", len(k.probes), "took", time.Since(began).Round(time.Millisecond))
	return b.refresh(time.Now())
}

func (b *Collector) refresh(now time.Time) error {
	b.last = now
	return b.owners.refresh(now)
}

const (
	// housekeeping is the interval of refreshing groups without scrapes.
	housekeeping = 10 * time.Second
	// The programs measure themselves during the first seconds, and then for a second in thirty.
	measureFirst = 5 * time.Second
	measureFor   = time.Second
	measureEvery = 30 * time.Second
)

// Run refreshes groups, measures the programs and keeps the budget until ctx ends.
func (b *Collector) Run(ctx context.Context) error {
	if b.opts.File == "" {
		<-ctx.Done()
		return nil
	}
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	b.measure(true)
	measuring := true
	measure := time.NewTimer(measureFirst)
	defer measure.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-measure.C:
			measuring = !measuring
			b.measure(measuring)
			wait := measureEvery - measureFor
			if measuring {
				wait = measureFor
			}
			measure.Reset(wait)
		case now := <-check.C:
			b.enforce(now)
			if err := b.tend(now); err != nil {
				b.log.Warn("refreshing the counts of the user's probes", "err", err)
			}
		}
	}
}

func (b *Collector) measure(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kernel != nil {
		b.kernel.measure(on)
	}
}

func (b *Collector) tend(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kernel == nil || now.Sub(b.last) < housekeeping {
		return nil
	}
	return b.refresh(now)
}

// Shutdown detaches.
func (b *Collector) Shutdown(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kernel == nil {
		return nil
	}
	k := b.kernel
	b.kernel, b.owners = nil, nil
	return k.object.Close()
}

// Collect implements collector.Collector.
func (b *Collector) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kernel == nil {
		return nil
	}
	err := b.refresh(time.Now())
	b.owners.emit(emit)
	b.kernel.emitSelf(b.families, emit)
	b.probes.Emit(b.kernel.object, b.kernel.status(), emit)
	return err
}

// Try attaches the probes of a file, detaches them at once, and reports the results.
func Try(o Options) (trials []probe.Trial, err error) {
	probes, err := probefile.Read(o.File)
	if err != nil {
		return nil, err
	}
	k, err := load(probes, o, int32(cgroup.Naming(o.Cgroup)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, k.object.Close()) }()
	for _, a := range k.probes {
		way := bpf.Trial{Way: bpf.Way{Program: a.Name, Mechanism: bpf.Mechanism(a.Mechanism), Target: a.Target.String()}}
		if !a.status.Attached() {
			way.Err = errors.New(a.status.Reason)
		}
		trials = append(trials, probe.Trial{Status: a.status, Ways: []bpf.Trial{way}})
	}
	return trials, nil
}
