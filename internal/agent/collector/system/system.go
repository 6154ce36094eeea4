// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/probe"
	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/metric"
)

const (
	// slotsPerWorkload is the mean number of slots of a workload. A workload whose programs run in several cgroups
	// needs several.
	slotsPerWorkload = 2
	// housekeeping is the interval of refreshes without scrapes, and watchScan the interval with watch rules.
	housekeeping = 5 * time.Second
	watchScan    = time.Second
	// idleSlack is the fraction of such an interval by which a scrape may be late.
	idleSlack = 10
	// costSample is how long the kernel measures the programs' run time after the start.
	costSample = time.Second
)

// Collector is the collector of system metrics. It is also a service: Init attaches the probes, Run
// refreshes the slots and samples, Shutdown detaches the probes.
type Collector struct {
	opts     Options
	families *families
	probes   *probe.Families
	sampled  chan struct{}
	changes  changeLog
	busiest  busiest
	demands  Demands

	mu       sync.Mutex // protects the fields below
	kernel   *kernelSide
	slots    *slots
	watcher  watcher
	members  members
	last     time.Time // time of the last refresh
	overhead overhead
}

// New returns a collector. Nothing is loaded before Init.
func New(o Options) *Collector {
	c := &Collector{
		opts: o, families: newFamilies(), probes: probe.NewFamilies(""), sampled: make(chan struct{}), demands: Demands{changed: make(chan struct{}, 1)},
		watcher: watcher{rules: o.Watch, proc: hostfs.At(o.Proc), names: cgroup.Naming(o.Cgroup), reads: o.Reads}, members: members{proc: hostfs.At(o.Proc), detector: o.Detector},
		overhead: newOverhead(o), busiest: busiest{proc: hostfs.At(o.Proc), clock: clock.SinceBoot},
	}
	c.members.changes = &c.changes
	return c
}

// Name is "system".
func (c *Collector) Name() string { return "system" }

// Describe lists the families, including those about eBPF programs, which other collectors emit too.
func (c *Collector) Describe() []*metric.Desc { return append(c.families.all(), c.probes.All()...) }

// Sampled is closed when the programs' cost has been measured. The privileges for it can be dropped then.
func (c *Collector) Sampled() <-chan struct{} { return c.sampled }

// Init loads and attaches the probes.
func (c *Collector) Init(context.Context) error {
	began := time.Now()
	s, err := c.opts.sizes()
	if err != nil {
		return err
	}
	k, err := load(c.opts, s)
	if err != nil {
		return explain(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kernel, c.slots = k, newSlots(k, c.opts.MaxWorkloads, c.opts.Pods)
	c.overhead.governor.CPUs, c.overhead.costs = s.cpus, k.startCosts.costs
	c.slots.sampler.setCosts(&c.overhead.costs)
	if err := c.refresh(); err != nil {
		return errors.Join(err, k.object.Close())
	}
	c.changes.open(&k.changes[0])
	c.demands.note(k.status)
	for _, status := range k.status {
		if !status.Attached() {
			c.opts.Log.Info("probe not attached", "probe", status.Probe, "reason", status.Reason)
		}
	}
	c.opts.Log.Info("probes attached", "took", time.Since(began).Round(time.Millisecond), "slots", k.slots)
	return nil
}

// ErrNoBTF is returned when the kernel has no description of its types, which every program needs for relocation.
var ErrNoBTF = errors.New("this kernel has no BTF (/sys/kernel/btf/vmlinux is missing): " +
	"run one built with CONFIG_DEBUG_INFO_BTF=y, as distributions' kernels from 5.15 on are")

// explain replaces an error that the user can fix by one that says how.
func explain(err error) error {
	if errors.Is(err, ebpf.ErrNotSupported) && !exists("/sys/kernel/btf/vmlinux") {
		return ErrNoBTF
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (o Options) sizes() (sizes, error) {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return sizes{}, fmt.Errorf("counting CPUs: %w", err)
	}
	pids, err := hostfs.At(o.Proc).Number("sys/kernel/pid_max")
	if err != nil {
		return sizes{}, fmt.Errorf("reading the largest process ID: %w", err)
	}
	return sizes{
		cpus: cpus, slots: slotFirst + slotsPerWorkload*o.MaxWorkloads, pids: int(pids),
		controller: int32(cgroup.Naming(o.Cgroup)),
	}, nil
}

var errNotAttached = errors.New("collecting system metrics: the probes are not attached")

// Collect emits the samples of one scrape.
func (c *Collector) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	busy, due, err := c.findBusy()
	if err != nil {
		return err
	}
	if due {
		c.busiest.look(busy)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil {
		return errNotAttached
	}
	c.emit(emit)
	return nil
}

// findBusy refreshes the slots and returns the workloads whose threads are inspected.
func (c *Collector) findBusy() (all []*busy, due bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil {
		return nil, false, errNotAttached
	}
	if err := c.refresh(); err != nil {
		return nil, false, err
	}
	all, due = c.busiest.plan(c.kernel, c.slots, &c.members)
	return all, due, nil
}

// emit emits samples of the values that were last read.
func (c *Collector) emit(emit emitFunc) {
	e := emission{c.families, c.probes, c.kernel, c.slots, &c.members, &c.overhead, c.busiest.ratios}
	e.emit(emit)
}

func (c *Collector) refresh() error {
	c.last = time.Now()
	if err := c.slots.refresh(c.last); err != nil {
		return err
	}
	c.kernel.followCPUs()
	c.overhead.govern(c.slots, c.last)
	c.slots.trackMainProcesses(hostfs.At(c.opts.Proc), c.opts.Reads)
	if err := c.slots.nameLoaders(hostfs.At(c.opts.Proc), c.opts.Reads); err != nil {
		return err
	}
	return c.watcher.scan(c.slots, c.opts.Log)
}

// Run measures the programs' cost once, then samples and refreshes the slots until ctx ends.
func (c *Collector) Run(ctx context.Context) error {
	if err := bpf.SampleCosts(ctx, costSample); err != nil {
		c.opts.Log.Info("the cost of the probes is not measured", "reason", err)
	}
	close(c.sampled)
	every := c.watcher.every() // only follow changes the rules
	tick := time.NewTimer(every)
	defer tick.Stop()
	budget := time.NewTicker(budgetCheck)
	defer budget.Stop()
	step := time.NewTimer(0)
	defer step.Stop()
	measure := time.NewTimer(measureFirst)
	defer measure.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.overhead.began:
			step.Reset(0)
		case <-step.C:
			if wait, sampled := c.step(); sampled {
				step.Reset(wait)
			}
		case <-measure.C:
			measure.Reset(c.measure())
		case <-c.overhead.changed:
			changeRegime(c)
		case <-c.demands.changed:
			c.follow()
			every = c.watcher.every()
			tick.Reset(every)
		case <-budget.C:
			c.checkBudget()
		case <-tick.C:
			tick.Reset(c.refreshIfIdle(every))
		}
	}
}

// checkBudget compares the cost of counting with the budget. It reads the counts, but makes no pass over the threads.
func (c *Collector) checkBudget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil || !c.overhead.governor.Limited() || !c.overhead.due(time.Now()) {
		return
	}
	began := time.Now()
	c.slots.readCounts()
	c.overhead.govern(c.slots, began)
}

// refreshIfIdle refreshes the slots if nothing has for that long, and returns the time until it must be called again. Scrapes at
// the same interval come before that.
func (c *Collector) refreshIfIdle(every time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil {
		return every
	}
	if time.Since(c.last) >= every {
		if err := c.refresh(); err != nil {
			c.opts.Log.Warn("updating the groups of processes", "error", err)
		}
	}
	return max(0, time.Until(c.last.Add(every))) + every/idleSlack
}

// activeSampler returns the sampler, and whether its next step opens the window now. It is nil while nothing is sampled.
func (c *Collector) activeSampler() (s *sampler, opens bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil || !c.slots.sampler.Active() {
		return nil, false
	}
	return c.slots.sampler, c.slots.sampler.Opens()
}

// step performs the next step of sampling, and returns the time until the following one.
func (c *Collector) step() (wait time.Duration, sampled bool) {
	s, opens := c.activeSampler()
	if s == nil {
		return 0, false
	}
	// The kernel may need long to attach or detach a program. So the lock is not held meanwhile.
	defer s.apply()
	if opens {
		s.attach()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil || !s.Active() {
		return 0, false
	}
	if !opens && s.Opens() { // it is due since a moment ago
		return 0, true
	}
	next, err := c.slots.step(time.Now())
	if err != nil {
		c.opts.Log.Warn("sampling events", "error", err)
	}
	return max(0, time.Until(next)), true
}

// planRegime returns the regime in force and the wanted one. It returns no programs if both are the same.
func planRegime(c *Collector) (k *kernelSide, s *sampler, p pauses, now, wanted regime) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, wanted = c.overhead.now, c.overhead.wanted()
	if c.kernel == nil || now == wanted {
		return nil, nil, nil, now, wanted
	}
	return c.kernel, c.slots.sampler, c.overhead.pauses, now, wanted
}

// changeRegime puts the wanted regime in force. The lock is not held while programs are attached and detached. Only Run calls it.
func changeRegime(c *Collector) {
	k, s, paused, from, to := planRegime(c)
	if k == nil {
		return
	}
	k.prepare(s, paused, from, to)
	if enterRegime(c, to) {
		k.detachUnneeded(s, paused, to)
	}
}

// enterRegime puts a regime in force whose programs are attached.
func enterRegime(c *Collector, to regime) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil {
		return false
	}
	c.slots.readCounts()
	if err := c.overhead.enter(c.slots, to); err != nil {
		c.opts.Log.Warn("changing what is measured", "level", to.level.String(), "error", err)
	}
	c.overhead.announce() // another regime may be wanted since the programs were attached
	return true
}

// measure begins or ends a measurement of the programs, and returns the time until it must be called again.
func (c *Collector) measure() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil {
		return measureEvery
	}
	return c.overhead.measure(c.kernel)
}

// MainProcesses returns the main process of each workload that has a name of its own, as of the last scrape.
func (c *Collector) MainProcesses() []MainProcess {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil {
		return nil
	}
	var all []MainProcess
	for w, p := range c.slots.oldest() {
		if w.Kind.IsNamed() {
			all = append(all, MainProcess{Labels: workloadValues(w), PID: int(p.tgid), Started: time.Duration(p.start)})
		}
	}
	return all
}

// Changes returns the processes that have started or run another program since the last call. It returns false if there
// may be others, so that the caller must list all processes.
func (c *Collector) Changes() (tgids []uint32, complete bool) { return c.changes.next(byDetector) }

// Capabilities returns the capabilities that the collector needs after the start: CAP_PERFMON if there are performance counters,
// and CPUs that may come on line.
func (c *Collector) Capabilities() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil || !slices.ContainsFunc(c.kernel.status, func(s bpf.Status) bool { return s.Mechanism == bpf.PerfEvent }) {
		return nil
	}
	online, err1 := c.kernel.sys.CPUs("online")
	present, err2 := c.kernel.sys.CPUs("present")
	if err1 != nil || err2 != nil || len(online) == len(present) {
		return nil
	}
	return []string{"cap_perfmon"}
}

// Shutdown detaches the probes.
func (c *Collector) Shutdown(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil {
		return nil
	}
	k := c.kernel
	c.kernel, c.slots = nil, nil
	c.changes.open(nil)
	return k.object.Close()
}
