// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/lib/watch"
)

// watcher gives each process that matches a rule its own slot.
type watcher struct {
	rules []watch.Rule
	proc  hostfs.Root // /proc
	names cgroup.Hierarchy
	reads *reader.Pool
	full  bool // the warning about the limit was logged
	unmatched
}

// unmatched finds rules that select nothing, such as one with a mistake in the name.
type unmatched struct {
	since   time.Time // the first scan
	matched map[string]bool
	told    bool
}

// silentFor is the time after which a rule that has matched no process is logged, once.
const silentFor = time.Minute

// note remembers which rules match a process, and returns their texts.
func (u *unmatched) note(rules []watch.Rule, p watch.Process) (texts []string) {
	if u.matched == nil {
		u.matched = map[string]bool{}
	}
	texts = watch.Matching(rules, p)
	for _, text := range texts {
		u.matched[text] = true
	}
	return texts
}

// silent returns the rules that have matched nothing, once, after they had time for it.
func (u *unmatched) silent(rules []watch.Rule, now time.Time) (silent []string) {
	if u.since.IsZero() {
		u.since = now
	}
	if u.told || now.Sub(u.since) < silentFor {
		return nil
	}
	u.told = true
	for _, r := range rules {
		if !u.matched[r.String()] {
			silent = append(silent, r.String())
		}
	}
	return silent
}

// every is the interval of refreshes without scrapes.
func (w *watcher) every() time.Duration {
	if len(w.rules) > 0 {
		return watchScan
	}
	return housekeeping
}

// scan moves each process that matches a rule and is not watched yet into its own slot. Each scan examines all
// processes again, because a process may execute another program or change its name.
func (w *watcher) scan(s *slots, log *slog.Logger) error {
	if len(w.rules) == 0 {
		return nil
	}
	pids, err := w.proc.Processes()
	if err != nil {
		return fmt.Errorf("listing processes to watch: %w", err)
	}
	for _, pid := range pids {
		now, ok := s.kernel.slotOf(pid)
		group := s.Get(uint32(now))
		if !ok || now < slotFirst || group != nil && group.watched != nil {
			continue
		}
		p, ok := watch.Look(w.proc, w.names, w.reads, pid)
		if !ok {
			continue
		}
		if group != nil {
			p.Workload = group.Identity.Name
		}
		matched := w.note(w.rules, p)
		if matched == nil {
			continue
		}
		if err := s.watch(p, matched, uint32(now), w, log); err != nil {
			return err
		}
	}
	for _, rule := range w.silent(w.rules, time.Now()) {
		log.Info("no process has matched a watch rule; a pattern must match the whole name", "rule", rule)
	}
	return nil
}

// watch moves a process into a slot of its own, which belongs to the same workload. Its children start
// in the slot of the group.
func (s *slots) watch(p watch.Process, rules []string, base uint32, w *watcher, log *slog.Logger) error {
	group := s.Get(base)
	if group == nil {
		return nil // the group is new: it is adopted before the next scan
	}
	n := 0
	for sl := range s.All() {
		if sl.watched == nil {
			continue
		}
		if !sl.watched.ended {
			n++
		}
		if sl.watched.pid == p.PID && sl.watched.base == base && sl.watched.comm == text.Label(p.Comm) {
			sl.watched.rules, sl.watched.ended = rules, false
			s.kernel.moveProcess(p.PID, uint16(base), uint16(sl.Number)) // an exec, or the end of a rule, has moved it out of its slot
			return nil
		}
	}
	part := attribution.Group[counts]{}
	place, ok := s.kernel.durations.findPlace()
	if ok = ok && n < maxWatched; ok {
		part, ok = s.Split(group, uint32(p.PID))
	}
	if !ok {
		if !w.full {
			log.Warn("more processes match the watch rules than are watched one by one", "limit", maxWatched, "first_left_out", p.PID)
		}
		w.full = true
		return nil
	}
	s.kernel.durations.own(part.Number, base, place)
	s.Put(s.estimated(&slot{
		Group:   part,
		watched: &watched{pid: p.PID, comm: text.Label(p.Comm), base: base, rules: rules},
	}))
	// The process may have executed another program or ended in the meantime. Then it does not move, nothing counts
	// into this slot and it is freed. The next scan examines the process again.
	s.kernel.moveProcess(p.PID, uint16(base), uint16(part.Number))
	return nil
}
