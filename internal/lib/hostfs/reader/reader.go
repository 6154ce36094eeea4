// SPDX-License-Identifier: Apache-2.0

// Package reader reads from processes that may never answer. A process can make some reads sleep for ever. Reads of its
// memory, its command line and, before Linux 6.17, its mappings wait for a lock. The process can hold this lock while a file
// system of its own does not answer. Reads of its files can wait too. Nothing wakes such a reader except the end of the
// process.
//
// So each read has a worker of its own and a deadline. A worker that passes it is counted and left behind. Its process
// is not read again until the worker returns. The number of such workers is limited, and also for each user and control
// group. docs/dev/processes.md lists which reads sleep.
package reader

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
	"github.com/teescope/teescope/internal/lib/text"
)

// Limits.
const (
	// deadline is the time that a read may take. A usual one takes 50 us. A scrape may wait this long for each process
	// that begins to hang, of which there are at most maxStuck.
	deadline = 200 * time.Millisecond
	// starvedDeadlines is the maximum number of deadlines for a read whose thread waits for a processor or runs. Such a
	// read does not hang: the machine is overloaded.
	starvedDeadlines = 10
	// maxStuck is the maximum number of workers that have passed their deadline, and of quarantined processes. Each
	// worker is a thread.
	maxStuck = 16
	// maxOfTenant is the maximum number of these for one user or control group. At this number, processes of the tenant
	// are not read until one of these ends.
	maxOfTenant = 4
	// quarantineTime is how long a process is quarantined after its late read has returned. Without it, processes that answer
	// just too late would delay every scrape.
	quarantineTime = time.Minute
	// firstLook is when it is examined whether a read sleeps. The time until the next look doubles up to slice. A process that answers
	// before the first look delays the reads of others least.
	firstLook = slice / 8
	slice     = deadline / 10
	// quiet is the minimum time between two messages in the log.
	quiet = time.Minute
)

// The reasons why a process is not read.
var (
	ErrStuck       = errors.New("the process did not answer in time")
	errQuarantined = errors.New("the process did not answer an earlier read")
	errTenant      = errors.New("too many processes of the same user or control group do not answer")
	errSlow        = errors.New("processes of the same user or control group answer slowly")
	ErrExhausted   = errors.New("too many processes do not answer")
	ErrNotReady    = errors.New("processes are read only after the agent has dropped its privileges")
)

// Unanswered reports whether an error is one of the above. It does not concern the content, and a later read may
// succeed.
func Unanswered(err error) bool {
	return slices.ContainsFunc([]error{ErrStuck, errQuarantined, errTenant, errSlow, ErrExhausted, ErrNotReady}, func(e error) bool { return errors.Is(err, e) })
}

// Options configure a Pool.
type Options struct {
	Proc   hostfs.Root // /proc
	Cgroup string      // root of the cgroup file systems, whose names distinguish tenants
	// Ready is closed when reading may begin; nil means now. A thread that sleeps for ever cannot drop its privileges,
	// and the others would wait for it.
	Ready <-chan struct{}
	Log   *slog.Logger
}

// Pool runs reads. A nil Pool reads without a deadline, for tests and for files that no process controls.
type Pool struct {
	opts  Options
	names cgroup.Hierarchy

	mu       sync.Mutex // protects the fields below. No file is read while it is held.
	stuck    int
	known    map[int]*suspect // by process ID
	slow     slowness
	reading  map[int]chan struct{} // by process ID: reads that have not passed their deadline; closed at their end
	refused  map[error]uint64
	logged   time.Time
	wasEmpty bool // the message about exhausted workers was logged
}

// suspect is a process that has not answered in time.
type suspect struct {
	start   time.Duration // distinguishes it from a later process with the same ID
	tenant  tenant.Tenant
	pending int       // reads that have not returned
	until   time.Time // it is not read before, if nothing is pending
}

func (s *suspect) quarantined(now time.Time) bool { return s.pending > 0 || now.Before(s.until) }

// Figures describe a pool at one moment.
type Figures struct {
	Stuck       int // reads that have passed their deadline and have not returned
	Quarantined int // processes that are not read because of them
	// Reads that were refused: of quarantined processes, of tenants with too many of them, of tenants with slow processes, and of all
	// others.
	RefusedQuarantined, RefusedTenant, RefusedSlow, RefusedExhausted uint64
}

// New returns a pool without workers.
func New(o Options) *Pool {
	return &Pool{opts: o, names: cgroup.Naming(o.Cgroup), slow: newSlowness(), known: map[int]*suspect{}, reading: map[int]chan struct{}{}, refused: map[error]uint64{}}
}

// Tenant returns the owner of a process.
func (p *Pool) Tenant(pid int) tenant.Tenant {
	if p == nil {
		return tenant.Tenant{}
	}
	return tenant.Of(p.opts.Proc.Process(pid), p.names)
}

// Figures returns the current figures.
func (p *Pool) Figures() Figures {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(time.Now())
	return Figures{
		Stuck: p.stuck, Quarantined: len(p.known),
		RefusedQuarantined: p.refused[errQuarantined], RefusedTenant: p.refused[errTenant], RefusedSlow: p.refused[errSlow], RefusedExhausted: p.refused[ErrExhausted],
	}
}

// outcome is the result of a read.
type outcome[T any] struct {
	value T
	err   error
}

// Of reads from a process and waits for at most the deadline. The read must not share anything with its caller, because
// it may outlive the call.
func Of[T any](p *Pool, pid int, read func() (T, error)) (T, error) {
	var none T
	if p == nil {
		return read()
	}
	if err := p.admit(pid); err != nil {
		return none, err
	}
	defer p.leave(pid)
	w := &worker{pid: pid}
	done := make(chan outcome[T], 1)
	go func() {
		runtime.LockOSThread()
		w.thread.Store(int64(unix.Gettid()))
		value, err := Contained(read)
		runtime.UnlockOSThread()
		done <- outcome[T]{value, err}
		p.returned(w)
	}()
	timer := time.NewTimer(firstLook)
	defer timer.Stop()
	before, starved, asleep := time.Now(), true, time.Duration(0)
	var of tenant.Tenant
	defer func() { p.charge(of, asleep) }()
	for at := firstLook; ; at = min(2*at, at+slice) {
		o, ok := await(done, timer.C)
		now := time.Now()
		if !ok {
			if starved = p.starved(w); !starved && asleep == 0 {
				of = p.Tenant(pid) // it may have ended when the read returns
			}
		}
		if !starved {
			asleep += now.Sub(before)
		}
		if ok {
			return o.value, o.err
		}
		if before = now; at == starvedDeadlines*deadline || at%deadline == 0 && !starved {
			break
		}
		timer.Reset(min(at, slice))
	}
	select {
	case o := <-done: // its thread sleeps because it has read
		return o.value, o.err
	default:
	}
	if asleep == 0 {
		of = p.Tenant(pid)
	}
	p.late(w, of)
	return none, fmt.Errorf("reading process %d: %w", pid, ErrStuck)
}

// await waits for the outcome of a read until the timer fires. A caller that got no processor for so long finds both, and
// the outcome counts.
func await[T any](done <-chan outcome[T], timer <-chan time.Time) (outcome[T], bool) {
	select {
	case o := <-done:
		return o, true
	case <-timer:
	}
	select {
	case o := <-done:
		return o, true
	default:
		return outcome[T]{}, false
	}
}

// starved reports whether the thread of a read waits for a processor or runs, and does not sleep. Its thread may not
// have begun yet.
func (p *Pool) starved(w *worker) bool {
	thread := int(w.thread.Load())
	if thread == 0 {
		return true
	}
	stat, err := p.opts.Proc.Self().Thread(thread).Stat()
	return err == nil && stat.State == "R"
}

// Contained turns a panic of a read into an error, as the goroutine of a caller would.
func Contained[T any](read func() (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return read()
}

// worker is one read.
type worker struct {
	pid      int
	thread   atomic.Int64 // ID of the thread that reads; 0 before it begins
	returned bool
	suspect  *suspect // nil before the deadline
}

// admit returns why a process is not read, or nil. Then the caller must call leave. Two reads of one process follow each
// other, so that a process which hangs keeps one worker.
func (p *Pool) admit(pid int) error {
	if p.opts.Ready != nil {
		select {
		case <-p.opts.Ready:
		default:
			return ErrNotReady
		}
	}
	if !p.alone(pid) {
		return fmt.Errorf("another read of it has not ended: %w", ErrStuck)
	}
	p.mu.Lock()
	none := len(p.known) == 0 && p.slow.none() // nearly always
	p.mu.Unlock()
	if none {
		return nil
	}
	if err := p.suspected(pid); err != nil {
		p.leave(pid)
		return err
	}
	return nil
}

// alone waits until no other read of a process is before its deadline, and begins one. It returns false if that takes longer
// than a read may take.
func (p *Pool) alone(pid int) bool {
	var timeout <-chan time.Time
	for {
		p.mu.Lock()
		other := p.reading[pid]
		if other == nil {
			p.reading[pid] = make(chan struct{})
		}
		p.mu.Unlock()
		if other == nil {
			return true
		}
		if timeout == nil {
			timer := time.NewTimer((starvedDeadlines + 1) * deadline)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-other:
		case <-timeout:
			return false
		}
	}
}

// leave ends a read: it has returned, or is late.
func (p *Pool) leave(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.reading[pid])
	delete(p.reading, pid)
}

// suspected returns why a process is not read while some do not answer. Reads that are before their deadline count as if they
// would pass it.
func (p *Pool) suspected(pid int) error {
	start, of := p.start(pid), p.Tenant(pid)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.forget(now)
	s := p.known[pid]
	switch {
	case s != nil && s.start == start && s.quarantined(now):
		return p.refuse(errQuarantined)
	case p.stuck+len(p.reading)-1 >= maxStuck || len(p.known)+len(p.reading)-1 >= maxStuck: // p.reading includes this process
		if !p.wasEmpty {
			p.opts.Log.Warn("processes are no longer read: too many do not answer", "limit", maxStuck)
		}
		p.wasEmpty = true
		return p.refuse(ErrExhausted)
	case p.ofTenant(of) >= maxOfTenant:
		return p.refuse(errTenant)
	case p.slow.refuses(of, now):
		return p.refuse(errSlow)
	}
	return nil
}

func (p *Pool) refuse(why error) error {
	p.refused[why]++
	return why
}

// start returns the start of a process. The kernel writes this file without a lock that a process can hold.
func (p *Pool) start(pid int) time.Duration {
	stat, _ := p.opts.Proc.Process(pid).Thread(pid).Stat() // zero if it has ended
	return stat.Started
}

// ofTenant returns how many processes of a user or control group are quarantined, whichever are more. Root and processes outside of
// all control groups are not limited.
func (p *Pool) ofTenant(t tenant.Tenant) int {
	user, group := 0, 0
	for _, s := range p.known {
		if t.User != 0 && s.tenant.User == t.User {
			user++
		}
		if t.Group != "" && s.tenant.Group == t.Group {
			group++
		}
	}
	return max(user, group)
}

// late notes that a worker of a tenant's process has passed its deadline.
func (p *Pool) late(w *worker, of tenant.Tenant) {
	start := p.start(w.pid)
	comm, _ := p.opts.Proc.Process(w.pid).Comm() // it may have ended
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	s := p.known[w.pid]
	if s == nil || s.start != start {
		s = &suspect{start: start, tenant: of}
		p.known[w.pid] = s
	}
	s.until = now.Add(quarantineTime)
	if w.returned { // since the deadline
		return
	}
	w.suspect = s
	s.pending++
	p.stuck++
	if now.Sub(p.logged) >= quiet {
		p.logged = now
		p.opts.Log.Warn("a process does not answer and is not read any more", "pid", w.pid, "program", text.Label(comm), "hanging_reads", p.stuck)
	}
}

// returned notes that a worker has ended.
func (p *Pool) returned(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.returned = true
	if s := w.suspect; s != nil {
		s.pending--
		s.until = time.Now().Add(quarantineTime)
		p.stuck--
	}
}

// forget drops processes that may be read again.
func (p *Pool) forget(now time.Time) {
	for pid, s := range p.known {
		if !s.quarantined(now) {
			delete(p.known, pid)
			p.wasEmpty = false
		}
	}
}
