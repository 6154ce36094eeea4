// SPDX-License-Identifier: Apache-2.0

// Package gramine reads the counters of entries, exits, AEXs and signals that Gramine keeps for each of its threads. It does
// not use counters that contradict each other or read memory that is not marked as a thread's control block.
package gramine

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// runtime is the value of the label runtime for files of Gramine with these counters.
const runtime = "gramine"

// source is the label source of what these counters count.
const source = "gramine_counters"

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
	Resets float64    // how often counters of a running thread were set to 0

	start, end *bpf.UserProbe
	threads    interface{ Open() (io.ReadCloser, error) }
	absent     func() bool // reports whether the kernel side has no process of Gramine
	files      map[*window.File]*layout
	processes  map[uint32]*state
	grown      [counters]uint64          // what was added for the block that is read
	before     uint64                    // when the previous reading began, in nanoseconds since boot
	asked      []liveThread              // whose counters are read for the next reading
	held       map[threadKey]endedThread // of processes that are being read
}

// maxHeld is the limit of threads that have ended and whose process is being read.
const maxHeld = 8192

// state is the state of a process of Gramine.
type state struct {
	layout *layout
	blocks map[uint64]*block  // by their address
	ended  map[threadKey]bool // threads whose end was seen and that may still be listed
	read   bool               // its blocks were read before
	sum    [counters]uint64   // of all its threads
}

// mayHave reports whether a control block at an address is one of those that are counted.
func (s *state) mayHave(gs uint64) bool { return s.blocks[gs] != nil || len(s.blocks) < maxBlocks }

// maxBlocks is the limit of control blocks of one process, of which each thread has one.
const maxBlocks = 8192

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
	g := &Counters{Options: o, files: map[*window.File]*layout{}, processes: map[uint32]*state{}, held: map[threadKey]endedThread{}}
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
	g.absent = func() bool { return bpf.IsEmpty[uint32](o.Object.Map("gramine")) }
	g.Ends, _ = o.Object.Attach(exitProbe()) // the status contains the reason
	if !g.Ends.Attached() {
		o.Log.Info("the last counts of killed threads are not read", "reason", g.Ends.Reason)
	}
	return g, nil
}

// Examine finds the counters in a file, and the functions at the start and the end of its threads. It uses only the file.
// It returns a function that probes them. They are called rarely, so the budget does not include them.
func (g *Counters) Examine(p *executable.Program, in string) (func(*window.File) error, error) {
	if in != runtime {
		return nil, nil
	}
	of, err := functionsOf(p)
	if err != nil {
		return nil, unanswered(err) // package functions reports the others
	}
	l, err := findLayout(p)
	if reader.Unanswered(err) {
		return nil, err
	}
	if err != nil {
		return func(*window.File) error { return err }, nil
	}
	ends := []end{{g.start, "sgx_ecall", of.start, point{}}, {g.end, "thread_exit", of.end, point{}}}
	if of.reset != 0 { // a function of debug builds from Gramine 1.8 on
		ends = append(ends, end{g.end, "update_sgx_stats_on_exit", of.reset, point{}})
	}
	for i := range ends {
		if ends[i].where.ProbePoint, ends[i].where.err = p.ProbePoint(ends[i].address); reader.Unanswered(ends[i].where.err) {
			return nil, ends[i].where.err
		}
	}
	return func(file *window.File) error { return g.probe(file, l, ends) }, nil
}

// unanswered returns an error if it means that the file could not be read.
func unanswered(err error) error {
	if reader.Unanswered(err) {
		return err
	}
	return nil
}

// end is a function at the start or the end of a thread.
type end struct {
	probe   *bpf.UserProbe
	name    string
	address uint64
	where   point
}

// point is the probe point of a function, or the reason why it has none.
type point struct {
	executable.ProbePoint
	err error
}

func (g *Counters) probe(file *window.File, l *layout, ends []end) error {
	g.files[file] = l
	file.Hold(closer(func() { delete(g.files, file) }))
	if err := g.Object.Map("layouts").Put(uint32(file.Index), *l); err != nil {
		return fmt.Errorf("setting the layout of the counters: %w", err)
	}
	var errs []error
	for _, e := range ends {
		errs = append(errs, attach(file, e))
	}
	return errors.Join(errs...)
}

func attach(file *window.File, e end) error {
	if e.where.err != nil {
		return fmt.Errorf("%s: %w", e.name, e.where.err)
	}
	l, err := e.probe.Attach(file.Path(), []bpf.Site{{Offset: e.where.Offset, Cookie: window.Cookie(file.Index, 0, 0, 0)}})
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
	if s := g.processes[tgid]; s != nil {
		return s
	}
	s := &state{layout: l, blocks: map[uint64]*block{}, ended: map[threadKey]bool{}}
	g.processes[tgid] = s
	return s
}

// Tick does nothing, because Read is called often enough.
func (g *Counters) Tick() error { return nil }

// Read reads the counters of running and of ended threads.
func (g *Counters) Read() error {
	now, err := sinceBoot()
	if err != nil {
		return err
	}
	live, err := g.running()
	if err != nil {
		return err
	}
	pass := map[blockKey]*seen{}
	for _, t := range live {
		at := blockKey{TGID: t.TGID, GS: t.GS}
		if _, s := g.process(t.TGID); s != nil && pass[at] == nil && s.mayHave(t.GS) {
			pass[at] = &seen{}
			if r, ok := g.takeCounters(t, *s.layout); ok {
				pass[at].readings = append(pass[at].readings, r)
			}
		}
	}
	// After the running threads, so that a thread that ended meanwhile is included.
	ended, err := g.takeEnded()
	maps.Copy(ended, g.held)
	clear(g.held)
	g.addEnded(pass, ended)
	g.addRunning(pass, live)
	for at, s := range pass {
		g.addAt(at, s, now)
	}
	for tgid, s := range g.processes {
		for gs := range s.blocks {
			if at := (blockKey{TGID: tgid, GS: gs}); pass[at] == nil {
				g.addAt(at, &seen{}, now)
			}
		}
	}
	for _, s := range g.processes {
		s.read = true
	}
	g.before = now
	return err
}

// addEnded adds the threads that have ended. A thread whose process cannot be named counts for the workload of processes without
// a name.
func (g *Counters) addEnded(pass map[blockKey]*seen, ended map[threadKey]endedThread) {
	for key, e := range ended {
		_, s := g.process(e.TGID)
		if g.Processes.Waits(e.TGID) && len(g.held) < maxHeld {
			g.held[key] = e
			continue
		}
		if s == nil && g.Processes.Known(e.TGID) == nil && !g.Processes.Runs(e.TGID) {
			s = g.know(e.TGID, &layout{})
		}
		if s == nil {
			g.Unseen++
			continue
		}
		s.ended[key] = true
		at := blockKey{TGID: e.TGID, GS: e.GS}
		if pass[at] == nil {
			pass[at] = &seen{}
		}
		pass[at].spans = append(pass[at].spans, span{start: key.Start, end: e.At})
		pass[at].readings = append(pass[at].readings, reading{from: e.At, to: e.At, counters: e.Counters, final: true})
	}
}

// addRunning adds the threads that run. A thread whose end was seen may still be listed for a moment.
func (g *Counters) addRunning(pass map[blockKey]*seen, live []liveThread) {
	running := map[uint32]map[threadKey]bool{}
	for _, t := range live {
		s, key := g.processes[t.TGID], threadKey{Start: t.Start, TID: t.TID}
		if s == nil {
			continue
		}
		if running[t.TGID] == nil {
			running[t.TGID] = map[threadKey]bool{}
		}
		running[t.TGID][key] = true
		if at := pass[blockKey{TGID: t.TGID, GS: t.GS}]; at != nil && !s.ended[key] {
			at.spans = append(at.spans, span{start: t.Start, end: forever})
		}
	}
	for tgid, s := range g.processes {
		maps.DeleteFunc(s.ended, func(key threadKey, _ bool) bool { return !running[tgid][key] })
	}
}

// addAt adds what a pass has seen at one address.
func (g *Counters) addAt(at blockKey, s *seen, now uint64) {
	of, owner := g.processes[at.TGID], g.Processes.Owner(g.Processes.Known(at.TGID))
	old := func(s span) bool { return s.start < g.before }
	g.grown = [counters]uint64{}
	if b := g.add(owner, of.blocks[at.GS], s, now); b != nil {
		of.blocks[at.GS] = b
	} else {
		delete(of.blocks, at.GS)
	}
	if of.read || !slices.ContainsFunc(s.spans, old) { // otherwise its exits may be from before OCALLs were probed
		owner.Data.Exits += float64(g.grown[eexits]) // Gramine counts exits for OCALLs only
	}
	for i, n := range g.grown {
		of.sum[i] += n
	}
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

// Measures reports whether the counters of a process are known.
func (g *Counters) Measures(p *process.Process) bool { return g.processes[p.TGID] != nil }

// Forget forgets a process that has ended, after its counts were read.
func (g *Counters) Forget(p *process.Process) error {
	delete(g.processes, p.TGID)
	if err := g.Object.Map("gramine").Delete(p.TGID); err != nil && !bpf.IsMissing(err) {
		return fmt.Errorf("removing a process of Gramine: %w", err)
	}
	return nil
}

// Tidy forgets processes that ended before they were inspected. Probes end with their file.
func (g *Counters) Tidy() error {
	var tgid uint32
	var l layout
	var errs []error
	for entries := g.Object.Map("gramine").Iterate(); entries.Next(&tgid, &l); {
		g.know(tgid, &l)
	}
	for tgid := range g.processes {
		if g.Processes.Known(tgid) != nil || g.Processes.Runs(tgid) {
			continue
		}
		errs = append(errs, g.Forget(&process.Process{Group: process.Group{TGID: tgid}}))
	}
	return errors.Join(errs...)
}
