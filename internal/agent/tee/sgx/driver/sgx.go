// SPDX-License-Identifier: Apache-2.0

// Package driver is the SGX backend: the enclave page cache (EPC) and the enclaves, as the in-tree driver shows
// when it is watched by eBPF, and as drivers and the kernel tell in files. Which of these there are depends
// on the driver. The package refuses to guess: what no source says has no sample.
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
	"github.com/teescope/teescope/internal/lib/metric"
)

// pageSize is that of the EPC: 4 KiB by architecture (Intel SDM vol. 3D, Enclave Page Cache).
const pageSize = 4096

// Options of the backend.
type Options struct {
	Roots  tee.Roots
	Cgroup string // root of the cgroup file systems
	// MaxWorkloads bounds the label workload; what does not fit is folded into "other".
	MaxWorkloads int
	Log          *slog.Logger
}

// Backend is the backend. Its Init attaches to the in-tree driver, Run looks after what was attached, and
// Shutdown detaches. Without them it reads files only.
type Backend struct {
	opts     Options
	log      *slog.Logger
	families *families
	probes   *probe.Families

	mu     sync.Mutex // of everything below
	watch  watch
	failed error // why a driver that is there is not watched
}

// New makes the backend.
func New(o Options) *Backend {
	return &Backend{opts: o, log: o.Log, families: newFamilies(), probes: probe.NewFamilies("sgx/")}
}

// Name implements tee.Backend.
func (b *Backend) Name() tee.Kind { return tee.SGX }

// Describe implements tee.Backend.
func (b *Backend) Describe() []*metric.Desc { return b.families.all() }

// sample is one value that a source tells.
type sample struct {
	desc   *metric.Desc
	value  float64
	labels []string
}

// source is one place where a driver or the kernel tells something.
type source struct {
	name string
	read func() ([]sample, error)
}

// sources lists them, best first: where two tell the same family, the first one's samples are taken, so
// that no series is emitted twice or mixed of two counts.
func (b *Backend) sources() []source {
	r, f := b.opts.Roots, b.families
	return []source{
		{"node", func() ([]sample, error) { return readNodes(r, f) }},
		{"ebpf", b.readDriver},
		{"sgx_enclaves", func() ([]sample, error) { return readEnclaves(r, f) }},
		{"isgx", func() ([]sample, error) { return readParameters(r, f, "isgx") }},
		{"intel_sgx", func() ([]sample, error) { return readParameters(r, f, "intel_sgx") }},
		{"sgx_stats", func() ([]sample, error) { return readStats(r, f) }},
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
			emit(x.desc.Value(x.value, x.labels...))
		}
		if len(samples) > 0 {
			emit(b.families.source.Value(1, s.name))
		}
	}
	b.emitWatch(emit)
	return errors.Join(errs...)
}

// readDriver says what was seen of the in-tree driver.
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

// emitWatch emits what is no sample of a source: how long things took, and what the programs are.
func (b *Backend) emitWatch(emit func(prometheus.Metric)) {
	k := b.watch.kernel
	if k == nil {
		return
	}
	for _, t := range b.watch.timings(b.families) {
		n, sum, upTo := t.classic()
		emit(t.desc.Distribution(n, sum, upTo, t.labels...))
	}
	b.probes.Emit(k.object, k.status, emit)
}
