// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// oldest is the process of a workload that started first, and its start since boot in nanoseconds.
type oldest struct {
	tgid  uint32
	start uint64
}

// oldest returns the main process of each workload that has one.
func (s *slots) oldest() map[*workload.Workload[counts]]oldest {
	first := map[*workload.Workload[counts]]oldest{}
	for sl := range s.All() {
		g := sl.gauge
		if g.Oldest == 0 {
			continue
		}
		if was, ok := first[sl.Workload]; !ok || g.OldestStart < was.start {
			first[sl.Workload] = oldest{g.Oldest, g.OldestStart}
		}
	}
	return first
}

// trackMainProcesses detects replaced main processes of all workloads except containers, which the collector of
// containers tracks with more information.
func (s *slots) trackMainProcesses(proc hostfs.Root, reads *reader.Pool) {
	now, wall := clock.SinceBoot(), time.Now()
	for w, p := range s.oldest() {
		if w.Kind != workload.Program && w.Kind != workload.Unit {
			continue
		}
		what, since := w.Data.succession.observe(p.tgid, time.Duration(p.start), now, func(tgid uint32) (executable, bool) {
			e, err := reader.Of(reads, int(tgid), func() (executable, error) { return executableOf(proc, tgid) })
			return e, err == nil
		})
		if what != unchanged {
			w.Data.succession.changedAt[what] = float64(wall.Add(since-now).UnixMilli()) / 1000
		}
	}
}

// MainProcess is the process of a workload that started first.
type MainProcess struct {
	Labels  []string // of the workload, as its families have them
	PID     int
	Started time.Duration // since boot; with it the process ID is unique
}

// errInMemory means that a program runs from memory, where each start has a new file.
var errInMemory = errors.New("the program is in memory and not in a file")

// executableOf identifies the program that a process runs, without reading the program file.
func executableOf(proc hostfs.Root, tgid uint32) (executable, error) {
	p := proc.Process(int(tgid))
	path, err := p.Executable()
	if err != nil {
		return executable{}, err
	}
	if strings.HasPrefix(path, "/memfd:") {
		return executable{}, errInMemory
	}
	file, err := p.ExecutableFile()
	if err != nil {
		return executable{}, err
	}
	group, err := unix.Getpgid(int(tgid))
	return executable{file: file, path: hostfs.Undeleted(path), group: group}, err
}
