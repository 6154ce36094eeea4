// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"errors"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// Limits of the cost of inspecting processes.
const (
	// A process is inspected again after the time that its program has run so far, within these limits. A process chooses
	// its TEE in the first seconds after it starts.
	firstWait, longestWait = time.Second, 256 * time.Second
	// checkEvery is the interval at which the detector checks that a process ID still means the same program, unless each start
	// of a program is reported to it.
	checkEvery = 10 * time.Second
	// burst is the maximum number of inspections at once, and perSecond the number that is added each second. An inspection costs
	// 40 us, or a millisecond if the process has thousands of mappings. It costs a tenth if the process has mapped nothing since the
	// last one.
	burst, perSecond = 256, 64
	// maxSeen is the number of processes that are remembered. A process is forgotten after forgetAfter without a
	// query.
	maxSeen     = 8192
	forgetAfter = 2 * time.Minute
)

// finding is the TEE that a process uses, and the runtime that started it.
type finding struct {
	enclave bool
	runtime teelabel.Runtime
}

// seen is a process that was queried.
type seen struct {
	process
	found   finding
	mapped  image     // what the last reading of its mappings has shown
	since   time.Time // when the program started
	asked   time.Time
	checked time.Time
	next    time.Time // when it is inspected next
	looking bool      // it is being inspected now
	changed bool      // it has started or run another program since the last check
	owner   tenant.Tenant
}

// Detector caches what it finds, so that repeated queries about the same processes cost almost nothing. Several
// users use one detector.
type Detector struct {
	roots Roots
	reads *reader.Pool
	guest teelabel.Kind // the TEE that this whole machine runs in
	now   func() time.Time
	boot  func() time.Duration // time since the machine started, with that in suspend

	mu         sync.Mutex // protects all fields below
	seen       map[uint32]*seen
	looks      float64 // how many may be taken now
	counted    time.Time
	places     *tenant.Quota // in seen
	news       news
	thisSecond *tenant.Quota // of the looks of the current second
	second     time.Time
}

// NewDetector returns a detector for the machine below the roots, which reads processes by the pool.
func NewDetector(r Roots, reads *reader.Pool) *Detector {
	return &Detector{
		roots: r, reads: reads, guest: GuestOf(r), now: time.Now, boot: clock.SinceBoot,
		seen: map[uint32]*seen{}, looks: burst, places: tenant.NewQuota(maxSeen),
	}
}

// Workload returns the TEE that the processes use, and their runtime. The runtime is empty if none is recognised.
// A runtime can run outside a TEE: simulations and gramine-direct do.
func (d *Detector) Workload(tgids []uint32) (kind teelabel.Kind, runtime teelabel.Runtime) {
	now := d.now()
	d.learn()
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
		return teelabel.SGX, best.runtime
	}
	return d.guest, best.runtime
}

// find answers from the cache if it can. No lock is held while it reads the process, because the process can delay that until the
// deadline. A process that does not answer keeps the earlier finding.
func (d *Detector) find(tgid uint32, now time.Time) finding {
	s, known := d.due(tgid, now)
	if s == nil {
		return known.finding
	}
	looked, err := d.inspect(tgid, known.mapped)
	d.mu.Lock()
	defer d.mu.Unlock()
	s.looking = false
	if errors.Is(err, reader.ErrNotReady) {
		return s.found
	}
	if err == nil && looked.ended {
		if d.seen[tgid] == s {
			d.drop(tgid)
		}
		return finding{}
	}
	s.next = now.Add(min(max(now.Sub(s.since), firstWait), longestWait))
	if err == nil {
		s.found = looked.finding
		if s.mapped == known.mapped { // it has not run another program meanwhile
			s.mapped = looked.mapped
		}
	}
	return s.found
}

// inspect inspects a process. Its mappings are read only if they may differ from those that were read before.
func (d *Detector) inspect(tgid uint32, before image) (look, error) {
	if f, same := d.roots.lookAgain(tgid, before); same {
		before.again++
		return look{finding: f, mapped: before}, nil
	}
	return reader.Of(d.reads, int(tgid), func() (look, error) { return d.roots.look(tgid), nil })
}

// due returns the process if it must be inspected now, and otherwise the known data. A process is the same while its start
// time is the same. Its program is the same while its name is the same and no exec is reported. Without reports, a program
// that executes itself is noticed at the next look. With complete reports, a known process is read only if it is inspected.
func (d *Detector) due(tgid uint32, now time.Time) (*seen, look) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.seen[tgid]
	if s != nil {
		s.asked = now
		if d.fresh(s, now) {
			return nil, s.known()
		}
		if d.news.complete && !s.changed { // it runs the same program, or has ended
			return d.take(s, now), s.known()
		}
	}
	p, ok := d.roots.process(tgid)
	if !ok {
		d.drop(tgid) // ended
		return nil, look{}
	}
	if s == nil || s.process != p {
		owner := d.reads.Tenant(int(tgid))
		d.drop(tgid)
		if d.places.Take(owner) != nil {
			d.forget(now)
			if d.places.Take(owner) != nil {
				return nil, look{}
			}
		}
		since := now
		if s == nil || s.started != p.started { // the name changed: the process called exec
			since = now.Add(p.started - d.boot())
		}
		s = &seen{process: p, since: since, asked: now, owner: owner}
		d.seen[tgid] = s
	}
	if s.changed { // it may run another program of the same name
		s.since, s.next = now, now
	}
	if s.changed || !d.news.complete {
		s.mapped = image{programs: s.mapped.programs + 1}
	}
	s.checked, s.changed = now, false
	return d.take(s, now), s.known()
}

// known returns the result of the last inspection.
func (s *seen) known() look { return look{finding: s.found, mapped: s.mapped} }

// take returns the process if it must be inspected now and an inspection is available, and otherwise nil.
func (d *Detector) take(s *seen, now time.Time) *seen {
	if s.looking || now.Before(s.next) || !d.mayLook(s.owner, now) {
		return nil
	}
	s.looking, s.checked = true, now
	return s
}

// fresh reports whether the known data of a process can be used without reading it.
func (d *Detector) fresh(s *seen, now time.Time) bool {
	switch {
	case s.changed:
		return false
	case d.news.complete:
		d.refill(now)
		return now.Before(s.next) || d.looks < 1
	}
	return now.Before(s.next) && now.Sub(s.checked) < checkEvery
}

// drop forgets a process, if it is known.
func (d *Detector) drop(tgid uint32) {
	if s := d.seen[tgid]; s != nil {
		d.places.Give(s.owner)
		delete(d.seen, tgid)
	}
}

// refill adds the looks that have become available.
func (d *Detector) refill(now time.Time) {
	if !d.counted.IsZero() {
		d.looks = min(burst, d.looks+perSecond*max(0, now.Sub(d.counted).Seconds()))
	}
	d.counted = now
}

// mayLook takes one of the available looks. It reports false if none is left, or if the owner of the process has used its
// quota for this second.
func (d *Detector) mayLook(owner tenant.Tenant, now time.Time) bool {
	d.refill(now)
	if d.looks < 1 {
		return false
	}
	if d.thisSecond == nil || now.Sub(d.second) >= time.Second || now.Before(d.second) {
		d.thisSecond, d.second = tenant.NewQuota(max(perSecond, int(d.looks))), now
	}
	if d.thisSecond.Take(owner) != nil {
		return false
	}
	d.looks--
	return true
}

// forget drops processes that were not queried recently.
func (d *Detector) forget(now time.Time) {
	for tgid, s := range d.seen {
		if now.Sub(s.asked) >= forgetAfter {
			d.drop(tgid)
		}
	}
}
