// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// Limits of the reads that run ahead.
const (
	maxWorkers = 8
	maxTenant  = maxWorkers / 2   // workers that read processes of one user or control group
	maxReads   = 8192             // requested, running, or with a result that was not taken; shared by tenants
	forgetting = 30 * time.Second // until a result that is not taken is dropped
)

// ErrLater means that a read was requested and its result is not available yet.
var ErrLater = fmt.Errorf("its result is not there yet: %w", reader.ErrStuck)

// errChanged means that the process has run another program since the read was asked for.
var errChanged = fmt.Errorf("the process has run another program meanwhile: %w", reader.ErrStuck)

// Key identifies a read.
type Key struct {
	TGID uint32
	// Program is the program of the process. If the process runs another program after the read, the result is dropped. With the
	// zero value, the read itself must check this.
	Program Program
	What    any // comparable
}

// Ahead runs reads of processes while the caller holds no lock, and keeps their results until the caller asks again. A
// process that is slow to read delays its own results and no others. Reads of one process follow each other.
type Ahead struct {
	program func(tgid uint32) (Program, error)
	tenant  func(pid int) tenant.Tenant
	// Arrived receives a value when results are there that no Run has waited for.
	Arrived chan struct{}

	mu      sync.Mutex // protects the fields below. Nothing that a process can delay is read while it is held.
	reads   map[Key]*read
	places  *tenant.Quota // of reads
	queue   []Key
	busy    map[uint32]tenant.Tenant // processes that are read now
	workers int
	pending int           // reads that are queued or running
	idle    chan struct{} // closed when nothing is pending
	arrived map[uint32]bool
}

// read is a read and its result.
type read struct {
	do      func() (any, error)
	of      tenant.Tenant // of the process when the read was asked for
	running bool
	done    bool
	again   bool // it was asked for again while it ran
	value   any
	err     error
	asked   time.Time
}

// NewAhead returns an Ahead for the processes that h reads.
func NewAhead(h Processes) *Ahead {
	idle := make(chan struct{})
	close(idle)
	return &Ahead{
		program: h.Program, tenant: h.Reads.Tenant, Arrived: make(chan struct{}, 1), reads: map[Key]*read{}, places: tenant.NewQuota(maxReads), busy: map[uint32]tenant.Tenant{},
		idle: idle, arrived: map[uint32]bool{},
	}
}

// Later returns the result of a read that runs ahead. The first call asks for it and returns ErrLater. The read must share
// nothing with its caller. Without Ahead it runs at once.
func Later[T any](h Processes, key Key, do func() (T, error)) (T, error) {
	value, err := h.later(key, func() (any, error) { return do() })
	of, _ := value.(T) // nil with an error
	return of, err
}

func (h Processes) later(key Key, do func() (any, error)) (any, error) {
	a := h.Ahead
	if a == nil {
		return do()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.reads[key]
	switch {
	case r == nil:
		return nil, a.add(key, do)
	case !r.done:
		r.asked = time.Now()
		return nil, ErrLater
	}
	a.remove(key, r)
	return r.value, r.err
}

// Ready reports whether the result of a read is available. It requests the read if it was not requested.
func Ready[T any](h Processes, key Key, do func() (T, error)) bool {
	a := h.Ahead
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.reads[key]
	if r == nil {
		_ = a.add(key, func() (any, error) { return do() }) // without a place the next call tries again
		return false
	}
	return r.done
}

// Ask requests a read that begins after this call. An earlier result is dropped.
func (a *Ahead) Ask(key Key, do func() (any, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.reads[key]
	switch {
	case r == nil:
		_ = a.add(key, do) // without a place there is no result
	case r.done:
		r.drop()
		a.remove(key, r)
		_ = a.add(key, do)
	case r.running:
		r.again = true
	}
}

// Take returns the result of a read that was asked for, if it is there.
func (a *Ahead) Take(key Key) (value any, err error, ok bool) { //nolint:revive // ok is about the error too
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.reads[key]
	if r == nil || !r.done {
		return nil, nil, false
	}
	a.remove(key, r)
	return r.value, r.err, true
}

// add requests a read, and returns ErrLater.
func (a *Ahead) add(key Key, do func() (any, error)) error {
	of := a.tenant(int(key.TGID))
	if a.places.Take(of) != nil {
		return reader.ErrExhausted
	}
	a.reads[key] = &read{do: do, of: of, asked: time.Now()}
	a.push(key)
	return ErrLater
}

func (a *Ahead) remove(key Key, r *read) {
	delete(a.reads, key)
	a.places.Give(r.of)
}

func (a *Ahead) push(key Key) {
	if a.pending == 0 {
		a.idle = make(chan struct{})
	}
	a.pending++
	a.queue = append(a.queue, key)
}

// Run begins the reads that were asked for, and waits until none is pending, but not longer than the patience. It returns the
// processes whose results have arrived since the previous call.
func (a *Ahead) Run(patience time.Duration) map[uint32]bool {
	a.mu.Lock()
	a.forget()
	for range min(len(a.queue), maxWorkers-a.workers) {
		a.workers++
		go a.work()
	}
	idle := a.idle
	a.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	arrived := a.arrived
	a.arrived = map[uint32]bool{}
	select {
	case <-a.Arrived: // these are returned
	default:
	}
	return arrived
}

// Arrive makes the next Run return a process again.
func (a *Ahead) Arrive(tgid uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.arrived[tgid] = true
	a.signal()
}

func (a *Ahead) signal() {
	select {
	case a.Arrived <- struct{}{}:
	default: // one is enough
	}
}

// forget drops results that were not taken in time.
func (a *Ahead) forget() {
	for key, r := range a.reads {
		if r.done && time.Since(r.asked) > forgetting {
			r.drop()
			a.remove(key, r)
		}
	}
}

func (r *read) drop() {
	if c, ok := r.value.(io.Closer); ok {
		_ = c.Close() // nothing was written
	}
	r.value = nil
}

// work runs reads until none is left that may begin.
func (a *Ahead) work() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, ok := a.next(); ok; key, ok = a.next() {
		r := a.reads[key]
		r.running, a.busy[key.TGID] = true, r.of
		do := r.do
		a.mu.Unlock()
		value, err := reader.Contained(do)
		if err != nil {
			value = nil // a nil pointer in an interface is not nil
		}
		if key.Program != (Program{}) {
			if now, failed := a.program(key.TGID); failed == nil && now != key.Program {
				(&read{value: value}).drop()
				value, err = nil, errChanged
			}
		}
		a.mu.Lock()
		a.finish(key, r, value, err)
	}
	a.workers--
}

// next returns the first read of a process that is not read now and whose tenant leaves workers for others.
func (a *Ahead) next() (Key, bool) {
	for i, key := range a.queue {
		if _, busy := a.busy[key.TGID]; !busy && (len(a.busy) < maxTenant || a.leaves(a.reads[key].of)) {
			a.queue = append(a.queue[:i], a.queue[i+1:]...)
			return key, true
		}
	}
	return Key{}, false
}

// leaves reports whether one more read of a tenant leaves workers for others. All its processes may be slow to read.
func (a *Ahead) leaves(t tenant.Tenant) bool {
	user, group := 0, 0
	for _, other := range a.busy {
		if t.User != 0 && other.User == t.User {
			user++
		}
		if t.Group != "" && other.Group == t.Group {
			group++
		}
	}
	return max(user, group) < maxTenant
}

func (a *Ahead) finish(key Key, r *read, value any, err error) {
	r.value, r.err, r.running = value, err, false
	delete(a.busy, key.TGID)
	if r.again {
		r.again = false
		r.drop()
		a.queue = append(a.queue, key)
		return
	}
	a.pending--
	r.done, a.arrived[key.TGID] = true, true
	if a.pending == 0 {
		close(a.idle)
	}
	a.signal()
}

// IsLater reports whether an error is ErrLater.
func IsLater(err error) bool { return errors.Is(err, ErrLater) }
