// SPDX-License-Identifier: Apache-2.0

package system

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/teescope/teescope/internal/lib/waittest"
)

// put adds a change as the kernel side does.
func (r *changeRing) put(tgid uint32) {
	r.TGID[r.Written%uint64(len(r.TGID))] = tgid
	r.Written++
}

func TestChangesAreReadOnce(t *testing.T) {
	var l changeLog
	if _, complete := l.next(byDetector); complete {
		t.Error("nothing is loaded, and no change is missed")
	}
	ring := &changeRing{Written: 3}
	l.open(ring)
	if _, complete := l.next(byDetector); complete {
		t.Error("no change before the first call is missed")
	}
	read := func(want ...uint32) {
		t.Helper()
		if tgids, complete := l.next(byDetector); !complete || !slices.Equal(tgids, want) {
			t.Errorf("read %v, complete: %v; want %v", tgids, complete, want)
		}
	}
	ring.put(7)
	ring.put(8)
	read(7, 8)
	read()
	ring.Written += 2 // taken by two CPUs, of which only the second has written its entry
	ring.TGID[6] = 10
	read()
	ring.TGID[5] = 9
	read(9, 10)
	for range len(ring.TGID) + 1 {
		ring.put(11)
	}
	if _, complete := l.next(byDetector); complete {
		t.Error("the ring has been overwritten, and no change is missed")
	}
	ring.put(12)
	read(12)
}

// The kernel side may overwrite entries while they are read, and takes entries before it writes them.
func TestChangesThatAreOverwrittenWhileTheyAreReadAreMissed(t *testing.T) {
	ring := &changeRing{}
	var l changeLog
	l.open(ring)
	l.next(byDetector)
	for range ring.TGID {
		ring.put(7)
	}
	before := ring.Written
	ring.put(8) // in the place of the first
	if tgids, complete := l.take(before); complete {
		t.Errorf("%d changes, and none is missed", len(tgids))
	}
	for range ring.TGID {
		ring.put(9)
	}
	if _, complete := l.next(byDetector); complete {
		t.Error("the ring has been overwritten, and no change is missed")
	}
	ring.Written++ // taken by a CPU that has not written its entry
	if tgids, complete := l.next(byDetector); len(tgids) > 0 || !complete {
		t.Errorf("%v, complete: %v, before the entry is written", tgids, complete)
	}
	ring.TGID[(ring.Written-1)%uint64(len(ring.TGID))] = 10
	if tgids, complete := l.next(byDetector); !complete || !slices.Equal(tgids, []uint32{10}) {
		t.Errorf("%v, complete: %v, want 10", tgids, complete)
	}
}

// Each follower gets every change, whenever it asks, and knows if it missed some.
func TestEachFollowerGetsAllChanges(t *testing.T) {
	var l changeLog
	ring := &changeRing{}
	l.open(ring)
	l.next(byDetector)
	l.next(byMembers)
	read := func(f follower, want ...uint32) {
		t.Helper()
		if tgids, complete := l.next(f); !complete || !slices.Equal(tgids, want) {
			t.Errorf("read %v, complete: %v; want %v", tgids, complete, want)
		}
	}
	ring.put(7)
	read(byDetector, 7)
	ring.put(8)
	read(byDetector, 8)
	read(byMembers, 7, 8)
	read(byMembers)
	for range len(ring.TGID) + 1 { // more than one follower leaves waiting
		ring.put(9)
		read(byDetector, 9)
	}
	if tgids, complete := l.next(byMembers); complete || tgids != nil {
		t.Errorf("%d changes wait, complete: %v", len(tgids), complete)
	}
	ring.put(10)
	read(byMembers, 10)
}

func TestStartsAndExecsAreReported(t *testing.T) {
	c := start(t, Options{MaxWorkloads: 64})
	c.Changes()
	// The shell runs the second program in its own process.
	cmd := exec.Command("sh", "-c", "exec sleep 1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	n := 0
	waittest.Until(t, "the start of a process and its two programs", func() bool { // the shell may not have run yet
		tgids, complete := c.Changes()
		if !complete {
			t.Fatal("more processes have started than the ring has entries")
		}
		for _, tgid := range tgids {
			if int(tgid) == cmd.Process.Pid {
				n++
			}
		}
		return n >= 3
	})
	if n != 3 {
		t.Errorf("%d changes of a process that starts and runs two programs, want 3", n)
	}
}
