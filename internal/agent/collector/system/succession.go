// SPDX-License-Identifier: Apache-2.0

package system

import (
	"time"

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
