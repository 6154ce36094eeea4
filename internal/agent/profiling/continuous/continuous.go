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
	"sync"
	"sync/atomic"
	"time"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/recording"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
	"github.com/teescope/teescope/internal/agent/profiling/unwind"
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
	// sampleCost is the CPU time of one sample. See docs/user/profile.md.
	sampleCost = 20 * time.Microsecond
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
	changed  chan struct{} // another frequency is wanted
	demanded atomic.Bool

	mu      sync.Mutex // protects the fields below
	lacks   error      // why no samples can be taken; nil if they can
	hertz   int        // at present
	tallies profiling.Tallies

	// The fields below belong to Run.
	sampler   *profiling.Sampler
	table     *symbol.Table
	tables    *unwind.Tables // nil if stacks are found by frame pointers
	recording *recording.Recording
	about     recording.About
	look      map[*symbol.Process]bool // processes that may need other tables
}

// New returns a Profiler that takes no samples yet.
func New(o Options) *Profiler {
	return &Profiler{opts: o, families: newFamilies(), profiles: newRing(), changed: make(chan struct{}, 1), look: map[*symbol.Process]bool{}}
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
	p.sampler = sampler
	// The kernel's list of symbols is opened here, because the kernel checks the privilege to see addresses when the file is
	// opened.
	p.table = symbol.New(symbol.Options{
		Proc: p.opts.Proc, Sys: p.opts.Sys, Cgroup: p.opts.Cgroup, Debug: p.opts.Debug, Reads: p.opts.Reads, Remember: true,
	})
	if sampler.Unwinds() {
		p.tables = unwind.New(sampler, p.table)
	}
	p.about.Event, _ = sampler.Event()
	p.hertz = usual
	if !p.opts.Always {
		if err := p.setFrequency(0); err != nil {
			p.lacks = err
			return errors.Join(p.Shutdown(context.Background()), err)
		}
	}
	return nil
}

// Shutdown implements service.Shutdowner.
func (p *Profiler) Shutdown(context.Context) error {
	if p.sampler == nil {
		return nil
	}
	return errors.Join(p.sampler.Close(), p.table.Close())
}

// Demand takes samples at the frequency demanded, or as configured again.
func (p *Profiler) Demand(more bool) {
	if p.demanded.Swap(more) != more {
		select {
		case p.changed <- struct{}{}:
		default: // a change is pending
		}
	}
}

// Lacks returns why no samples can be taken, or nil.
func (p *Profiler) Lacks() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lacks
}

// Spent returns the CPU time that taking samples has cost, from their number.
func (p *Profiler) Spent() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.tallies.Taken) * sampleCost
}

// wanted is the frequency that is wanted now.
func (p *Profiler) wanted() int {
	switch {
	case p.demanded.Load():
		return demanded
	case p.opts.Always:
		return usual
	}
	return 0
}

func (p *Profiler) setFrequency(hertz int) error {
	err := p.sampler.SetFrequency(hertz)
	if err == nil {
		p.mu.Lock()
		p.hertz = hertz
		p.mu.Unlock()
	}
	return err
}

// Run implements service.Runner. A profile that fails is missing, and the agent continues.
func (p *Profiler) Run(ctx context.Context) error {
	if p.sampler == nil {
		<-ctx.Done()
		return nil
	}
	for ctx.Err() == nil {
		if p.wanted() == 0 {
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

// profile takes the samples of one profile. It ends early if another frequency is wanted.
func (p *Profiler) profile(ctx context.Context) {
	hertz := p.wanted()
	p.recording = recording.New(recording.Options{
		Table: p.table, All: true, Wanted: func(of *symbol.Process) { p.look[of] = true }, Locations: locations, Bytes: stackBytes, Moments: moments,
	})
	before := p.sampler.Tallies()
	p.about.Frequency, p.about.Weight, p.about.Unwound, p.about.Began = hertz, 1, p.tables != nil, time.Now()
	p.say("changing the frequency of samples", p.setFrequency(hertz))
	p.recording.Tick(p.about.Began)
	every := slow
	if hertz == demanded {
		every = fast
	}
	ticker, over := time.NewTicker(every), time.After(length)
	defer ticker.Stop()
	for going := true; going; {
		select {
		case <-ticker.C:
			p.say("reading samples", p.drain())
			continue
		case <-over:
		case <-p.changed:
		case <-ctx.Done():
			return // no client fetches it any more
		}
		going = false
	}
	p.say("changing the frequency of samples", p.setFrequency(p.wanted()))
	p.say("reading samples", p.drain())
	p.about.Lasted = time.Since(p.about.Began)
	after := p.sampler.Tallies()
	p.about.Tallies = profiling.Tallies{LostSamples: after.LostSamples - before.LostSamples, LostStacks: after.LostStacks - before.LostStacks}
	p.say("making a profile", p.finish())
	gone, err := p.table.Prune()
	p.say("removing ended processes", err)
	if p.tables != nil {
		p.say("removing ended processes", p.tables.Prune(gone))
	}
}

// say logs an error. Each profile may have one, so it is no more than a line a minute.
func (p *Profiler) say(what string, err error) {
	if err != nil {
		p.opts.Log.Warn(what, "err", err)
	}
}

func (p *Profiler) drain() error {
	p.table.Tick()
	p.recording.Tick(time.Now())
	err := p.sampler.Drain(p.recording.Add)
	for of := range p.look {
		if p.tables != nil {
			err = errors.Join(err, p.tables.Add(of))
		}
	}
	clear(p.look)
	tallies := p.sampler.Tallies()
	p.mu.Lock()
	p.tallies = tallies
	p.mu.Unlock()
	return err
}

// finish makes the profile of what was recorded, and keeps it. A minute without a sample has none.
func (p *Profiler) finish() error {
	if p.recording.Kept() == 0 {
		return nil
	}
	out, _ := p.recording.Profile(p.about)
	p.recording = nil
	data, err := recording.Encode(out, maxOne)
	if err != nil {
		return err
	}
	p.profiles.add(data)
	return nil
}
