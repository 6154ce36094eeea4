// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// ahead returns processes that all run one program, and where to change it.
func ahead() (Processes, *atomic.Uint64) {
	stack := &atomic.Uint64{}
	stack.Store(1)
	a := NewAhead(Processes{})
	a.program = func(uint32) (Program, error) { return Program{Stack: stack.Load()}, nil }
	return Processes{Ahead: a}, stack
}

func key(tgid uint32) Key { return Key{TGID: tgid, Program: Program{Stack: 1}, What: "x"} }

func value(n int) func() (int, error) { return func() (int, error) { return n, nil } }

func TestAResultIsThereLaterAndOnce(t *testing.T) {
	h, _ := ahead()
	if _, err := Later(h, key(7), value(3)); !IsLater(err) {
		t.Fatalf("at first: %v", err)
	}
	if arrived := h.Ahead.Run(time.Minute); len(arrived) != 1 || !arrived[7] {
		t.Errorf("%v have arrived", arrived)
	}
	if n, err := Later(h, key(7), value(4)); n != 3 || err != nil {
		t.Errorf("then %d, %v", n, err)
	}
	if _, err := Later(h, key(7), value(4)); !IsLater(err) {
		t.Errorf("at last: %v", err)
	}
}

// A result of a process that has run another program meanwhile is dropped.
func TestAResultOfAnotherProgramIsDropped(t *testing.T) {
	h, stack := ahead()
	closed := &closes{}
	read := func() (*closes, error) { stack.Store(2); return closed, nil }
	_, _ = Later(h, key(7), read)
	h.Ahead.Run(time.Minute)
	if got, err := Later(h, key(7), read); got != nil || !errors.Is(err, errChanged) || !closed.done {
		t.Errorf("%v, %v, closed %v", got, err, closed.done)
	}
}

// A read that panics, as a reader of a file could, has an error and ends nothing else.
func TestAReadThatPanicsHasAnError(t *testing.T) {
	h, _ := ahead()
	read := func() (int, error) { panic("damaged") }
	_, _ = Later(h, key(7), read)
	h.Ahead.Run(time.Minute)
	if _, err := Later(h, key(7), read); err == nil || !strings.Contains(err.Error(), "panic: damaged") {
		t.Error(err)
	}
}

// A read that fails returns a nil pointer. Nothing of it is closed when the result is dropped.
func TestAResultOfAFailedReadIsNotClosed(t *testing.T) {
	h, stack := ahead()
	read := func() (*closes, error) { stack.Store(2); return nil, errors.New("gone") }
	_, _ = Later(h, key(7), read) // its process runs another program when it ends
	k := Key{TGID: 8, What: "x"}
	_, _ = Later(h, k, read)
	h.Ahead.Run(time.Minute)
	h.Ahead.Ask(k, func() (any, error) { return nil, nil }) // drops the result
	if _, err := Later(h, key(7), read); err == nil {
		t.Error("the failed read has no error")
	}
}

type closes struct{ done bool }

func (c *closes) Close() error { c.done = true; return nil }

// A read that does not end delays no other process. Later reads of the same process wait for it.
func TestASlowReadDelaysNoOther(t *testing.T) {
	h, _ := ahead()
	release, began := make(chan struct{}), make(chan struct{})
	slow := func() (int, error) { close(began); <-release; return 1, nil }
	second := Key{TGID: 7, Program: Program{Stack: 1}, What: "y"}
	_, _ = Later(h, key(7), slow)
	_, _ = Later(h, second, value(2))
	h.Ahead.Run(0)
	<-began
	for tgid := range uint32(5) {
		_, _ = Later(h, key(100+tgid), value(3))
	}
	for got := map[uint32]bool{}; len(got) < 5; {
		for tgid := range h.Ahead.Run(time.Millisecond) {
			got[tgid] = true
		}
		if got[7] {
			t.Fatal("the slow process has arrived")
		}
	}
	close(release)
	for n := 0; n < 2; {
		if h.Ahead.Run(time.Minute)[7] {
			n = 2
		}
	}
	if n, err := Later(h, second, value(0)); n != 2 || err != nil {
		t.Errorf("its second read: %d, %v", n, err)
	}
}

// A tenant with many processes that are slow to read leaves workers for others.
func TestSlowReadsOfATenantLeaveWorkers(t *testing.T) {
	h, _ := ahead()
	h.Ahead.tenant = func(pid int) tenant.Tenant { return tenant.Tenant{User: uint32(pid / 100)} }
	release := make(chan struct{})
	var reading atomic.Int64
	for tgid := range uint32(2 * maxWorkers) {
		_, _ = Later(h, key(100+tgid), func() (int, error) { reading.Add(1); <-release; return 1, nil })
	}
	h.Ahead.Run(0)
	_, _ = Later(h, key(200), value(3))
	for !h.Ahead.Run(time.Millisecond)[200] {
		if n := reading.Load(); n > maxTenant {
			t.Fatalf("%d processes of one tenant are read at once", n)
		}
	}
	close(release)
	for got := 0; got < 2*maxWorkers; {
		got += len(h.Ahead.Run(time.Minute))
	}
}

// If a read is requested again while it runs, it is repeated, since its result may be outdated.
func TestAReadThatIsAskedForAgainBeginsAfterThat(t *testing.T) {
	h, _ := ahead()
	var now atomic.Int64
	began, release := make(chan struct{}, 8), make(chan struct{}, 8)
	read := func() (any, error) { n := now.Load(); began <- struct{}{}; <-release; return n, nil }
	h.Ahead.Ask(key(7), read)
	h.Ahead.Run(0)
	<-began
	now.Store(5)
	h.Ahead.Ask(key(7), read)
	release <- struct{}{}
	release <- struct{}{}
	h.Ahead.Run(time.Minute)
	if v, err, ok := h.Ahead.Take(key(7)); v != int64(5) || err != nil || !ok {
		t.Errorf("%v, %v, %v", v, err, ok)
	}
	now.Store(6)
	release <- struct{}{}
	h.Ahead.Ask(key(7), read)
	h.Ahead.Run(time.Minute)
	release <- struct{}{}
	h.Ahead.Ask(key(7), read) // the other result was not taken
	h.Ahead.Run(time.Minute)
	if v, _, ok := h.Ahead.Take(key(7)); v != int64(6) || !ok {
		t.Errorf("%v, %v", v, ok)
	}
}

// A tenant whose reads fill its places leaves places for other tenants. Each read of the tenant is requested once, however long
// it waits.
func TestReadsOfATenantLeavePlaces(t *testing.T) {
	h, _ := ahead()
	var asked atomic.Int64
	h.Ahead.tenant = func(pid int) tenant.Tenant { asked.Add(1); return tenant.Tenant{User: uint32(1 + pid/(2*maxReads))} }
	release := make(chan struct{})
	slow := func() (int, error) { <-release; return 1, nil }
	for tgid := range uint32(2*maxReads - 1) {
		_, _ = Later(h, key(tgid), slow)
	}
	h.Ahead.Run(0)
	if n := len(h.Ahead.reads); n != maxReads/2 {
		t.Errorf("one tenant has %d reads", n)
	}
	other := key(2 * maxReads)
	if _, err := Later(h, other, value(3)); !IsLater(err) {
		t.Fatalf("another tenant: %v", err)
	}
	for !h.Ahead.Run(time.Millisecond)[other.TGID] {
	}
	if n, err := Later(h, other, value(0)); n != 3 || err != nil {
		t.Errorf("another tenant: %d, %v", n, err)
	}
	before := asked.Load()
	close(release)
	for got := 0; got < maxReads/2; {
		got += len(h.Ahead.Run(time.Minute))
	}
	if n := asked.Load() - before; n != 0 {
		t.Errorf("the tenants of waiting reads were asked for %d times", n)
	}
	for tgid := range uint32(maxReads / 2) {
		if _, err := Later(h, key(tgid), slow); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(h.Ahead.reads); n != 0 {
		t.Errorf("%d reads are left", n)
	}
	if err := h.Ahead.places.Take(tenant.Tenant{User: 1}); err != nil {
		t.Errorf("its places are not free again: %v", err)
	}
}
