// SPDX-License-Identifier: Apache-2.0

package system

import (
	"sync"
	"sync/atomic"
)

// follower is a part of the agent that follows the changes.
type follower int

const (
	byDetector follower = iota // outside of this package
	byMembers
	followers // number of followers
)

// changeLog reads the ring of processes that have started or run another program, for each follower. It has a lock of its own,
// because its readers are also called by code that holds the lock of the collector.
type changeLog struct {
	mu      sync.Mutex
	ring    *changeRing // nil before the programs are loaded and after they are removed
	read    uint64      // entries that were read
	some    bool        // the ring was read before
	waiting [followers][]uint32
	missed  [followers]bool // there may be others than those that wait
}

// open begins to read a ring. nil ends it.
func (l *changeLog) open(ring *changeRing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring, l.read, l.some = ring, 0, false
}

// next returns the processes that have changed since the follower's last call. It returns false if there may be others: at the
// first call, and when more processes have changed than the ring has entries. A nil log knows none.
func (l *changeLog) next(of follower) (tgids []uint32, complete bool) {
	if l == nil {
		return nil, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ring == nil {
		return nil, false
	}
	changed, complete := l.drain()
	for f := range followers {
		if l.waiting[f] = append(l.waiting[f], changed...); !complete || len(l.waiting[f]) > len(l.ring.TGID) {
			l.waiting[f], l.missed[f] = nil, true
		}
	}
	tgids, complete = l.waiting[of], !l.missed[of]
	l.waiting[of], l.missed[of] = nil, false
	return tgids, complete
}

// drain returns the processes that have changed since the last call. It returns false if there may be others.
func (l *changeLog) drain() (tgids []uint32, complete bool) {
	written := atomic.LoadUint64(&l.ring.Written)
	complete = l.some
	l.some = true
	if complete {
		tgids, complete = l.take(written)
	}
	if !complete {
		l.skip()
		return nil, false
	}
	return tgids, true
}

// take returns the entries before a number. It returns false if the kernel side has overwritten some of them, also meanwhile.
func (l *changeLog) take(written uint64) (tgids []uint32, complete bool) {
	size, first := uint64(len(l.ring.TGID)), l.read
	if written-first > size {
		return nil, false
	}
	for ; l.read != written; l.read++ {
		tgid := atomic.SwapUint32(&l.ring.TGID[l.read%size], 0)
		if tgid == 0 {
			break // the kernel side has taken the entry and not written it yet
		}
		tgids = append(tgids, tgid)
	}
	return tgids, atomic.LoadUint64(&l.ring.Written)-first <= size
}

// skip leaves out all entries. They are removed, because a later entry must be zero until it is written.
func (l *changeLog) skip() {
	for i := range l.ring.TGID {
		atomic.StoreUint32(&l.ring.TGID[i], 0)
	}
	l.read = atomic.LoadUint64(&l.ring.Written)
}
