// SPDX-License-Identifier: Apache-2.0

// Package boundary is the backend that counts crossings of the enclave boundary: what enters and leaves enclaves. It
// composes three mechanisms: breakpoints on the ENCLU of the vDSO, probes on functions of the untrusted runtimes, and the
// counters of Gramine. None touches the application. The package finds processes and their files for all of them, and
// keeps their costs within one budget. It refuses to know how a mechanism counts.
package boundary

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/probe"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/functions"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/gramine"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/watch"
)

// Mode says whether the enclave boundary is traced.
type Mode string

// The modes. Auto counts every call while there are fewer than the budget, and samples above it; On always
// counts every call.
const (
	Off  Mode = "off"
	Auto Mode = "auto"
	On   Mode = "on"
)

// Options are what the backend is made of.
type Options struct {
	Roots    tee.Roots
	Detector *tee.Detector // of these roots; others may ask it too
	Cgroup   string        // root of the cgroup file systems
	Mode     Mode
	// Budget is how many hits of probes a second are allowed in all programs of the machine together.
	Budget int
	// CostLow and CostHigh are what leaving an enclave and coming back cost, as the user has measured it; zero if not measured.
	CostLow, CostHigh time.Duration
	// MaxWorkloads bounds the label workload; what does not fit is folded into "other".
	MaxWorkloads int
	// Watch singles out processes whose calls are also timed.
	Watch []watch.Rule
	// Calls returns how many system calls the group of each process has made; nil when they are not counted.
	Calls func(pids []int) map[int]GroupCalls
	// Settled is closed once the agent has dropped privileges; nil means that it has. No file is probed before, because
	// functions found later could then not be probed, and a part of the functions would look like all of them.
	Settled <-chan struct{}
	Log     *slog.Logger

	events bool                              // in tests: attach as kernels before 6.6 need it
	enclu  func(tgid uint32) (uint64, error) // in tests: where a process has an instruction to take for that of the vDSO
}

// Times.
const (
	readEvery = 500 * time.Millisecond // the counters of threads, and which of them have ended
	scanEvery = 2 * time.Second        // the list of processes
)

// Backend is the backend. It is also a service: Init loads the programs, Run looks for processes and tends to
// the probes, Shutdown detaches them.
type Backend struct {
	opts     Options
	families *count.Families
	probes   *probe.Families
	now      func() time.Time

	mu         sync.Mutex // of everything below
	object     *bpf.Object
	losses     []uint64
	processes  *process.Table
	files      *window.Files
	mechanisms mechanisms
	functions  *functions.Functions
	gramine    *gramine.Counters
	estimated  systemCalls
	read       time.Time
	scanned    time.Time
}

// New makes the backend; nothing is loaded before Init.
func New(o Options) *Backend {
	return &Backend{opts: o, families: count.NewFamilies(), probes: probe.NewFamilies("transition/"), now: time.Now}
}

// Name implements tee.Backend. Names of probes begin with it, so it stays as it was before the package was renamed.
func (b *Backend) Name() tee.Kind { return "transition" }

// Describe implements tee.Backend.
func (b *Backend) Describe() []*metric.Desc { return b.families.All() }

// Init implements service.Initializer. A kernel without what this needs is no error: then there are no samples.
func (b *Backend) Init(context.Context) error {
	if b.opts.Mode == Off {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.processes = process.NewTable(host.New(b.opts.Roots.Proc, b.opts.Cgroup), b.opts.MaxWorkloads, func() time.Time { return b.now() })
	if err := b.load(); err != nil {
		b.opts.Log.Warn("the enclave boundary is not traced", "reason", err)
	}
	return nil
}

// Keeps names the capabilities that attaching needs after the start: none where the kernel attaches to all sites of a
// file at once, and the one for perf events elsewhere.
func (b *Backend) Keeps() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.object == nil || b.functions.Multi() {
		return nil
	}
	return []string{"cap_perfmon"}
}

// Run implements service.Runner.
func (b *Backend) Run(ctx context.Context) error {
	if b.opts.Settled != nil {
		select {
		case <-b.opts.Settled:
		case <-ctx.Done():
			return nil
		}
	}
	for {
		if err := b.tick(); err != nil {
			b.opts.Log.Warn("tracing the enclave boundary", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(b.wait()):
		}
	}
}

// wait is the time until the next tick.
func (b *Backend) wait() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	next := now.Add(window.Tick)
	switch {
	case b.object == nil: // and there will be none
		return time.Hour
	case b.idle():
		next = b.scanned.Add(scanEvery)
	}
	return max(b.files.Due(next).Sub(now), time.Millisecond)
}

// idle tells whether there is nothing to read: only a scan finds processes to count for.
func (b *Backend) idle() bool { return b.files.Len() == 0 && b.processes.Len() == 0 }

// Collect implements tee.Backend.
func (b *Backend) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	if b.opts.CostHigh > 0 {
		emit(b.families.Cost.Value(b.opts.CostLow.Seconds(), "low"))
		emit(b.families.Cost.Value(b.opts.CostHigh.Seconds(), "high"))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.object == nil {
		return nil
	}
	err := b.readAll(b.now())
	b.estimate()
	b.emit(emit)
	return err
}

// Shutdown implements service.Shutdowner.
func (b *Backend) Shutdown(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unload()
}
