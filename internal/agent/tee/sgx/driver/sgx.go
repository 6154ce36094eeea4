// SPDX-License-Identifier: Apache-2.0

// Package driver is the SGX backend: the enclave page cache (EPC) and the enclaves. It watches the in-tree driver by eBPF,
// counts calls in drivers that are modules, and reads files of drivers and the kernel. The driver determines which of these
// sources exist. The package does not guess: a value without a source has no sample.
package driver

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/probe"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// pageSize is the page size of the EPC: 4 KiB by architecture (Intel SDM vol. 3D, Enclave Page Cache).
const pageSize = 4096

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

// Backend implements tee.Backend. Init attaches to the in-tree driver or to one that is a module, Run maintains the groups,
// and Shutdown detaches. Without them it reads files only.
type Backend struct {
	opts     Options
	log      *slog.Logger
	families *families
	probes   *probe.Families

	mu      sync.Mutex // protects all fields below
	watch   watch
	outside *outside // nil if no driver is loaded as a module
	failed  error    // why an existing driver is not watched
}

// New returns a backend.
func New(o Options) *Backend {
	return &Backend{opts: o, log: o.Log, families: newFamilies(), probes: probe.NewFamilies("sgx/")}
}

// Name implements tee.Backend.
func (b *Backend) Name() teelabel.Kind { return teelabel.SGX }

// Describe implements tee.Backend.
func (b *Backend) Describe() []*metric.Desc { return b.families.all() }

// sample is one value of a source.
type sample struct {
	desc   *metric.Desc
	value  float64
	labels []string
	began  time.Time // of a counter; zero if unknown
}

// source is one place from which values are read.
type source struct {
	name string
	read func() ([]sample, error)
}

// sources lists them, best first. If two have the same family, the samples of the first are used, so that no
// series is emitted twice or mixes two counts.
func (b *Backend) sources() []source {
	r, f := b.opts.Roots, b.families
	return []source{
		{"node", func() ([]sample, error) { return readNodes(r, f) }},
		{"ebpf", b.readDriver},
		{"sgx_enclaves", func() ([]sample, error) { return readEnclaves(r, f) }},
		{"isgx", func() ([]sample, error) { return readParameters(r, f, "isgx") }},
		{"intel_sgx", func() ([]sample, error) { return readParameters(r, f, "intel_sgx") }},
		{"sgx_stats", func() ([]sample, error) { return readStats(r, f) }},
		{"kprobe", b.readOutside},
	}
}

// Collect implements tee.Backend.
func (b *Backend) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	from := map[*metric.Desc]string{}
	var errs []error
	for _, s := range b.sources() {
		samples, err := s.read()
		errs = append(errs, err)
		for _, x := range samples {
			if owner, taken := from[x.desc]; taken && owner != s.name {
				continue
			}
			from[x.desc] = s.name
			emit(x.desc.Since(x.began, x.value, x.labels...))
		}
		if len(samples) > 0 {
			emit(b.families.source.Value(1, s.name))
		}
	}
	b.emitWatch(emit)
	return errors.Join(errs...)
}

// readDriver returns the samples of the in-tree driver.
func (b *Backend) readDriver() ([]sample, error) {
	if b.watch.kernel == nil {
		return nil, b.failed
	}
	now := time.Now()
	if err := b.refresh(now); err != nil {
		return nil, err
	}
	return b.watch.samples(b.families, now, monotonic()), nil
}

// emitWatch emits what is not a sample of a source: durations, and the state of the programs.
func (b *Backend) emitWatch(emit func(prometheus.Metric)) {
	if o := b.outside.side(); o != nil {
		b.probes.Emit(o.object, o.status, emit)
	}
	k := b.watch.kernel
	if k == nil {
		return
	}
	for _, t := range b.watch.timings(b.families) {
		upTo, n := metric.Cumulated(t.Bucket[:])
		emit(t.desc.Distribution(time.Time{}, upTo, n, float64(t.SumNS)/1e9, t.labels...))
	}
	b.probes.Emit(k.object, k.status, emit)
}
