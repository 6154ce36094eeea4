// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"teescope/internal/workload"
)

// watcher gives processes that a rule singles out slots of their own.
type watcher struct {
	rules []workload.Rule
	proc  string // root of /proc
	full  bool   // said already that there are no more places
}

// scan looks at all processes and moves those that match and are not watched yet.
// A process is looked at in each scan, because exec and setting a name change what it is.
func (w *watcher) scan(s *slots, warn func(msg string, args ...any)) error {
	if len(w.rules) == 0 {
		return nil
	}
	entries, err := os.ReadDir(w.proc)
	if err != nil {
		return fmt.Errorf("listing processes to watch: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		now, ok := s.kernel.slotOf(pid)
		if sl := s.active[uint32(now)]; !ok || now < slotFirst || sl != nil && sl.watched != nil {
			continue
		}
		p, ok := w.process(pid)
		if !ok || !w.match(p) {
			continue
		}
		if err := s.watch(p, uint32(now), w, warn); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) match(p workload.Process) bool {
	for _, r := range w.rules {
		if r.Match(p) {
			return true
		}
	}
	return false
}

// process reads what rules look at. Processes end at any time: then there is nothing to watch.
func (w *watcher) process(pid int) (workload.Process, bool) {
	dir := filepath.Join(w.proc, strconv.Itoa(pid))
	comm, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return workload.Process{}, false
	}
	exe, err := os.Readlink(filepath.Join(dir, "exe"))
	if errors.Is(err, fs.ErrNotExist) {
		return workload.Process{}, false // it has ended, and nobody has asked how
	}
	cgroups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
	return workload.Process{
		PID: pid, Comm: strings.TrimSuffix(string(comm), "\n"),
		Exe: strings.TrimSuffix(exe, " (deleted)"), Cgroup: longestCgroup(string(cgroups)),
	}, true
}

// longestCgroup takes from /proc/PID/cgroup (lines ID:CONTROLLERS:PATH) the path that says most: with
// cgroup v1 a process is often in the root of some hierarchies.
func longestCgroup(lines string) string {
	longest := ""
	for line := range strings.Lines(lines) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) == 3 && len(parts[2]) > len(longest) {
			longest = parts[2]
		}
	}
	return longest
}

// watch moves a process into a slot of its own, which belongs to the same workload. Its children start
// in the group's slot again.
func (s *slots) watch(p workload.Process, base uint32, w *watcher, warn func(string, ...any)) error {
	group := s.active[base]
	if group == nil {
		return nil // made a moment ago: the next scan finds it adopted
	}
	n := 0
	for _, sl := range s.active {
		if sl.watched == nil {
			continue
		}
		n++
		if sl.watched.pid == p.PID && sl.watched.base == base && sl.watched.comm == workload.Clean(p.Comm) {
			s.kernel.moveProcess(p.PID, uint16(base), uint16(sl.number)) // it had left its slot, by an exec
			return nil
		}
	}
	var number uint32
	if n >= maxWatched || s.kernel.freeSlots.LookupAndDelete(nil, &number) != nil {
		if !w.full {
			warn("more processes match the watch rules than are watched one by one", "limit", maxWatched, "first_left_out", p.PID)
		}
		w.full = true
		return nil
	}
	g := &s.kernel.groups[number]
	*g = s.kernel.groups[base]
	g.TGID, g.Base, g.Watched, g.Ready = uint32(p.PID), base, 1, 1
	s.active[number] = &slot{
		number: number, identity: group.identity, owner: group.owner, tgid: g.TGID,
		watched: &watched{pid: p.PID, comm: workload.Clean(p.Comm), base: base},
	}
	s.registry.Add(group.owner)
	// What it was read to be may be over: it started another program, or ended. Then the next scan sees what it
	// is, and nothing has counted into this slot, which is given back.
	s.kernel.moveProcess(p.PID, uint16(base), uint16(number))
	return nil
}
