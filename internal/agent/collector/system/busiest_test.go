// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// looks is a fake /proc of one workload, and a clock that stands still within a look.
type looks struct {
	t    *testing.T
	root string
	now  time.Duration
	b    busiest
	of   *workload.Workload[counts]
}

// newLooks returns looks of which the first was at 1,000 s.
func newLooks(t *testing.T) *looks {
	l := &looks{t: t, root: t.TempDir(), now: 1000 * time.Second, of: &workload.Workload[counts]{}}
	l.b = busiest{proc: hostfs.At(l.root), clock: func() time.Duration { return l.now }, looked: l.now}
	return l
}

func (l *looks) dir(pid, tid int) string {
	return filepath.Join(l.root, fmt.Sprint(pid), "task", fmt.Sprint(tid))
}

// write writes the stat of a thread, as proc_pid_stat(5) describes it.
func (l *looks) write(pid, tid int, started, cpu time.Duration) {
	l.t.Helper()
	const tick = 10 * time.Millisecond
	if err := os.MkdirAll(l.dir(pid, tid), 0o755); err != nil {
		l.t.Fatal(err)
	}
	line := fmt.Sprintf("%d (a) b) R%s %d 0%s %d 0\n", tid, strings.Repeat(" 1", 10), cpu/tick, strings.Repeat(" 1", 6), started/tick)
	if err := os.WriteFile(filepath.Join(l.dir(pid, tid), "stat"), []byte(line), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *looks) end(pid, tid int) {
	l.t.Helper()
	if err := os.RemoveAll(l.dir(pid, tid)); err != nil {
		l.t.Fatal(err)
	}
}

// look takes a look after the workload has used this much CPU time.
func (l *looks) look(after time.Duration, used time.Duration, pids ...int) {
	l.now += after
	l.b.window, l.b.looked = after, l.now
	l.b.look([]*busy{{of: l.of, cpus: float64(used) / float64(after), pids: pids}})
}

// want compares the ratio. A negative value means that there is no ratio.
func (l *looks) want(ratio float64) {
	l.t.Helper()
	got, ok := l.b.ratios[l.of]
	if ok != (ratio >= 0) || ok && math.Abs(got-ratio) > 1e-9 {
		l.t.Errorf("the ratio is %v, %v, want %v", got, ok, ratio)
	}
}

const second = time.Second

func TestTheBusiestOfFiveThreads(t *testing.T) {
	l := newLooks(t)
	for tid := 7; tid < 12; tid++ {
		l.write(7, tid, 10*second, second)
	}
	l.look(5*second, 4800*time.Millisecond, 7)
	l.want(-1) // which thread used it is not known
	l.write(7, 9, 10*second, second+4800*time.Millisecond)
	l.look(5*second, 4800*time.Millisecond, 7)
	l.want(0.96)
}

func TestFourThreadsOfAQuarter(t *testing.T) {
	l := newLooks(t)
	for look := range 3 {
		for pid := 7; pid < 9; pid++ { // in two processes
			for tid := pid * 10; tid < pid*10+2; tid++ {
				l.write(pid, tid, 10*second, time.Duration(look)*1250*time.Millisecond)
			}
		}
		l.look(5*second, 5*second, 7, 8)
	}
	l.want(0.25)
}

func TestAThreadCountsFromItsStart(t *testing.T) {
	l := newLooks(t)
	l.write(7, 7, 1001*second, 3*second) // after the first look
	l.look(4*second, 3*second, 7)
	l.want(0.75)
	l.write(7, 7, 1001*second, 3*second+time.Second)
	l.write(7, 8, 999*second, 9*second) // it was not seen by the first look
	l.look(4*second, 4*second, 7)
	l.want(-1)
	l.write(7, 8, 999*second, 12*second)
	l.look(4*second, 3*second, 7)
	l.want(0.75)
}

func TestAnotherThreadOfTheSameID(t *testing.T) {
	l := newLooks(t)
	l.write(7, 7, 10*second, 2*second)
	l.look(5*second, 5*second, 7)
	l.write(7, 7, 1006*second, 4*second) // starts a second after the last look
	l.look(5*second, 4*second, 7)
	l.want(0.8) // and not 2/5
}

// CPU time of the workload beyond that of the threads that were read belongs to threads that ended or were not read. One of these
// may have been the busiest thread.
func TestWithoutCertaintyThereIsNoRatio(t *testing.T) {
	l := newLooks(t)
	l.write(7, 7, 10*second, 0)
	l.write(7, 8, 10*second, 0)
	l.look(5*second, 5*second, 7)
	l.write(7, 7, 10*second, 2*second)
	l.end(7, 8)
	l.look(5*second, 4100*time.Millisecond, 7)
	l.want(-1)
	l.write(7, 7, 10*second, 4*second)
	l.look(5*second, 4*second, 7) // the rest is no more than that of the first thread
	l.want(0.4)
	l.end(7, 7)
	l.look(5*second, 4*second, 7)
	l.want(-1)
	l.look(5*second, 4*second)
	l.want(-1)
}

func TestNoRatioIsAboveOne(t *testing.T) {
	l := newLooks(t)
	l.write(7, 7, 10*second, 0)
	l.look(second, second, 7)
	l.write(7, 7, 10*second, 1020*time.Millisecond) // ticks
	l.look(second, second, 7)
	l.want(1)
}

// Of 10,000 threads, the last one is busy. It is found in several looks, each of which reads no more than its share.
func TestTheBusiestOfTenThousandThreadsIsFound(t *testing.T) {
	const threads = 10_000
	l := newLooks(t)
	l.write(7, 1, 10*second, 0)
	for tid := 2; tid < threads; tid++ {
		if err := os.Symlink("1", l.dir(7, tid)); err != nil {
			t.Fatal(err)
		}
	}
	for look := range time.Duration(2 * threads / (maxFollowed / 4)) {
		l.write(7, threads, 10*second, look*5*second)
		l.look(5*second, 5*second, 7)
		if n := len(l.b.lists[l.of].followed); n > maxFollowed {
			t.Fatalf("%d threads are followed", n)
		}
		if _, found := l.b.ratios[l.of]; found {
			l.want(1)
			return
		}
	}
	t.Error("the busiest thread is not found")
}

// Two workloads share the threads that are followed. One workload leaves the places that it does not need.
func TestWorkloadsShareTheFollowedThreads(t *testing.T) {
	l := newLooks(t)
	for _, pid := range []int{7, 8} {
		l.write(pid, pid*10_000, 10*second, 0)
		for n := range 2 * maxFollowed {
			if err := os.Symlink(fmt.Sprint(pid*10_000), l.dir(pid, pid*10_000+1+n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.write(9, 9, 10*second, 0)
	var all []*busy
	for _, pid := range []int{8, 9, 7} {
		w := &busy{of: &workload.Workload[counts]{}, cpus: 1, threads: 2*maxFollowed + 1, pids: []int{pid}}
		if pid == 9 {
			w.threads = 1
		}
		all = append(all, w)
	}
	l.b.look(all)
	followed := map[int]int{}
	for _, w := range all {
		followed[w.pids[0]] = len(l.b.lists[w.of].followed)
	}
	if followed[9] != 1 || followed[7]+followed[8] != maxFollowed-1 || followed[7] < maxFollowed/2-1 || followed[8] < maxFollowed/2-1 {
		t.Errorf("%v threads are followed", followed)
	}
}

func TestALookEnds(t *testing.T) {
	l := newLooks(t)
	for tid := 7; tid < 27; tid++ {
		l.write(7, tid, 10*second, 0)
	}
	l.b.clock = func() time.Duration { l.now += maxLook / 10; return l.now }
	l.look(5*second, second, 7)
	if n := len(l.b.lists[l.of].followed); n == 0 || n > 10 {
		t.Errorf("%d threads are read", n)
	}
	l.want(-1)
}

// Only workloads that used half a CPU are inspected, at most once a second.
func TestOnlyBusyWorkloadsAreLookedAt(t *testing.T) {
	k := made(t)
	k.group(slotFirst, 77, "busy")
	k.group(slotFirst+1, 78, "idle")
	k.pids[0].Slot[80] = slotFirst // another process of the first
	s := newSlots(k, 4, nil)
	s.Adopt(time.Now())
	k.gauges[slotFirst] = gauge{Processes: 2, Threads: 9}
	proc := hostfs.At(t.TempDir())
	for _, pid := range []string{"77", "78", "80", "81"} {
		if err := os.MkdirAll(proc.Path(pid), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	now := 1000 * second
	b := busiest{clock: func() time.Duration { return now }}
	plan := func(ran ...uint64) ([]*busy, bool) {
		for i, ns := range ran {
			k.count(0, slotFirst+i).RunNS += ns
		}
		k.count(0, slotKernel).RunNS += 9e9
		k.count(0, slotOther).RunNS += 9e9
		s.read()
		return b.plan(k, s, &members{proc: proc})
	}
	if all, due := plan(9e9, 9e9); len(all) != 0 || !due {
		t.Errorf("the first time %d workloads are inspected, %v", len(all), due)
	}
	now += 999 * time.Millisecond
	if _, due := plan(0, 0); due {
		t.Error("a look follows within a second")
	}
	now += 4001 * time.Millisecond
	all, due := plan(2500e6, 2499e6)
	if len(all) != 1 || !due {
		t.Fatalf("%d workloads are inspected, %v", len(all), due)
	}
	w := all[0]
	if w.of.Name != "busy" || w.cpus != 0.5 || w.threads != 9 || fmt.Sprint(w.pids) != "[77 77 80]" {
		t.Errorf("%s is inspected: %+v", w.of.Name, w)
	}
	now += 5 * second
	if all, _ := plan(0, 0); len(all) != 0 {
		t.Errorf("%d idle workloads are inspected", len(all))
	}
}
