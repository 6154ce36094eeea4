// SPDX-License-Identifier: Apache-2.0

package system

import (
	"time"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// minMainAge is the minimum age of a main process. Helpers and health checks have usually ended by then.
const minMainAge = 5 * time.Second

// change is the kind of a replacement of a workload's main process.
type change int

const (
	unchanged  change = iota
	restarted         // the new process runs the same program
	redeployed        // the new process runs another program
	changes
)

// changeNames are the values of the label change.
var changeNames = [changes]string{restarted: workload.Restart, redeployed: workload.Deployment}

// executable identifies the program that a process runs.
type executable struct {
	file  hostfs.File
	path  string
	group int // process group: processes that a shell or a supervisor started together
}

// main is a workload's main process, the one that started first.
type main struct {
	executable
	tgid  uint32
	start time.Duration // time of its start since boot
	seen  time.Duration // time at which it was last seen, since boot
}

// succession is the main process of a workload and its last replacements.
type succession struct {
	now       main             // the current or the last one
	changedAt [changes]float64 // Unix times of the last changes
}

// observe takes the process of a workload that started first. Times are since boot. read returns the executable of a
// process. observe returns how the main process has changed, and the start of the new one.
func (s *succession) observe(tgid uint32, start, now time.Duration, read func(uint32) (executable, bool)) (change, time.Duration) {
	if tgid == 0 || now-start < minMainAge {
		return unchanged, 0
	}
	if s.now.tgid == tgid && s.now.start == start {
		s.now.seen = now
		return unchanged, 0
	}
	p, ok := read(tgid)
	if !ok {
		return unchanged, 0 // it has ended or cannot be read, so it is ignored
	}
	before := s.now
	s.now = main{executable: p, tgid: tgid, start: start, seen: now}
	if before.tgid == 0 {
		return unchanged, 0
	}
	// A process that started while the previous one lived does not replace it: workers of a pool, or programs of the
	// same name. A process of the same process group does not either: one program in the group starts helpers
	// repeatedly.
	follows := start > before.seen && start-before.seen <= workload.Soon && p.group != before.group
	switch {
	case p.file != before.file && (follows || p.path == before.path):
		return redeployed, start
	case p.file == before.file && follows:
		return restarted, start
	}
	return unchanged, 0
}
