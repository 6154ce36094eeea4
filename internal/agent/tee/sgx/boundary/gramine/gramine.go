// SPDX-License-Identifier: Apache-2.0

// Package gramine reads the counters of entries, exits, AEXs and signals that Gramine keeps for each of its
// threads. It refuses to use counters that contradict each other, and to read memory that is not marked as a
// thread's control block.
package gramine

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
)

// Runtime is the value of the label runtime for files of Gramine with these counters.
const Runtime = "gramine"

// Options configure Counters.
type Options struct {
	Object    *bpf.Object
	UserProbe func(o *bpf.Object, program string) (*bpf.UserProbe, error) // loads one program
	Processes *process.Table
	Families  *count.Families
	Log       *slog.Logger
}

// Counters are the counters of all processes of Gramine.
type Counters struct {
	Options
	Ends   bpf.Status // of the hook at the end of threads
	Unseen float64    // ends of threads whose last counts were not read

	start, end *bpf.UserProbe
	threads    interface{ Open() (io.ReadCloser, error) }
	files      map[*window.File]*layout
	processes  map[uint32]*state
}

// state is what is known of a process of Gramine.
type state struct {
	layout  *layout
	threads map[threadKey]*thread
}

// thread is a thread of Gramine.
type thread struct {
	last  [counters]uint64
	alive bool // seen in the current pass
	ended bool // its last counts were read
}

// maxThreads is the limit of threads of one process.
const maxThreads = 8192

// exitProbe hooks the end of a thread, while its memory still exists. Without such a hook, the counts of a killed
// thread are those of the last read.
func exitProbe() bpf.Probe {
	return bpf.Probe{Name: "exit", Ways: []bpf.Way{
		{Program: "exit_tracepoint", Mechanism: bpf.TypedTracepoint, Target: "sched_process_exit"},
		{Program: "exit_fentry", Mechanism: bpf.Fentry, Target: "do_exit"},
		{Program: "exit_kprobe", Mechanism: bpf.Kprobe, Target: "do_exit"},
	}}
}

// Load loads the programs. Only the one at the end of threads runs before a file is probed.
func Load(o Options) (*Counters, error) {
	g := &Counters{Options: o, files: map[*window.File]*layout{}, processes: map[uint32]*state{}}
	var err error
	if g.start, err = o.UserProbe(o.Object, "gramine_start"); err != nil {
		return nil, err
	}
	if g.end, err = o.UserProbe(o.Object, "gramine_thread"); err != nil {
		return nil, err
	}
	if g.threads, err = o.Object.Iterator("threads"); err != nil {
		return nil, err
	}
	g.Ends, _ = o.Object.Attach(exitProbe()) // the status contains the reason
	if !g.Ends.Attached() {
		o.Log.Info("the last counts of killed threads are not read", "reason", g.Ends.Reason)
	}
	return g, nil
}

// Probe finds the counters in a file, and probes the start and the end of its threads. These are rare, so they
// are outside the budget.
func (g *Counters) Probe(file *window.File) error {
	if file.Runtime != Runtime {
		return nil
	}
	start, end, err := functionsOf(file.Program)
	if err != nil {
		return nil //nolint:nilerr // package functions reports it
	}
	l, err := findLayout(file.Program)
	if err != nil {
		return err
	}
	g.files[file] = l
	file.Hold(closer(func() { delete(g.files, file) }))
	if err := g.Object.Map("layouts").Put(uint32(file.Index), *l); err != nil {
		return fmt.Errorf("setting the layout of the counters: %w", err)
	}
	return errors.Join(g.attach(file, g.start, start, "sgx_ecall"), g.attach(file, g.end, end, "thread_exit"))
}

func (g *Counters) attach(file *window.File, probe *bpf.UserProbe, address uint64, what string) error {
	where, err := file.Program.Place(address)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	l, err := probe.Attach(file.Path(), []bpf.Site{{Offset: where.Offset, Cookie: window.Cookie(file.Index, 0, 0, 0)}})
	if err != nil {
		return err
	}
	file.Hold(l)
	return nil
}

type closer func()

// Close calls the function.
func (f closer) Close() error {
	f()
	return nil
}

// Observe adds a process of Gramine to the kernel side.
func (g *Counters) Observe(p *process.Process) error {
	if s := g.processes[p.TGID]; s != nil {
		return nil
	}
	for file := range p.Files {
		l := g.files[file]
		if l == nil {
			continue
		}
		g.know(p.TGID, l)
		if err := g.Object.Map("gramine").Put(p.TGID, *l); err != nil {
			return fmt.Errorf("noting a process of Gramine: %w", err)
		}
		return nil
	}
	return nil
}

func (g *Counters) know(tgid uint32, l *layout) *state {
	s := &state{layout: l, threads: map[threadKey]*thread{}}
	g.processes[tgid] = s
	return s
}

// Tick does nothing, because Read is called often enough.
func (g *Counters) Tick() error { return nil }

// Read reads the counters of running and of ended threads.
func (g *Counters) Read() error {
	live, err := g.live()
	if err != nil {
		return err
	}
	for _, t := range live {
		if p, s := g.process(t.TGID); s != nil {
			g.readThread(p, s, t)
		}
	}
	// After the running threads, so that a thread that ended meanwhile is included.
	ended, err := g.takeEnded()
	for key, e := range ended {
		if p, s := g.process(e.TGID); s != nil {
			t := s.thread(key)
			g.advance(p, t, e.Counters)
			t.ended = true
		} else {
			g.Unseen++
		}
	}
	for _, s := range g.processes {
		for key, t := range s.threads {
			if !t.alive {
				if !t.ended {
					g.Unseen++
				}
				delete(s.threads, key)
			}
			t.alive = false
		}
	}
	return err
}

// process returns a process of Gramine. It may be so new that only the kernel side has seen it.
func (g *Counters) process(tgid uint32) (*process.Process, *state) {
	p := g.Processes.Get(tgid)
	if p == nil {
		return nil, nil
	}
	s := g.processes[tgid]
	if s == nil {
		l := &layout{}
		if g.Object.Map("gramine").Lookup(tgid, l) != nil {
			return nil, nil
		}
		s = g.know(tgid, l)
	}
	return p, s
}

// thread returns the state of a thread, which is empty if the thread is new.
func (s *state) thread(key threadKey) *thread {
	t := s.threads[key]
	if t == nil {
		t = &thread{}
		s.threads[key] = t
	}
	return t
}

// readThread reads the counters of a running thread.
func (g *Counters) readThread(p *process.Process, s *state, live liveThread) {
	key := threadKey{Start: live.Start, TID: live.TID}
	if s.threads[key] == nil && len(s.threads) >= maxThreads {
		return
	}
	t := s.thread(key)
	t.alive = true
	if t.ended {
		return
	}
	if now, err := g.readCounters(live, *s.layout); err == nil {
		g.advance(p, t, now)
	}
}

// advance adds the growth of a thread's counters.
func (g *Counters) advance(p *process.Process, t *thread, now [counters]uint64) {
	trusted := trust(now)
	const source = "gramine_counters"
	for i := range trusted {
		n := now[i] - t.last[i]
		if now[i] < t.last[i] { // reset by SIGUSR1, from Gramine 1.8 on
			n = now[i]
		}
		t.last[i] = now[i]
		switch i {
		case syncSignals:
			count.Add(p.Workload, float64(n), g.Families.Signals, "sync", source)
		case asyncSignals:
			count.Add(p.Workload, float64(n), g.Families.Signals, "async", source)
		default:
			count.Add(p.Workload, float64(n), g.Families.Transitions, [...]string{eenters: "eenter", eexits: "eexit", aexs: "aex"}[i], source)
		}
	}
}

// Measures reports whether the counters of a process are known.
func (g *Counters) Measures(p *process.Process) bool { return g.processes[p.TGID] != nil }

// Forget forgets a process that has ended, after its counts were read.
func (g *Counters) Forget(p *process.Process) error {
	delete(g.processes, p.TGID)
	if err := g.Object.Map("gramine").Delete(p.TGID); err != nil && !bpf.IsMissing(err) {
		return fmt.Errorf("forgetting a process of Gramine: %w", err)
	}
	return nil
}

// Tidy does nothing, because probes end with their file.
func (g *Counters) Tidy() error { return nil }
