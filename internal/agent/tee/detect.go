// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of what asking about processes costs.
const (
	// A process is looked at again after as long as its program has run, within these bounds: what
	// it runs in is decided when it starts, but seconds after its first instruction.
	firstWait, longestWait = time.Second, 256 * time.Second
	// checkEvery is how often it is made sure that a process ID still means the same program.
	checkEvery = 10 * time.Second
	// Looks that may be taken at once, and those that are added each second. A look costs 40 us, of a
	// process with thousands of mappings a millisecond; a check costs 8 us.
	burst, perSecond = 256, 64
	// maxSeen processes are remembered; forgetAfter is how long one is after it was last asked about.
	maxSeen     = 8192
	forgetAfter = 2 * time.Minute
)

// finding is what is known of a process: the TEE that it uses and the runtime that put it there.
type finding struct {
	enclave bool
	runtime string
}

// seen is a process that was asked about.
type seen struct {
	process
	found   finding
	since   time.Time // when the program started
	asked   time.Time
	checked time.Time
	next    time.Time // when it is looked at again
}

// Detector remembers what it has found out, so that asking about the same processes at each scrape
// costs nothing most of the time, whoever of several asks.
type Detector struct {
	roots Roots
	guest Kind // the TEE that this whole machine runs in
	now   func() time.Time
	boot  func() time.Duration // time since the machine started, with that in suspend

	mu      sync.Mutex // of everything below
	seen    map[uint32]*seen
	looks   float64 // that may be taken now
	counted time.Time
}

// NewDetector makes a detector for the machine below the roots.
func NewDetector(r Roots) *Detector {
	return &Detector{
		roots: r, guest: guestOf(r), now: time.Now, boot: sinceBoot,
		seen: map[uint32]*seen{}, looks: burst,
	}
}

func sinceBoot() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // fails on wrong arguments only
	return time.Duration(t.Nano())
}

// Workload says which TEE the processes use, and the runtime that put them there, empty where none is
// recognised. There are runtimes outside a TEE: simulations, and gramine-direct.
func (d *Detector) Workload(tgids []uint32) (kind, runtime string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	best := finding{}
	for _, tgid := range tgids {
		if tgid == 0 {
			continue
		}
		f := d.find(tgid, now)
		if f.enclave && !best.enclave || best.runtime == "" && f.enclave == best.enclave {
			best = f
		}
	}
	if best.enclave {
		return string(SGX), best.runtime
	}
	return string(d.guest), best.runtime
}

// find answers from memory where it can. A process is the same as long as its start time is, and runs
// the same program as long as its name is the same: exec changes the name of all but a program that
// executes itself, and that is found out at the next look.
func (d *Detector) find(tgid uint32, now time.Time) finding {
	s := d.seen[tgid]
	if s != nil {
		s.asked = now
		if now.Before(s.next) && now.Sub(s.checked) < checkEvery {
			return s.found
		}
	}
	p, ok := d.roots.process(tgid)
	if !ok {
		delete(d.seen, tgid) // ended
		return finding{}
	}
	if s == nil || s.process != p {
		if s == nil && len(d.seen) >= maxSeen && !d.forget(now) {
			return finding{}
		}
		since := now
		if s == nil || s.started != p.started { // else by exec, now or a moment ago
			since = now.Add(p.started - d.boot())
		}
		s = &seen{process: p, since: since, asked: now}
		d.seen[tgid] = s
	}
	s.checked = now
	if now.Before(s.next) || !d.mayLook(now) {
		return s.found
	}
	s.found = d.roots.look(tgid)
	s.next = now.Add(min(max(now.Sub(s.since), firstWait), longestWait))
	return s.found
}

// mayLook spends one look, if there is one.
func (d *Detector) mayLook(now time.Time) bool {
	if !d.counted.IsZero() {
		d.looks = min(burst, d.looks+perSecond*max(0, now.Sub(d.counted).Seconds()))
	}
	d.counted = now
	if d.looks < 1 {
		return false
	}
	d.looks--
	return true
}

// forget drops processes that nobody asks about any more, and tells whether there is room.
func (d *Detector) forget(now time.Time) bool {
	for tgid, s := range d.seen {
		if now.Sub(s.asked) >= forgetAfter {
			delete(d.seen, tgid)
		}
	}
	return len(d.seen) < maxSeen
}
