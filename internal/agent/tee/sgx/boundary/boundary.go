// SPDX-License-Identifier: Apache-2.0

// Package boundary is the backend that counts transitions of the enclave boundary: entries and exits of enclaves. It composes
// four mechanisms: breakpoints on ENCLU in the vDSO and in runtimes, probes on functions of the untrusted runtimes, the
// counters of Gramine, and the interrupts that arrive in enclaves. The application need not be changed. The package finds
// processes and their files for all mechanisms, and keeps their cost within one budget. It does not depend on how a mechanism
// counts.
package boundary

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/probe"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/breakpoint"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/functions"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/gramine"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/interrupts"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/teelabel"
	"github.com/teescope/teescope/internal/lib/watch"
)

// Mode selects whether the enclave boundary is traced.
type Mode string

// The modes. modeAuto counts every call while the cost is below the budget, and samples above it. modeOn always counts
// every call.
const (
	modeOff  Mode = "off"
	modeAuto Mode = "auto"
	modeOn   Mode = "on"
)

// Options configure a Backend.
type Options struct {
	Roots    tee.Roots
	Detector *tee.Detector // of these roots; it may be shared
	Reads    *reader.Pool  // reads processes that may not answer
	Cgroup   string        // root of the cgroup file systems
	Mode     Mode
	// Budget is the number of probe hits a second that are allowed in all programs of the machine together.
	Budget int
	// CostLow and CostHigh are the cost of leaving and re-entering an enclave, as the user measured it. They are
	// zero if not measured.
	CostLow, CostHigh time.Duration
	// MaxWorkloads limits the values of the label workload. Further workloads are counted as "other".
	MaxWorkloads int
	// Watch selects the processes whose calls are also timed.
	Watch []watch.Rule
	// OnDemand prepares what Demands may switch on while the backend runs.
	OnDemand bool
	// Calls returns the number of system calls of the group of each process. It is nil if system calls are not
	// counted.
	Calls func(pids []int) map[int]GroupCalls
	// Pods completes the identity of a workload in a pod. Nil leaves the UID.
	Pods func(*workload.Identity) bool
	// PrivilegesDropped is closed when the agent has dropped privileges. If nil, they were dropped before. No file is probed
	// before that, because functions that are found later could then not be probed, and the count of some functions would look
	// like the count of all.
	PrivilegesDropped <-chan struct{}
	Log               *slog.Logger

	events bool                              // in tests: attach as for kernels before 6.6
	enclu  func(tgid uint32) (uint64, error) // in tests: finds an instruction that replaces the ENCLU of the vDSO
	// enclaves is set in tests: programs are treated as enclaves, on a machine without the driver.
	enclaves bool
	// hidden is set in tests: the kernel hides the addresses of its variables.
	hidden bool
}

// Intervals.
const (
	readEvery = 500 * time.Millisecond // reads the counters of threads and finds those that ended
	scanEvery = 2 * time.Second        // looks at processes that are new or changed
	listEvery = 2 * time.Minute        // lists all processes, in case that an event was missed
	// A scan follows sooner when a program has opened a device, but not sooner than this after the last one, and later with many known
	// processes: a scan reads each.
	scanAfter, scanAfterEach = 100 * time.Millisecond, 10 * time.Millisecond
	// readPatience is how long a step or a scrape waits for reads of processes. A usual one takes 50 us. The results of others are used
	// when they arrive.
	readPatience = 100 * time.Millisecond
)

// Backend implements tee.Backend. It is also a service: Init loads the programs, Run finds processes and
// maintains the probes, Shutdown detaches them.
type Backend struct {
	// Demands changes which calls are timed while the backend runs.
	Demands Demands
	// Transitions answers about single processes and threads.
	Transitions Transitions

	opts     Options
	families *count.Families
	probes   *probe.Families
	now      func() time.Time

	emitted atomic.Pointer[emitted] // by the last scrape that read the counts

	mu         sync.Mutex // protects all fields below
	object     *bpf.Object
	losses     []uint64
	stopInodes func() // ends the use of the object by reads of processes
	processes  *process.Table
	ahead      *host.Ahead   // has a lock of its own
	opened     *tee.Opened   // nil if the machine has no device
	patience   time.Duration // with which reads are waited for
	files      *window.Files
	mechanisms mechanisms
	functions  *functions.Functions
	gramine    *gramine.Counters
	doors      []*breakpoint.Breakpoints // those that this kernel supports
	interrupts *interrupts.Interrupts
	search     *breakpoint.Search // nil if no breakpoints are set
	estimated  systemCalls
	read       time.Time
	scanned    time.Time
	listed     time.Time
	unread     []uint32           // processes that this scan inspects
	found      map[uint32]finding // of the last scan, by process
	scans      bool               // a scan waits for what was asked
	hurried    bool               // a program has opened a device since the last scan
	reads      bool               // a read of the counters does
}

// New returns a backend. Init loads its programs. The prefix of probes is a label value, which dashboards and rules of
// users select, so it is not the name of the package.
func New(o Options) *Backend {
	b := &Backend{
		opts: o, families: count.NewFamilies(), probes: probe.NewFamilies("transition/"), now: time.Now,
		patience: readPatience, ahead: host.NewAhead(hostOf(o)),
	}
	b.Transitions = Transitions{b}
	return b
}

// Name implements tee.Backend. The backend named after the TEE is package driver.
func (b *Backend) Name() teelabel.Kind { return "boundary" }

// Describe implements tee.Backend.
func (b *Backend) Describe() []*metric.Desc { return b.families.All() }

// Init implements service.Initializer. A kernel that does not support tracing is not an error: there are no samples
// then.
func (b *Backend) Init(context.Context) error {
	if b.opts.Mode == modeOff {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	from := hostOf(b.opts)
	from.Ahead = b.ahead
	b.processes = process.NewTable(from, b.opts.MaxWorkloads, func() time.Time { return b.now() })
	if err := b.load(); err != nil {
		b.opts.Log.Warn("the enclave boundary is not traced", "reason", err)
		return nil
	}
	var err error
	if b.opened, err = tee.NewOpened(b.opts.Roots); err != nil {
		b.opts.Log.Info("programs with an enclave are found within two seconds", "reason", err)
	}
	return nil
}

// Capabilities returns the capabilities that attaching needs after the start. A kernel that attaches to all sites of a
// file at once needs none. Others need the one for perf events.
func (b *Backend) Capabilities() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.object == nil || b.functions.Multi() {
		return nil
	}
	return []string{"cap_perfmon"}
}

// Run implements service.Runner.
func (b *Backend) Run(ctx context.Context) error {
	if b.opts.PrivilegesDropped != nil {
		select {
		case <-b.opts.PrivilegesDropped:
		case <-ctx.Done():
			return nil
		}
	}
	if b.opened != nil {
		go b.opened.Run()
	}
	for {
		if err := b.tick(); err != nil {
			b.opts.Log.Warn("tracing the enclave boundary", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(b.wait()):
		case <-b.ahead.Arrived: // after those that were waited for
		case <-openings(b):
			hurry(b)
		}
	}
}

// openings reports openings of devices. It is nil while a scan follows soon anyway: a tenant may open a device without pause, and each
// report takes a step.
func openings(b *Backend) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opened == nil || b.hurried {
		return nil
	}
	return b.opened.C
}

// hurry makes the next scan follow soon, and look at young programs.
func hurry(b *Backend) {
	b.opts.Detector.Hurry()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hurried = true
}

// nextScan is when the next scan is due.
func nextScan(b *Backend) time.Time {
	if b.hurried {
		return b.scanned.Add(min(scanEvery, scanAfter+scanAfterEach*time.Duration(b.processes.Len())))
	}
	return b.scanned.Add(scanEvery)
}

// wait is the time until the next tick.
func (b *Backend) wait() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	next := now.Add(window.Tick)
	switch {
	case b.object == nil: // nothing is loaded, and nothing will be
		return time.Hour
	case b.idle():
		next = nextScan(b)
	}
	return max(b.files.Due(next).Sub(now), time.Millisecond)
}

// idle reports whether there is nothing to read. Only a scan finds new processes.
func (b *Backend) idle() bool { return b.files.Len() == 0 && b.processes.Len() == 0 }

// Collect implements tee.Backend.
func (b *Backend) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	if b.opts.CostHigh > 0 {
		emit(b.families.Cost.Value(b.opts.CostLow.Seconds(), "low"))
		emit(b.families.Cost.Value(b.opts.CostHigh.Seconds(), "high"))
	}
	if b.opts.Mode == modeOff {
		return nil
	}
	asked := refresh(b)
	if earlier := lockOr(&b.mu, &b.emitted, scrapeWaits); earlier != nil {
		return earlier.again(emit, b.families.Age.Value(time.Since(earlier.at).Seconds()))
	}
	defer b.mu.Unlock()
	if b.object == nil {
		return nil
	}
	all := emitted{at: time.Now(), err: errors.Join(asked, b.readAll(b.now()))}
	if b.processes.Waiting() { // processes that were not inspected yet
		b.mu.Unlock()
		waitForReads(b)
		b.mu.Lock()
		if b.object == nil {
			return nil
		}
		all.err = errors.Join(all.err, b.readAll(b.now()))
	}
	b.estimate()
	b.emit(func(m prometheus.Metric) { all.samples = append(all.samples, m) })
	b.emitted.Store(&all)
	return all.again(emit, b.families.Age.Value(0))
}

// emitted has the data that a scrape has read.
type emitted struct {
	at      time.Time
	samples []prometheus.Metric
	err     error
}

func (e *emitted) again(emit func(prometheus.Metric), age prometheus.Metric) error {
	for _, m := range e.samples {
		emit(m)
	}
	emit(age)
	return e.err
}

// A step that attaches or detaches probes waits for the kernel, which may take seconds on an overloaded machine. A scrape waits
// for the step for scrapeWaits. After that it repeats the counts of an earlier scrape. It does not repeat old counts, because
// they would look like those of an idle machine.
const (
	scrapeWaits  = 2 * time.Second  // for a step
	scrapeRepeat = 10 * time.Second // the age of counts that are not repeated any more
)

// lockOr locks the mutex. If that takes longer than waits, it returns the earlier counts instead, unless they are old. It waits
// in turn, because scans that follow each other leave no moment in which the lock is free.
func lockOr(mu *sync.Mutex, earlier *atomic.Pointer[emitted], waits time.Duration) *emitted {
	if mu.TryLock() {
		return nil
	}
	locked, left := make(chan struct{}), make(chan struct{})
	go func() {
		mu.Lock()
		select {
		case locked <- struct{}{}:
		case <-left:
			mu.Unlock()
		}
	}()
	select {
	case <-locked:
		return nil
	case <-time.After(waits):
	}
	if last := earlier.Load(); last != nil && time.Since(last.at) < scrapeRepeat {
		close(left)
		return last
	}
	<-locked
	return nil
}

// Shutdown implements service.Shutdowner.
func (b *Backend) Shutdown(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	if b.opened != nil {
		err = b.opened.Close()
	}
	return errors.Join(err, b.unload())
}

// hostOf returns the processes that the options are about.
func hostOf(o Options) host.Processes {
	h := host.New(o.Roots.Proc, o.Cgroup, o.Reads)
	h.Pods = o.Pods
	return h
}
