// SPDX-License-Identifier: Apache-2.0

package gramine

import (
	"cmp"
	"math"
	"slices"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
)

// blockKey identifies a control block by a process and the address to which GS points. Several threads can have the same address.
// Gramine's RPC threads keep the address of their creator, and each new thread has it until it sets its own.
type blockKey struct {
	TGID uint32
	GS   uint64
}

// span is the time in nanoseconds since boot in which a thread used a control block.
type span struct{ start, end uint64 }

// forever is the end of the span of a running thread.
const forever = math.MaxUint64

// reading is the content of a control block at one time.
type reading struct {
	from, to uint64 // it was read between these times
	counters [counters]uint64
	final    bool // by a thread that ended
}

// seen has the control blocks that one pass has read at one address.
type seen struct {
	spans    []span
	readings []reading
}

// block is a control block. A thread that ends frees its block, and a later thread may have another one at the same
// address. Gramine makes the block of a thread before the thread, and after the end of the previous user of the
// address. So two threads with the same address have the same block if and only if their spans overlap, directly or
// through spans of others.
type block struct {
	span
	last  [counters]uint64
	alive bool // a thread used it at the last pass
	reset bool // its counters were set to 0
	ended bool // a thread that ended has read it
}

// blocksOf sorts what was seen at one address into blocks, in order of time. The first can be known from the
// previous pass.
func blocksOf(known *block, s *seen) []*block {
	spans := slices.Clone(s.spans)
	if known != nil {
		spans = append(spans, known.span)
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	var all []*block
	for _, next := range spans {
		if n := len(all); n > 0 && next.start <= all[n-1].end {
			all[n-1].end = max(all[n-1].end, next.end)
			continue
		}
		all = append(all, &block{span: next})
	}
	for _, b := range all {
		if known != nil && b.start <= known.start && known.start <= b.end {
			b.last, b.reset, b.ended, b.alive = known.last, known.reset, known.ended, known.alive
		}
	}
	return all
}

// add adds what a pass has seen at one address to the counts of a workload. It returns the block to remember,
// which may be nil. now is when the pass began.
func (g *Counters) add(owner *count.Workload, known *block, s *seen, now uint64) *block {
	all := blocksOf(known, s)
	for i, b := range all {
		readings := slices.DeleteFunc(slices.Clone(s.readings), func(r reading) bool {
			if !r.final { // of the running threads
				return b.end != forever
			}
			return r.to < b.start || r.to > b.end
		})
		g.count(owner, b, readings)
		running := b.end == forever
		if b.alive && !running && !b.ended {
			g.Unseen++
		}
		switch {
		case running:
			b.alive, b.end = true, now
		case i+1 == len(all) && len(s.spans) > 0: // a thread that was created before the end may still appear
			b.alive = false
		default:
			all[i] = nil
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// count adds the growth of a block's counters.
func (g *Counters) count(owner *count.Workload, b *block, readings []reading) {
	// When a thread ends while its block is read, the values decide which was first: an end sets counters to 0.
	at := func(r reading) uint64 {
		if r.counters[eenters] < b.last[eenters] {
			return r.to
		}
		return r.from
	}
	slices.SortStableFunc(readings, func(x, y reading) int { return cmp.Compare(at(x), at(y)) })
	for _, r := range readings {
		if r.counters[eenters] < b.last[eenters] {
			b.reset = true
			if !b.ended && !r.final {
				g.Resets++ // what was counted since the previous reading is lost
			}
		}
		g.advance(owner, b, r.counters)
		b.ended = b.ended || r.final
	}
}

// advance adds the growth of a block's counters up to a reading.
func (g *Counters) advance(owner *count.Workload, b *block, now [counters]uint64) {
	trusted := trust(now, b.reset)
	for i := range trusted {
		n := now[i] - b.last[i]
		if now[i] < b.last[i] { // set to 0: at SIGUSR1, from Gramine 1.8 on, and when a thread ends
			n = now[i]
		}
		b.last[i] = now[i]
		g.grown[i] += n
		switch i {
		case syncSignals:
			count.AddOlder(owner, float64(n), g.Families.Signals, "sync", source)
		case asyncSignals:
			count.AddOlder(owner, float64(n), g.Families.Signals, "async", source)
		default:
			count.AddOlder(owner, float64(n), g.Families.Transitions, [...]string{eenters: "eenter", eexits: "eexit", aexs: "aex"}[i], source)
		}
	}
}

// trust returns how many of the counters can be trusted: none, the three that the code increments, or all. Each
// EENTER is one of three things: an ECALL, of which a thread has few; a return from an OCALL, which was an EEXIT;
// or a signal. If the counters were set to 0 while the thread was inside, one EEXIT has no EENTER.
func trust(c [counters]uint64, reset bool) int {
	const ecalls = 8
	if reset && c[eexits] == c[eenters]+1 {
		return syncSignals
	}
	if c[eexits] > c[eenters] {
		return 0
	}
	entries := c[eenters] - c[eexits] // not explained by OCALLs
	if signals := c[syncSignals] + c[asyncSignals]; signals > entries || entries-signals > ecalls {
		return syncSignals
	}
	return counters
}
