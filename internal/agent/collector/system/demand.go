// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/watch"
)

// Demand contains the measurements that are switched on for a limited time, in addition to the options.
type Demand struct {
	Watch  []watch.Rule         // further rules
	Timing bool                 // the time of system calls is measured
	Exact  bool                 // there is no budget
	Paused map[string]time.Time // probes that are switched off, and until when
}

// Demands passes a Demand on to the collector while it runs.
type Demands struct {
	changed chan struct{}

	mu       sync.Mutex // protects the fields below
	last     Demand
	untimely error // why system calls cannot be timed
	probes   []bpf.Status
}

// Demands returns what changes the demand. The options must have OnDemand.
func (c *Collector) Demands() *Demands { return &c.demands }

// Set replaces the measurements that are switched on in addition to the options. It does not wait: Run applies the change.
func (s *Demands) Set(d Demand) {
	s.mu.Lock()
	s.last = d
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default: // Run has not taken the last change yet
	}
}

// get returns the last demand.
func (s *Demands) get() Demand {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// TimesCalls returns why the time of system calls cannot be measured on this machine, or nil. It is valid after Init.
func (s *Demands) TimesCalls() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.untimely
}

// note remembers which probes are attached, and whether system calls can be timed. It is valid after Init.
func (s *Demands) note(probes []bpf.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probes = probes
	for _, p := range probes {
		if p.Probe == exitProbe && !p.Attached() {
			s.untimely = errors.New("the probe " + exitProbe + " is not attached: " + p.Reason)
		}
	}
}

// follow applies the last demand.
func (c *Collector) follow() {
	d := c.demands.get()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil {
		return
	}
	c.watcher.replace(slices.Concat(c.opts.Watch, d.Watch), c.slots)
	budget := c.overhead.budget
	if d.Exact {
		budget = 0
	}
	c.overhead.pauses = newPauses(d.Paused)
	c.overhead.governor.Want(c.opts.SyscallTime || d.Timing, len(c.watcher.rules) > 0, budget)
	c.overhead.announce()
	if err := c.refresh(); err != nil {
		c.opts.Log.Warn("updating the groups of processes", "error", err)
	}
}

// replace sets the rules. A process that none of them has selected returns to the slot of its group. No process is read.
func (w *watcher) replace(rules []watch.Rule, s *slots) {
	w.rules = rules
	texts := map[string]bool{}
	for _, r := range rules {
		texts[r.String()] = true
	}
	w.since, w.told, w.full = time.Time{}, false, false
	for text := range w.matched {
		if !texts[text] {
			delete(w.matched, text)
		}
	}
	for sl := range s.All() {
		of := sl.watched
		if of == nil || of.ended || slices.ContainsFunc(of.rules, func(text string) bool { return texts[text] }) {
			continue
		}
		of.ended = true
		// A process that has executed another program in the meantime has left the slot itself.
		s.kernel.moveProcess(of.pid, uint16(sl.Number), uint16(of.base))
	}
}
