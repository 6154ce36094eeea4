// SPDX-License-Identifier: Apache-2.0

package system

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// life is a process of a workload: its executable, its start and its end, in seconds after the machine's start.
type life struct {
	tgid       uint32
	start, end int
	executable
}

var (
	old   = hostfs.File{FileID: hostfs.FileID{Device: 1, Inode: 10}, Size: 100, Modified: 1}
	newer = hostfs.File{FileID: hostfs.FileID{Device: 1, Inode: 11}, Size: 120, Modified: 2}
)

func TestRestartsAndDeploymentsAreToldApart(t *testing.T) {
	at := func(f hostfs.File, path string, group int) executable { return executable{f, path, group} }
	for name, tt := range map[string]struct {
		lives               []life
		restart, deployment int // start of the new process, 0 for none
	}{
		"the first start is neither":    {[]life{{1, 0, 60, at(old, "/app", 1)}}, 0, 0},
		"the same file again":           {[]life{{1, 0, 30, at(old, "/app", 1)}, {2, 33, 60, at(old, "/app", 2)}}, 33, 0},
		"another file at the same path": {[]life{{1, 0, 30, at(old, "/app", 1)}, {2, 33, 60, at(newer, "/app", 2)}}, 0, 33},
		"another path":                  {[]life{{1, 0, 30, at(old, "/app-1", 1)}, {2, 33, 60, at(newer, "/app-2", 2)}}, 0, 33},
		"the same file at another path": {[]life{{1, 0, 30, at(old, "/app", 1)}, {2, 33, 60, at(old, "/link", 2)}}, 33, 0},
		"another file, long after":      {[]life{{1, 0, 30, at(old, "/app", 1)}, {2, 900, 960, at(newer, "/app", 2)}}, 0, 900},
		"another path, long after: a program that happens to have the name": {
			[]life{{1, 0, 30, at(old, "/a/main", 1)}, {2, 900, 960, at(newer, "/b/main", 2)}}, 0, 0},
		"a job that runs now and then": {[]life{{1, 0, 30, at(old, "/job", 1)}, {2, 900, 960, at(old, "/job", 2)}}, 0, 0},
		"children, which the first process outlives": {
			[]life{{1, 0, 60, at(old, "/app", 1)}, {2, 10, 30, at(old, "/app", 1)}, {3, 31, 60, at(old, "/app", 1)}}, 0, 0},
		"a child that outlives its parent": {[]life{{1, 0, 30, at(old, "/app", 1)}, {2, 10, 60, at(old, "/app", 1)}}, 0, 0},
		"another program of the same name, which was there": {
			[]life{{1, 0, 30, at(old, "/a/python3", 1)}, {2, 10, 60, at(newer, "/b/python3", 2)}}, 0, 0},
		"a new version that takes over from the running one": {
			[]life{{1, 0, 30, at(old, "/nginx", 1)}, {2, 20, 60, at(newer, "/nginx", 1)}}, 0, 20},
		"helpers that are over at once": {
			[]life{{1, 0, 2, at(old, "/h", 1)}, {2, 3, 6, at(old, "/h", 2)}, {3, 8, 11, at(newer, "/h", 3)}, {4, 12, 15, at(old, "/h", 4)}}, 0, 0},
		"helpers that take longer, of a script": {
			[]life{{1, 0, 20, at(old, "/bin/sleep", 9)}, {2, 21, 40, at(old, "/bin/sleep", 9)}, {3, 41, 60, at(old, "/bin/sleep", 9)}}, 0, 0},
		"a start that fails, then one that stays": {
			[]life{{1, 0, 30, at(old, "/app", 1)}, {2, 31, 33, at(newer, "/app", 2)}, {3, 36, 60, at(newer, "/app", 3)}}, 0, 36},
		"both, one after the other": {
			[]life{{1, 0, 20, at(old, "/app", 1)}, {2, 21, 40, at(newer, "/app", 2)}, {3, 41, 60, at(newer, "/app", 3)}}, 41, 21},
	} {
		restart, deployment := replay(tt.lives)
		if restart != tt.restart || deployment != tt.deployment {
			t.Errorf("%s: restart at %d and deployment at %d, want %d and %d", name, restart, deployment, tt.restart, tt.deployment)
		}
	}
}

// replay observes some processes each second, and returns the last changes.
func replay(lives []life) (restart, deployment int) {
	var s succession
	for second := range 1000 {
		first := life{}
		for _, l := range lives {
			if l.start <= second && second < l.end && (first.tgid == 0 || l.start < first.start) {
				first = l
			}
		}
		read := func(uint32) (executable, bool) { return first.executable, true }
		what, since := s.observe(first.tgid, time.Duration(first.start)*time.Second, time.Duration(second)*time.Second, read)
		switch what {
		case restarted:
			restart = int(since.Seconds())
		case redeployed:
			deployment = int(since.Seconds())
		}
	}
	return restart, deployment
}

func TestWhatCannotBeReadIsNoChange(t *testing.T) {
	var s succession
	for second, readable := range []bool{true, false, true} {
		tgid, start := uint32(second+1), time.Duration(10*second)*time.Second
		read := func(uint32) (executable, bool) { return executable{newer, "/app", second}, readable }
		if what, _ := s.observe(tgid, start, start+minMainAge, read); what != unchanged && !readable {
			t.Errorf("process %d cannot be read, but counts as %v", tgid, what)
		}
	}
}

func TestWhatAProcessRuns(t *testing.T) {
	is, err := executableOf(hostfs.At("/proc"), uint32(os.Getpid()))
	path, _ := os.Executable()
	if err != nil || is.path != path || is.group != syscall.Getpgrp() || is.file.Size == 0 {
		t.Errorf("this process runs %+v (%v), want %s in the group %d", is, err, path, syscall.Getpgrp())
	}
	if _, err := executableOf(hostfs.At("/proc"), 1<<30); err == nil {
		t.Error("a process that does not exist has an executable")
	}
}

// On the real kernel: the kernel side stores the first process of a workload.
func TestTheOldestProcessIsFound(t *testing.T) {
	c := start(t, Options{})
	path := program(t, "oldest")
	name := filepath.Base(path)[:min(15, len(filepath.Base(path)))]
	var pids []int
	for range 3 {
		cmd := job(path, "sleep", "1h")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		pids = append(pids, cmd.Process.Pid)
		time.Sleep(20 * time.Millisecond) // so that the start times differ
	}
	waittest.Until(t, "all processes to run their program", func() bool { return sum(scrape(t, c), "teescope_processes", "workload", name) == 3 })
	c.mu.Lock()
	defer c.mu.Unlock()
	for sl := range c.slots.All() {
		if sl.Workload.Name != name {
			continue
		}
		age := clock.SinceBoot() - time.Duration(sl.gauge.OldestStart)
		if int(sl.gauge.Oldest) != pids[0] || sl.gauge.Processes != 3 || age < 40*time.Millisecond || age > 10*time.Minute {
			t.Errorf("of %d processes the oldest is %d, %s old; want %d of %v", sl.gauge.Processes, sl.gauge.Oldest, age, pids[0], pids)
		}
		return
	}
	t.Errorf("no workload has the name %s", name)
}
