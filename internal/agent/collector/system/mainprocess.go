// SPDX-License-Identifier: Apache-2.0

package system

import (
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// succeed looks at the main processes of all workloads whose names are not their containers': of those the collector of
// containers knows more.
func (s *slots) succeed(proc hostfs.Root) {
	type oldest struct {
		tgid  uint32
		start uint64
	}
	first := map[*workload.Workload[kept]]oldest{}
	for sl := range s.All() {
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
		what, since := w.Kept.succession.see(p.tgid, time.Duration(p.start), now, func(tgid uint32) (executable, bool) { return executableOf(proc, tgid) })
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

// executableOf finds out what a process runs, without reading the program. False says that it has ended, may not be looked
// at, or runs from memory, where every start is of another file.
func executableOf(proc hostfs.Root, tgid uint32) (executable, bool) {
	p := proc.Process(int(tgid))
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
