// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// thread is one of Gramine's.
type thread struct {
	last  [counters]uint64
	alive bool // met in the pass that is under way
	ended bool // its last counts are in
}

// maxThreads of one process are told apart.
const maxThreads = 8192

// readThreads reads the counters that Gramine keeps, of the threads that run and of those that ended.
func (b *Backend) readThreads() error {
	live, err := b.kernel.liveThreads()
	if err != nil {
		return err
	}
	for _, t := range live {
		if p := b.gramineProcess(t.TGID); p != nil {
			b.readThread(p, t)
		}
	}
	// After the others: a thread that ended meanwhile is among these.
	ended, err := b.kernel.takeEnded()
	for key, e := range ended {
		if p := b.gramineProcess(e.TGID); p != nil {
			t := p.thread(key)
			b.advance(p, t, e.Counters)
			t.ended = true
		} else {
			b.unseen++
		}
	}
	for _, p := range b.processes {
		for key, t := range p.threads {
			if !t.alive {
				if !t.ended {
					b.unseen++
				}
				delete(p.threads, key)
			}
			t.alive = false
		}
	}
	return err
}

// gramineProcess returns a process of Gramine, which may be so new that only the kernel side has met it.
func (b *Backend) gramineProcess(tgid uint32) *process {
	p := b.process(tgid)
	if p != nil && p.layout == nil {
		l := &layout{}
		if b.kernel.object.Map("gramine").Lookup(tgid, l) != nil {
			return nil
		}
		p.layout = l
	}
	return p
}

// thread returns what is known of a thread, nothing if it is new.
func (p *process) thread(key threadKey) *thread {
	t := p.threads[key]
	if t == nil {
		t = &thread{}
		p.threads[key] = t
	}
	return t
}

// readThread reads the counters of a thread that runs.
func (b *Backend) readThread(p *process, live liveThread) {
	key := threadKey{Start: live.Start, TID: live.TID}
	if p.threads[key] == nil && len(p.threads) >= maxThreads {
		return
	}
	t := p.thread(key)
	t.alive = true
	if t.ended {
		return
	}
	if now, err := readCounters(live, p.layout); err == nil {
		b.advance(p, t, now)
	}
}

// readCounters reads a thread's control block from the memory of its process, which goes on running.
func readCounters(t liveThread, l *layout) (c [counters]uint64, err error) {
	block := make([]byte, l.Offsets[counters-1]+8)
	local := []unix.Iovec{{Base: &block[0], Len: uint64(len(block))}}
	remote := []unix.RemoteIovec{{Base: uintptr(t.GS), Len: len(block)}}
	n, err := unix.ProcessVMReadv(int(t.TGID), local, remote, 0)
	if err != nil {
		return c, err
	}
	// It begins with its own address: what else the register may point to is not read.
	if n != len(block) || binary.LittleEndian.Uint64(block) != t.GS {
		return c, fmt.Errorf("no control block at %#x", t.GS)
	}
	for i, at := range l.Offsets {
		c[i] = binary.LittleEndian.Uint64(block[at:])
	}
	return c, nil
}

// advance counts what a thread has counted since the last time.
func (b *Backend) advance(p *process, t *thread, now [counters]uint64) {
	trusted := trust(now)
	f := b.families
	const source = "gramine_counters"
	for i := range trusted {
		n := now[i] - t.last[i]
		if now[i] < t.last[i] { // set back by SIGUSR1, from Gramine 1.8 on
			n = now[i]
		}
		t.last[i] = now[i]
		switch i {
		case syncSignals:
			b.add(p.owner, float64(n), f.signals, "sync", source)
		case asyncSignals:
			b.add(p.owner, float64(n), f.signals, "async", source)
		default:
			b.add(p.owner, float64(n), f.transitions, [...]string{"eenter", "eexit", "aex"}[i], source)
		}
	}
}

// trust tells how many of the counters are what they are taken for: none, the three that the code was found
// to increment, or all. Each EENTER is an ECALL, of which a thread has few, the return from an OCALL, which
// was an EEXIT, or a signal.
func trust(c [counters]uint64) int {
	const ecalls = 8
	if c[eexits] > c[eenters] {
		return 0
	}
	if rest := c[eenters] - c[eexits]; c[syncSignals]+c[asyncSignals] > rest || rest-c[syncSignals]-c[asyncSignals] > ecalls {
		return syncSignals
	}
	return counters
}
