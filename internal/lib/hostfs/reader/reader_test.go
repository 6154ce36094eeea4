// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
)

// machine is a /proc with processes of one user each.
func machine(t *testing.T, users map[int]int) Options {
	t.Helper()
	root := t.TempDir()
	for pid, user := range users {
		dir := filepath.Join(root, fmt.Sprint(pid))
		hostfstest.Write(t, dir, "status", fmt.Sprintf("Name:\tp\nUid:\t%d\t0\t0\t0\n", user))
		hostfstest.Write(t, dir, "comm", "p\n")
		started(t, root, pid, 100)
	}
	return Options{Proc: hostfs.At(root), Cgroup: root, Log: slog.New(slog.DiscardHandler)}
}

func started(t *testing.T, root string, pid, ticks int) {
	t.Helper()
	stat := fmt.Sprintf("%d (p) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 %d 0 0\n", pid, ticks)
	hostfstest.Write(t, root, filepath.Join(fmt.Sprint(pid), "task", fmt.Sprint(pid), "stat"), stat)
}

// hang begins a read that ends when the channel is closed, and returns why the caller stopped waiting.
func hang(p *Pool, pid int, until <-chan struct{}) error {
	_, err := Of(p, pid, func() (int, error) { <-until; return 1, nil })
	return err
}

func works(p *Pool, pid int) error {
	_, err := Of(p, pid, func() (int, error) { return 1, nil })
	return err
}

// A caller that got no processor finds the outcome and the timer at once.
func TestAnOutcomeCountsAfterTheDeadline(t *testing.T) {
	timer := make(chan time.Time)
	close(timer)
	for range 100 {
		done := make(chan outcome[int], 1)
		done <- outcome[int]{value: 1}
		if o, ok := await(done, timer); !ok || o.value != 1 {
			t.Fatalf("%v, %v", o, ok)
		}
	}
	if _, ok := await(make(chan outcome[int]), timer); ok {
		t.Error("an outcome without a read")
	}
}

// A thread that waits for a processor is not one that hangs. On an overloaded machine its read takes some deadlines.
func TestAReadThatNeedsAProcessorHasMoreTime(t *testing.T) {
	o := machine(t, map[int]int{7: 0})
	read := func(p *Pool, state string, takes time.Duration) error {
		_, err := Of(p, 7, func() (int, error) {
			thread := unix.Gettid()
			stat := fmt.Sprintf("%d (teescope) %s 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 50 0 0\n", thread, state)
			hostfstest.Write(t, o.Proc.Path(), filepath.Join("self", "task", fmt.Sprint(thread), "stat"), stat)
			time.Sleep(takes)
			return 1, nil
		})
		return err
	}
	for _, tt := range []struct {
		state string
		takes time.Duration
		want  error
		after time.Duration
	}{
		{"R", 5 * deadline / 2, nil, 5 * deadline / 2},
		{"R", time.Hour, ErrStuck, starvedDeadlines * deadline},
		{"D", 5 * deadline / 2, ErrStuck, deadline},
		{"S", 5 * deadline / 2, ErrStuck, deadline},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			if err := read(New(o), tt.state, tt.takes); !errors.Is(err, tt.want) || time.Since(began) != tt.after {
				t.Errorf("state %s for %v: %v after %v, want %v after %v", tt.state, tt.takes, err, time.Since(began), tt.want, tt.after)
			}
			time.Sleep(tt.takes)
		})
	}
}

func TestAStuckProcessIsQuarantinedAndTheOthersAreRead(t *testing.T) {
	o := machine(t, map[int]int{7: 0, 8: 0})
	synctest.Test(t, func(t *testing.T) {
		p, release := New(o), make(chan struct{})
		began := time.Now()
		if err := hang(p, 7, release); !errors.Is(err, ErrStuck) || time.Since(began) != deadline {
			t.Errorf("the first read ended after %v: %v", time.Since(began), err)
		}
		if err := works(p, 7); !errors.Is(err, errQuarantined) {
			t.Errorf("the next read of the same process: %v", err)
		}
		if err := works(p, 8); err != nil {
			t.Errorf("a read of another process: %v", err)
		}
		if f := p.Figures(); f.Stuck != 1 || f.Quarantined != 1 || f.RefusedQuarantined != 1 {
			t.Errorf("the figures are %+v", f)
		}
		started(t, o.Proc.Path(), 7, 200) // another process with the same ID
		if err := works(p, 7); err != nil {
			t.Errorf("a read of a later process with the same ID: %v", err)
		}
		started(t, o.Proc.Path(), 7, 100)
		close(release)
		synctest.Wait()
		if err := works(p, 7); !errors.Is(err, errQuarantined) {
			t.Errorf("a read shortly after the late one returned: %v", err)
		}
		time.Sleep(quarantineTime)
		if err := works(p, 7); err != nil {
			t.Errorf("a read after the quarantine: %v", err)
		}
		if f := p.Figures(); f.Stuck != 0 || f.Quarantined != 0 {
			t.Errorf("at the end the figures are %+v", f)
		}
	})
}

// Several parts of the agent read at the same time. A process that hangs keeps one worker, and the limit holds.
func TestReadsAtTheSameTime(t *testing.T) {
	users := map[int]int{}
	for pid := range maxStuck + 4 {
		users[pid+1] = 0
	}
	o := machine(t, users)
	synctest.Test(t, func(t *testing.T) {
		p, release := New(o), make(chan struct{})
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- hang(p, 1, release) }()
		synctest.Wait()
		go func() { second <- works(p, 1) }()
		if err := <-first; !errors.Is(err, ErrStuck) {
			t.Errorf("the first read: %v", err)
		}
		if err := <-second; !errors.Is(err, errQuarantined) {
			t.Errorf("the second read of the same process: %v", err)
		}
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				for pid := range users {
					_ = hang(p, pid, release)
				}
			})
		}
		readers.Wait()
		if f := p.Figures(); f.Stuck > maxStuck || f.Stuck != f.Quarantined {
			t.Errorf("at the same time: %+v", f)
		}
		for pid := range users { // reads that ran counted as if they hung, so a place may be left
			_ = hang(p, pid, release)
		}
		if f := p.Figures(); f.Stuck != maxStuck || f.Quarantined != maxStuck || f.RefusedExhausted == 0 {
			t.Errorf("the figures are %+v", f)
		}
		close(release)
		synctest.Wait()
		if len(p.reading) != 0 {
			t.Errorf("%d reads have not ended", len(p.reading))
		}
	})
}

// A process that answers is read by all, one after the other.
func TestReadsFollowEachOther(t *testing.T) {
	o := machine(t, map[int]int{7: 0})
	synctest.Test(t, func(t *testing.T) {
		p, began := New(o), time.Now()
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				if n, err := Of(p, 7, func() (int, error) { time.Sleep(deadline / 2); return 1, nil }); n != 1 || err != nil {
					t.Errorf("%d, %v", n, err)
				}
			})
		}
		readers.Wait()
		if took := time.Since(began); took != 3*deadline/2 {
			t.Errorf("three reads took %v", took)
		}
	})
}

func TestOneUserCannotTakeAllWorkers(t *testing.T) {
	users := map[int]int{99: 5, 100: 0}
	for pid := 1; pid <= 20; pid++ {
		users[pid] = 1000
	}
	o := machine(t, users)
	synctest.Test(t, func(t *testing.T) {
		p, release := New(o), make(chan struct{})
		for pid := 1; pid <= 20; pid++ {
			want := ErrStuck
			if pid > maxOfTenant {
				want = errTenant
			}
			if err := hang(p, pid, release); !errors.Is(err, want) {
				t.Errorf("process %d of one user: %v, want %v", pid, err, want)
			}
		}
		for _, other := range []int{99, 100} {
			if err := works(p, other); err != nil {
				t.Errorf("a process of another user: %v", err)
			}
		}
		close(release)
		synctest.Wait()
	})
}

func TestWorkersAreBounded(t *testing.T) {
	users := map[int]int{}
	for pid := 1; pid <= 2*maxStuck; pid++ {
		users[pid] = 0 // root is not limited as a user
	}
	o := machine(t, users)
	synctest.Test(t, func(t *testing.T) {
		p, release := New(o), make(chan struct{})
		for pid := 1; pid <= 2*maxStuck; pid++ {
			want := ErrStuck
			if pid > maxStuck {
				want = ErrExhausted
			}
			if err := hang(p, pid, release); !errors.Is(err, want) {
				t.Errorf("process %d: %v, want %v", pid, err, want)
			}
		}
		if f := p.Figures(); f.Stuck != maxStuck || f.RefusedExhausted != maxStuck {
			t.Errorf("the figures are %+v", f)
		}
		close(release)
		synctest.Wait()
	})
}

func TestNothingIsReadBeforeThePrivilegesAreDropped(t *testing.T) {
	o, ready := machine(t, map[int]int{7: 0}), make(chan struct{})
	o.Ready = ready
	p := New(o)
	if err := works(p, 7); !errors.Is(err, ErrNotReady) {
		t.Errorf("before: %v", err)
	}
	close(ready)
	if err := works(p, 7); err != nil {
		t.Errorf("after: %v", err)
	}
}

func TestAPanicIsAnError(t *testing.T) {
	p := New(machine(t, nil))
	if _, err := Of(p, 7, func() (int, error) { panic("no") }); err == nil {
		t.Error("a panic of a read is not an error")
	}
}

// Each process of a tenant answers just before its deadline, or sooner, and processes are read one after the other. The others are
// delayed by slowTime at first, and by slowShare of the time after that.
func TestSlowProcessesOfATenantDelayOthersForALimitedTime(t *testing.T) {
	const hostile = 500
	users := map[int]int{9000: 1001, 9001: 0}
	for pid := range hostile {
		users[pid+1] = 1000
	}
	o := machine(t, users)
	pass := func(t *testing.T, p *Pool, takes time.Duration) (answered int, took time.Duration) {
		t.Helper()
		began := time.Now()
		for pid := range hostile {
			_, err := Of(p, pid+1, func() (int, error) { time.Sleep(takes); return 1, nil })
			if err == nil {
				answered++
			} else if !Unanswered(err) {
				t.Errorf("process %d: %v", pid+1, err)
			}
		}
		took = time.Since(began)
		for _, other := range []int{9000, 9001} {
			if err := works(p, other); err != nil {
				t.Errorf("a process of another user: %v", err)
			}
		}
		return answered, took
	}
	for _, takes := range []time.Duration{deadline - time.Millisecond, slice - time.Millisecond, 2 * firstLook} {
		synctest.Test(t, func(t *testing.T) {
			p := New(o)
			if answered, took := pass(t, p, takes); answered == 0 || took > slowTime+deadline {
				t.Errorf("%d processes were read in %v", answered, took)
			}
			if f := p.Figures(); f.RefusedSlow == 0 || f.Quarantined != 0 {
				t.Errorf("the figures are %+v", f)
			}
			total := time.Duration(0)
			const minutes, every = 3, 2 * time.Second
			for range minutes * int(time.Minute/every) {
				_, took := pass(t, p, takes)
				total += took
				time.Sleep(every)
			}
			if limit := time.Duration(2 * slowShare * float64(minutes*time.Minute)); total > limit {
				t.Errorf("in three minutes the others waited for %v, want at most %v", total, limit)
			}
			time.Sleep(2 * time.Duration(float64(slowTime)/slowShare))
			if err := works(p, 1); err != nil || !p.slow.none() {
				t.Errorf("later a process of this user is not read: %v", err)
			}
		})
	}
}

// A read of a process returns when the process ends. Its tenant has made it sleep nevertheless.
func TestAProcessThatEndsWasSlow(t *testing.T) {
	o := machine(t, map[int]int{7: 1000})
	synctest.Test(t, func(t *testing.T) {
		p := New(o)
		_, err := Of(p, 7, func() (int, error) {
			time.Sleep(deadline - time.Millisecond)
			return 1, os.RemoveAll(filepath.Join(o.Proc.Path(), "7"))
		})
		if err != nil || p.slow.users[1000] == nil {
			t.Errorf("%v, %+v", err, p.slow)
		}
	})
}

// A process that ends while its read is found to be late counts as one of its tenant. Otherwise a tenant could have all places.
func TestAProcessThatEndsWasLate(t *testing.T) {
	o := machine(t, map[int]int{7: 1000})
	synctest.Test(t, func(t *testing.T) {
		p, release := New(o), make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			time.Sleep(deadline - time.Millisecond)
			ended <- os.RemoveAll(filepath.Join(o.Proc.Path(), "7"))
		}()
		if err := hang(p, 7, release); !errors.Is(err, ErrStuck) {
			t.Error(err)
		}
		if s := p.known[7]; s == nil || s.tenant.User != 1000 {
			t.Errorf("%+v", s)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		close(release)
		synctest.Wait()
	})
}

// A read whose thread waits for a processor is not slow because of its process.
func TestAStarvedReadIsNotSlow(t *testing.T) {
	o := machine(t, map[int]int{7: 1000})
	synctest.Test(t, func(t *testing.T) {
		p := New(o)
		_, err := Of(p, 7, func() (int, error) {
			thread := unix.Gettid()
			hostfstest.Write(t, o.Proc.Path(), filepath.Join("self", "task", fmt.Sprint(thread), "stat"),
				fmt.Sprintf("%d (teescope) R 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 50 0 0\n", thread))
			time.Sleep(5 * deadline)
			return 1, nil
		})
		if err != nil || !p.slow.none() {
			t.Errorf("%v, %+v", err, p.slow)
		}
	})
}
