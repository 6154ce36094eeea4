// SPDX-License-Identifier: Apache-2.0

// Package boundary is the backend that counts what enclaves cost: entering and leaving them. It measures
// where the untrusted runtime allows it, without touching the application: probes on the functions of the
// Intel SDK, Open Enclave and Occlum that ECALLs and OCALLs come by, and the counters that Gramine keeps for
// each of its threads. It refuses to guess, to set a probe where it might break a program, and to make a
// program pay for being watched beyond a budget: above it, it samples and says so.
package boundary

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
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/watch"
)

// Mode says whether transitions are traced.
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
	// Budget is how many hits of probes a second all programs of the machine may pay for together.
	Budget int
	// CostLow and CostHigh are what a crossing and the way back cost, as the user has measured it; zero where nobody has.
	CostLow, CostHigh time.Duration
	// MaxWorkloads bounds the label workload; what does not fit is folded into "other".
	MaxWorkloads int
	// Watch singles out processes whose calls are also timed.
	Watch []watch.Rule
	// Calls tells of each of these processes how many system calls its group has made; nil when nobody counts them.
	Calls func(pids []int) map[int]GroupCalls
	// Settled is closed once the process has the privileges that it will keep; nil is at once. No file is probed before:
	// what only the start may attach to would be half of what is to be counted.
	Settled <-chan struct{}
	Log     *slog.Logger

	events bool                              // in tests: attach as kernels before 6.6 need it
	enclu  func(tgid uint32) (uint64, error) // in tests: where a process has an instruction to take for that of the vDSO
}

// Times and bounds.
const (
	tickEvery = 100 * time.Millisecond
	readEvery = 500 * time.Millisecond // the counters of threads, and who has ended
	scanEvery = 2 * time.Second        // the processes there are

	maxSites     = 4096
	maxProcesses = 4096
)

// Backend is the backend. It is also a service: Init loads the programs, Run looks for processes and tends to
// the probes, Shutdown detaches them.
type Backend struct {
	opts     Options
	families *families
	probes   *probe.Families
	host     hostProcesses
	now      func() time.Time

	mu        sync.Mutex // of everything below
	kernel    *kernelSide
	files     map[fileID]*probedFile
	slots     [maxFiles]*probedFile
	sites     map[uint32]*site
	lastSite  uint32
	tables    map[tableOf]error  // nil where all OCALLs of the table are seen
	seen      map[callKey]uint64 // what was read of the kernel's counters
	processes map[uint32]*process
	registry  *workload.Registry[counts]
	stepping  uint8                // cost of a hit on an instruction that is not emulated
	timed     map[callKey]duration // what was read of the kernel's durations
	untimed   string               // why no call can be timed, empty where it can
	intervals uint64               // of counting, of all files
	guessed   guesses
	door      doorway
	unseen    float64 // ends of threads
	cut       float64 // calls that were not timed to their end
	read      time.Time
	scanned   time.Time
}

// tableOf is an OCALL table of a file, by its address as linked.
type tableOf struct {
	file    fileID
	address uint64
}

// New makes the backend; nothing is loaded before Init.
func New(o Options) *Backend {
	return &Backend{
		opts: o, families: newFamilies(), probes: probe.NewFamilies("transition/"), now: time.Now,
		host: hostProcesses{proc: hostfs.At(o.Roots.Proc), names: cgroup.Naming(o.Cgroup)},
	}
}

// Name implements tee.Backend. The crossings are those of SGX.
func (b *Backend) Name() tee.Kind { return "transition" }

// Describe implements tee.Backend.
func (b *Backend) Describe() []*metric.Desc { return b.families.all() }

// Init implements service.Initializer. A kernel without what this needs is no error: then there are no samples.
func (b *Backend) Init(context.Context) error {
	if b.opts.Mode == Off {
		return nil
	}
	timing := len(b.opts.Watch) > 0
	enclu := b.wayIn()
	k, err := load(b.opts.events, timing, timing && enclu != nil)
	if err != nil {
		b.opts.Log.Warn("transitions are not traced", "reason", err)
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if k.closed != nil {
		b.opts.Log.Info("AEX are counted for Gramine only", "reason", k.closed)
	} else if k.breakpoints != nil {
		b.door.address = enclu
		if b.door.cost, err = k.measureBreakpoints(); err != nil {
			b.opts.Log.Info("the cost of breakpoints is assumed", "reason", err)
		}
	}
	b.kernel = k
	b.files, b.sites, b.tables = map[fileID]*probedFile{}, map[uint32]*site{}, map[tableOf]error{}
	b.seen, b.timed, b.processes = map[callKey]uint64{}, map[callKey]duration{}, map[uint32]*process{}
	b.untimed = refuseReturns(b.host.proc)
	b.registry = workload.NewRegistry[counts](b.opts.MaxWorkloads)
	if b.stepping, err = k.measureStepping(); err != nil {
		b.opts.Log.Info("the cost of probes is assumed", "reason", err)
	}
	if !k.exit.Attached() {
		b.opts.Log.Info("the last counts of threads that are killed are not seen", "reason", k.exit.Reason)
	}
	return nil
}

// Keeps names the capabilities that attaching needs after the start: none, where the kernel attaches to all
// places of a file at once, and else that of perf events.
func (b *Backend) Keeps() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kernel == nil || b.kernel.call.Multi() {
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
			b.opts.Log.Warn("tracing transitions", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(b.rest()):
		}
	}
}

// rest is how long nothing is to be done.
func (b *Backend) rest() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait, now := tickEvery, b.now()
	switch {
	case b.kernel == nil: // and there will be none
		return time.Hour
	case b.nobody():
		wait = b.scanned.Add(scanEvery).Sub(now)
	}
	for _, file := range b.files {
		if len(file.sites) > 0 {
			wait = min(wait, file.sampler.due().Sub(now))
		}
	}
	return max(wait, time.Millisecond)
}

// nobody tells whether there is nothing to read: only a scan finds whom to count for.
func (b *Backend) nobody() bool { return len(b.files) == 0 && len(b.processes) == 0 }

func (b *Backend) tick() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kernel == nil {
		return nil
	}
	now := b.now()
	var errs []error
	if now.Sub(b.scanned) >= scanEvery {
		b.scanned = now
		errs = append(errs, b.scan())
	}
	if b.nobody() {
		return errors.Join(errs...)
	}
	errs = append(errs, b.sample(), b.findTables())
	if now.Sub(b.read) >= readEvery {
		errs = append(errs, b.refresh(now))
	}
	return errors.Join(errs...)
}

// refresh reads all counters.
func (b *Backend) refresh(now time.Time) error {
	b.read = now
	return errors.Join(b.settle(nil, 1), b.readThreads())
}

// Collect implements tee.Backend.
func (b *Backend) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	if b.opts.CostHigh > 0 {
		emit(b.families.cost.Value(b.opts.CostLow.Seconds(), "low"))
		emit(b.families.cost.Value(b.opts.CostHigh.Seconds(), "high"))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kernel == nil {
		return nil
	}
	err := b.refresh(b.now())
	b.estimate()
	b.emit(emit)
	return err
}

// Shutdown implements service.Shutdowner.
func (b *Backend) Shutdown(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kernel == nil {
		return nil
	}
	var errs []error
	for _, file := range b.files {
		errs = append(errs, b.drop(file))
	}
	errs = append(errs, b.kernel.object.Close())
	b.kernel = nil
	return errors.Join(errs...)
}
