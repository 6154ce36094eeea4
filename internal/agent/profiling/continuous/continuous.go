// SPDX-License-Identifier: Apache-2.0

// Package continuous takes samples of all processes while the agent runs, makes a profile of each minute, and keeps the last
// ones in memory until a server has fetched them.
//
// It writes no files, and uses only the names of workloads. The sibling packages take samples and find names.
package continuous

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/calls"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

const (
	// usual is the frequency at which samples cost almost nothing, in samples per second and CPU.
	usual = 19
	// demanded is the frequency while a client has requested more samples.
	demanded = 99
	// length is the time that a profile covers, unless the frequency changes.
	length = time.Minute
	// slow and fast are the times between two readings of the samples, at usual and at demanded. A process that ends sooner has
	// no names.
	slow, fast = 500 * time.Millisecond, 100 * time.Millisecond
	rows       = 1 << 20 // of tables for stacks: 8 MiB
	// locations and stackBytes limit a profile. An agent has less memory than a command that profiles, and any process can have
	// other stacks in each sample.
	locations, stackBytes = 1 << 17, 64 << 20
	// moments limits the times of samples in a profile. Writing one takes a kilobyte of memory.
	moments = 1 << 15
	// work limits the bytes of symbols that are read for a profile. Reading them takes a few seconds at most.
	work = 256 << 20
	// sampleCost is the CPU time of one sample. See docs/user/profile.md.
	sampleCost = 20 * time.Microsecond
	// oneOf is the number of events that a sample stands for, of system calls and the like. There may be a million in a second.
	oneOf = 64
	// eventRows and eventEntries limit the memory for samples of these events, which are read ten times a second.
	eventRows, eventEntries = 1 << 19, 2048
)

// Options configure a Profiler.
type Options struct {
	Proc, Sys hostfs.Root
	Cgroup    string // root of the cgroup file systems
	Debug     string // directory of debug files
	Reads     *reader.Pool
	Always    bool // takes samples at the frequency usual
	OnDemand  bool // can be requested to take them at the frequency demanded
	Log       *slog.Logger
}

// Profiler takes samples. It is a service, a collector, and the handler of /api/profiles/next.
type Profiler struct {
	opts     Options
	families families
	profiles *ring
	changed  chan struct{} // other samples are wanted
	demanded atomic.Pointer[Demand]

	mu         sync.Mutex // protects the fields below
	lacks      error      // why no samples can be taken; nil if they can
	hertz      int        // at present
	tallies    profiling.Tallies
	ofEvents   profiling.Tallies
	lackEvents error // why no samples of events can be taken

	// The fields below belong to Run.
	table  *symbol.Table
	cpu    *source         // nil without samples
	events *source         // of system calls and the like; nil unless they can be demanded
	said   map[string]bool // what was logged during this profile
}

// Demand is what a client has requested for a while.
type Demand struct {
	More  bool            // samples of CPU time at a higher frequency
	Event profiling.Event // samples of this event of Events; empty for none
}

// New returns a Profiler that takes no samples yet.
func New(o Options) *Profiler {
	return &Profiler{opts: o, families: newFamilies(), profiles: newRing(), changed: make(chan struct{}, 1), said: map[string]bool{}}
}

// Name implements service.Service and collector.Collector.
func (*Profiler) Name() string { return "profiles" }

// errOff is the reason if samples are not enabled.
var errOff = errors.New("profiles are off: set profiles.enabled or control.enabled")

// Init implements service.Initializer. If no samples can be taken, the agent logs the reason and runs without them.
func (p *Profiler) Init(context.Context) error {
	if !p.opts.Always && !p.opts.OnDemand {
		p.lacks = errOff
		return nil
	}
	sampler, err := profiling.Open(profiling.Options{Frequency: usual, Unwind: true, Rows: rows, Sys: p.opts.Sys})
	if err != nil {
		p.lacks = err
		p.opts.Log.Warn("no profiles", "err", err)
		return nil
	}
	// The kernel's list of symbols is opened here, because the kernel checks the privilege to see addresses when the file is
	// opened.
	p.table = symbol.New(symbol.Options{
		Proc: p.opts.Proc, Sys: p.opts.Sys, Cgroup: p.opts.Cgroup, Debug: p.opts.Debug, Reads: p.opts.Reads, Remember: true, Work: work,
	})
	p.cpu = newSource(sampler, p.table)
	p.hertz = usual
	if !p.opts.Always {
		if err := p.setFrequency(0); err != nil {
			p.lacks = err
			return errors.Join(p.Shutdown(context.Background()), err)
		}
	}
	p.lackEvents = errOff
	if p.opts.OnDemand {
		p.lackEvents = p.openEvents()
	}
	return nil
}

// openEvents loads what takes samples of events. Without it, the others are taken.
func (p *Profiler) openEvents() error {
	sampler, err := profiling.Open(profiling.Options{Ready: Events(), Every: oneOf, Unwind: true, Rows: eventRows, Entries: eventEntries, Sys: p.opts.Sys})
	if err != nil {
		p.opts.Log.Warn("no profiles of events", "err", err)
		return err
	}
	p.events = newSource(sampler, p.table)
	return nil
}

// Events are those whose samples can be demanded, besides samples of CPU time.
func Events() []profiling.Event {
	return []profiling.Event{profiling.SystemCalls, profiling.OffCPU, profiling.OCalls, profiling.ECalls, profiling.AEX}
}

// Shutdown implements service.Shutdowner.
func (p *Profiler) Shutdown(context.Context) error {
	var errs []error
	for _, s := range []*source{p.cpu, p.events} {
		if s != nil {
			errs = append(errs, s.sampler.Close())
		}
	}
	if p.table != nil {
		errs = append(errs, p.table.Close())
	}
	return errors.Join(errs...)
}

// Demand takes other samples, in addition to what is configured.
func (p *Profiler) Demand(d Demand) {
	if before := p.demanded.Swap(&d); before == nil && d != (Demand{}) || before != nil && *before != d {
		select {
		case p.changed <- struct{}{}:
		default: // a change is pending
		}
	}
}

// Lacks returns why no samples of CPU time, or of an event, can be taken, or nil.
func (p *Profiler) Lacks(e profiling.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e == "" || p.lacks != nil {
		return p.lacks
	}
	if p.lackEvents != nil {
		return p.lackEvents
	}
	return p.events.sampler.Lacks(e)
}

// Spent returns the CPU time that taking samples has cost, from their number.
func (p *Profiler) Spent() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.tallies.Taken+p.ofEvents.Taken) * sampleCost
}

// wanted is what is wanted now: the frequency of samples of CPU time, and another event or none.
func (p *Profiler) wanted() (hertz int, event profiling.Event) {
	var d Demand
	if now := p.demanded.Load(); now != nil {
		d = *now
	}
	switch {
	case d.More:
		hertz = demanded
	case p.opts.Always:
		hertz = usual
	}
	return hertz, d.Event
}

func (p *Profiler) setFrequency(hertz int) error {
	err := p.cpu.sampler.SetFrequency(hertz)
	if err == nil {
		p.mu.Lock()
		p.hertz = hertz
		p.mu.Unlock()
	}
	return err
}

// Run implements service.Runner. A profile that fails is missing, and the agent continues.
func (p *Profiler) Run(ctx context.Context) error {
	if p.cpu == nil {
		<-ctx.Done()
		return nil
	}
	for ctx.Err() == nil {
		if hertz, event := p.wanted(); hertz == 0 && event == "" {
			select {
			case <-ctx.Done():
			case <-p.changed:
			}
			continue
		}
		p.profile(ctx)
	}
	return nil
}

// profile takes the samples of one profile of CPU time, and of one of an event. It ends early if others are wanted.
func (p *Profiler) profile(ctx context.Context) {
	clear(p.said)
	hertz, event := p.wanted()
	now := time.Now()
	var on []*source
	if hertz > 0 {
		kind, _ := p.cpu.sampler.Event()
		p.cpu.begin(kind, hertz, now)
		on = append(on, p.cpu)
		p.say("changing the frequency of samples", p.setFrequency(hertz))
	}
	if event != "" && p.beginEvents(event, now) {
		on = append(on, p.events)
	}
	every := slow
	if hertz == demanded || event != "" {
		every = fast
	}
	ticker, over := time.NewTicker(every), time.After(length)
	defer ticker.Stop()
	for going := true; going; {
		select {
		case <-ticker.C:
			p.say("reading samples", p.drain(on))
			continue
		case <-over:
		case <-p.changed:
		case <-ctx.Done():
			p.endEvents(on) // no client fetches the profiles any more
			return
		}
		going = false
	}
	next, _ := p.wanted()
	p.say("changing the frequency of samples", p.setFrequency(next))
	p.endEvents(on)
	p.say("reading samples", p.drain(on))
	for _, s := range on {
		data, err := s.finish()
		p.say("making a profile", err)
		if len(data) > 0 {
			p.profiles.add(data)
		}
	}
	gone, err := p.table.Prune()
	p.say("removing ended processes", err)
	for _, s := range []*source{p.cpu, p.events} {
		if s != nil {
			p.say("removing ended processes", s.prune(gone))
		}
	}
}

// beginEvents begins to take samples of an event, and reports whether it can.
func (p *Profiler) beginEvents(event profiling.Event, now time.Time) bool {
	if p.events == nil {
		return false
	}
	if err := p.events.sampler.Begin(event); err != nil {
		p.say("taking samples of "+string(event), err)
		return false
	}
	p.events.begin(event, 0, now)
	p.events.about.Unseen = nil
	switch event {
	case profiling.AEX:
		p.events.about.Unseen = p.events.sampler.Unseen()
	case profiling.OCalls, profiling.ECalls:
		p.events.calls = calls.New(calls.Options{
			Host: host.New(p.opts.Proc.Path(), p.opts.Cgroup, p.opts.Reads), Sampler: p.events.sampler, Out: event == profiling.OCalls,
		})
	}
	return true
}

// endEvents takes no more samples of an event, if some are taken.
func (p *Profiler) endEvents(on []*source) {
	if !slices.Contains(on, p.events) {
		return
	}
	p.say("ending the samples of an event", p.events.sampler.End())
	if p.events.calls != nil {
		p.say("ending the samples of an event", p.events.calls.Close())
		p.events.calls = nil
	}
}

// say logs an error, if there is one: the first one of a kind in a profile, because samples are read ten times a second.
func (p *Profiler) say(what string, err error) {
	if err != nil && !p.said[what] {
		p.said[what] = true
		p.opts.Log.Warn(what, "err", err)
	}
}

func (p *Profiler) drain(on []*source) error {
	p.table.Tick()
	var errs []error
	for _, s := range on {
		problems, err := s.drain()
		errs = append(errs, err)
		for _, what := range problems {
			p.opts.Log.Info("profiles", "incomplete", what)
		}
	}
	tallies := p.cpu.sampler.Tallies()
	var ofEvents profiling.Tallies
	if p.events != nil {
		ofEvents = p.events.sampler.Tallies()
	}
	p.mu.Lock()
	p.tallies, p.ofEvents = tallies, ofEvents
	p.mu.Unlock()
	return errors.Join(errs...)
}
