// SPDX-License-Identifier: Apache-2.0

package system

import (
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// settled is how long a process has lived that is its workload's main one: helpers and checks are over by then.
const settled = 5 * time.Second

// change is how a workload's main process was followed by another one.
type change int

const (
	unchanged  change = iota
	restarted         // it runs the same program
	redeployed        // it runs another one
	changes
)

// changeNames are the values of the label change.
var changeNames = [changes]string{restarted: workload.Restart, redeployed: workload.Deployment}

// executable is what a process runs.
type executable struct {
	file  hostfs.File
	path  string
	group int // of processes that a shell or a supervisor started together
}

// main is a workload's main process: the one of its processes that started first.
type main struct {
	executable
	tgid  uint32
	start time.Duration // after the machine's start
	seen  time.Duration // when it was last seen, likewise
}

// succession is what is known of the main processes of a workload.
type succession struct {
	now  main // or the last that there was
	told [changes]float64
}

// see looks at the process of a workload that started first. The time is that since the machine's start; read tells what a
// process runs. It says how the main process has changed, and since when: the start of the new one.
func (s *succession) see(tgid uint32, start, now time.Duration, read func(uint32) (executable, bool)) (change, time.Duration) {
	if tgid == 0 || now-start < settled {
		return unchanged, 0
	}
	if s.now.tgid == tgid && s.now.start == start {
		s.now.seen = now
		return unchanged, 0
	}
	p, ok := read(tgid)
	if !ok {
		return unchanged, 0 // it has ended, or cannot be looked at: it does not count
	}
	before := s.now
	s.now = main{executable: p, tgid: tgid, start: start, seen: now}
	if before.tgid == 0 {
		return unchanged, 0
	}
	// What started while the other one lived has not followed it: workers of a pool, and programs of the same name. And
	// what is started again and again in one process group is a helper of who starts it there.
	follows := start > before.seen && start-before.seen <= workload.Soon && p.group != before.group
	switch {
	case p.file != before.file && (follows || p.path == before.path):
		return redeployed, start
	case p.file == before.file && follows:
		return restarted, start
	}
	return unchanged, 0
}

// succeed looks at the main processes of all workloads whose names are not their containers': of those the collector of
// containers knows more.
func (c *Collector) succeed() {
	type oldest struct {
		tgid  uint32
		start uint64
	}
	first := map[*workload.Workload[kept]]oldest{}
	for sl := range c.slots.All() {
		g, w := sl.gauge, sl.Workload
		if w.Kind != workload.Program && w.Kind != workload.Unit || g.Oldest == 0 {
			continue
		}
		if was, ok := first[w]; !ok || g.OldestStart < was.start {
			first[w] = oldest{g.Oldest, g.OldestStart}
		}
	}
	now, wall := sinceBoot(), time.Now()
	for w, p := range first {
		what, since := w.Kept.succession.see(p.tgid, time.Duration(p.start), now, c.executable)
		if what != unchanged {
			w.Kept.succession.told[what] = float64(wall.Add(since-now).UnixMilli()) / 1000
		}
	}
}

func sinceBoot() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // fails on wrong arguments only
	return time.Duration(t.Nano())
}

// executable finds out what a process runs, without reading the program. False says that it has ended, may not be looked
// at, or runs from memory, where every start is of another file.
func (c *Collector) executable(tgid uint32) (executable, bool) {
	p := hostfs.At(c.opts.Proc).Process(int(tgid))
	path, err := p.Executable()
	if err != nil || strings.HasPrefix(path, "/memfd:") {
		return executable{}, false
	}
	file, err := p.ExecutableFile()
	if err != nil {
		return executable{}, false
	}
	group, err := unix.Getpgid(int(tgid))
	return executable{file: file, path: hostfs.Undeleted(path), group: group}, err == nil
}
