// SPDX-License-Identifier: Apache-2.0

package perfdata

// chunkBytes is the size of the memory that a queue takes at a time. A record has less than 64 KiB.
const chunkBytes = 256 << 10

// queued is a record that waits for earlier ones of other processors. Its body is in a chunk.
type queued struct {
	time, number uint64
	chunk, at    uint32
	kind         uint32
	misc, size   uint16
}

// before reports whether a record is handled before another one: records of one time in the order in which they were written.
func (a *queued) before(b *queued) bool {
	return a.time < b.time || a.time == b.time && a.number < b.number
}

// chunk has the bodies of records. Its memory is used again when none is left.
type chunk struct {
	bytes   []byte
	records int
}

// queue puts records in the order of their time. As in perf, records that are older than the newest record of the
// previous round are removed from it at the end of a round.
//
// It is a heap, so that many rounds with few records each do not sort the records of all others again.
type queue struct {
	heap         []queued
	chunks       []chunk
	free         []uint32 // chunks without a record, besides the last one
	last         uint32   // chunk that is filled
	used         int      // chunks that are not free
	pushed       uint64
	newest, next uint64
}

// queuedBytes is the size of a record in the heap.
const queuedBytes = 40

// bytes is the memory that the records take.
func (q *queue) bytes() int { return q.used*chunkBytes + len(q.heap)*queuedBytes }

// push copies a record.
func (q *queue) push(time uint64, rec record) {
	if q.used == 0 || chunkBytes-len(q.chunks[q.last].bytes) < len(rec.body) {
		q.another()
	}
	c := &q.chunks[q.last]
	one := queued{time, q.pushed, q.last, uint32(len(c.bytes)), rec.kind, rec.misc, uint16(len(rec.body))}
	c.bytes, c.records = append(c.bytes, rec.body...), c.records+1
	q.pushed, q.newest = q.pushed+1, max(q.newest, time)
	q.heap = append(q.heap, one)
	at := len(q.heap) - 1
	for at > 0 {
		up := (at - 1) / 2
		if q.heap[up].before(&one) {
			break
		}
		q.heap[at] = q.heap[up]
		at = up
	}
	q.heap[at] = one
}

// another begins a chunk.
func (q *queue) another() {
	q.used++
	if n := len(q.free); n > 0 {
		q.last, q.free = q.free[n-1], q.free[:n-1]
		return
	}
	q.last = uint32(len(q.chunks))
	q.chunks = append(q.chunks, chunk{bytes: make([]byte, 0, chunkBytes)})
}

// pop removes the first record. Its body is valid until the next push.
func (q *queue) pop() record {
	one := q.heap[0]
	n := len(q.heap) - 1
	moved := q.heap[n]
	q.heap = q.heap[:n]
	at := 0
	for 2*at+1 < n {
		down := 2*at + 1
		if down+1 < n && q.heap[down+1].before(&q.heap[down]) {
			down++
		}
		if moved.before(&q.heap[down]) {
			break
		}
		q.heap[at] = q.heap[down]
		at = down
	}
	if n > 0 {
		q.heap[at] = moved
	}
	c := &q.chunks[one.chunk]
	body := c.bytes[one.at : one.at+uint32(one.size)]
	if c.records--; c.records == 0 {
		c.bytes = c.bytes[:0]
		if one.chunk != q.last {
			q.free = append(q.free, one.chunk)
			q.used--
		}
	}
	return record{one.kind, one.misc, body}
}
