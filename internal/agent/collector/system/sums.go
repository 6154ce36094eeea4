// SPDX-License-Identifier: Apache-2.0

package system

import (
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// sums are the sums of each slot's rows over all CPUs. The kernel side marks the rows that it counts into (touch in slots.h). So
// the cost of a reading depends on the number of rows that have counted since the last one, not on the number of CPUs and slots.
//
// A row counts as long as its slot is that of its CPU, and is marked at the beginning only. So the slot that each CPU had at the
// last collection counts as marked. The counters of system calls are most of a row. Among them, only those of calls that the kernel
// side has marked in the row are read.
type sums struct {
	kernel *kernelSide
	slots  []*slotSum // by slot; nil for one that has not counted
	last   []position // by CPU
	read   int        // rows read since the start

	// By row, as kernelSide.rows.
	rows, times []*copied // nil for a row that was not read
	ran         []uint64  // its run time at the last collection
	awaiting    []bool    // it is in waiting

	waiting []uint32 // rows that may have counted since they were last read
	found   []uint32 // of one CPU in one collection
	running []uint32 // slots with a thread in flight
}

// position is where a CPU counted at the last collection.
type position struct {
	row      uint32
	switches uint64
}

// slotSum is what a slot has counted on all CPUs.
type slotSum struct {
	row
	times    *rowTime       // nil unless calls are timed
	ran      uint64         // its run time at the last collection
	inflight threadCounters // what its running threads have used since they were switched in
	waited   [waits]uint64  // the waits of these threads, by duration
	changed  bool           // since the last hold
}

func newSums(k *kernelSide) *sums {
	s := &sums{
		kernel: k, slots: make([]*slotSum, k.slots), last: make([]position, len(k.cpus)), rows: make([]*copied, len(k.rows)),
		ran: make([]uint64, len(k.rows)), awaiting: make([]bool, len(k.rows)),
	}
	if len(k.times) == len(k.rows) {
		s.times = make([]*copied, len(k.rows))
	}
	for cpu := range s.last {
		s.last[cpu].row = uint32(cpu*k.slots + slotUnknown)
	}
	return s
}

// marks returns the marks of eight slots in each word.
func (c *cpuState) marks() *[marks / 8]uint64 {
	return (*[marks / 8]uint64)(unsafe.Pointer(&c.Touched))
}

// collect finds the rows that may have counted since the last collection, and reads their run time.
func (s *sums) collect() {
	for cpu := range s.last {
		s.takeMarks(cpu)
		s.addCurrent(cpu)
		s.readRan()
	}
}

// takeMarks finds the rows of a CPU that the kernel side has marked, and removes the marks.
func (s *sums) takeMarks(cpu int) {
	s.found = s.found[:0]
	slots := s.kernel.slots
	words := s.kernel.cpus[cpu].marks()[:(min(slots, marks)+7)/8]
	for w := range words {
		if atomic.LoadUint64(&words[w]) == 0 {
			continue
		}
		for marked := atomic.SwapUint64(&words[w], 0); marked != 0; marked &= marked - 1 {
			for slot := 8*w + bits.TrailingZeros64(marked)/8; slot < slots; slot += marks {
				s.found = append(s.found, uint32(cpu*slots+slot))
			}
		}
	}
}

// addCurrent finds the row that a CPU counted into when the marks were last taken. A CPU that has been idle since has none:
// if an interrupt has counted there, it is read after the next switch.
func (s *sums) addCurrent(cpu int) {
	state, last := &s.kernel.cpus[cpu], s.last[cpu]
	slot := atomic.LoadUint32(&state.Slot)
	now := position{uint32(cpu*s.kernel.slots) + slot, atomic.LoadUint64(&state.Switches)}
	s.last[cpu] = now
	if (slot == slotIdle || slot == slotUnknown) && now == last {
		return
	}
	s.found = append(s.found, last.row)
}

// readRan reads the run time of the rows that were found. It comes last: a slot that ran when the marks were taken may have
// been switched out before the current slot was read.
func (s *sums) readRan() {
	for _, row := range s.found {
		sum, ran := s.slot(row), s.kernel.rows[row].RunNS
		sum.ran += ran - s.ran[row]
		s.ran[row] = ran
		if !s.awaiting[row] {
			s.awaiting[row] = true
			s.waiting = append(s.waiting, row)
		}
	}
}

// slot returns the sum of the slot of a row.
func (s *sums) slot(row uint32) *slotSum {
	sum := &s.slots[int(row)%s.kernel.slots]
	if *sum == nil {
		*sum = &slotSum{}
		if s.times != nil {
			(*sum).times = &rowTime{}
		}
	}
	return *sum
}

const (
	// readersRows is the number of rows, of about a microsecond each, that are worth another reader.
	readersRows = 1024
	// mostReaders bounds the CPUs that a reading takes from the machine at once. With this many, the rows of 128 workloads
	// on 256 CPUs take about 5 ms.
	mostReaders = 8
)

// readRows reads the rows that may have counted since they were last read. Many rows are read on several CPUs, because
// the collector is locked meanwhile.
func (s *sums) readRows() {
	s.collect()
	readers := min(mostReaders, runtime.GOMAXPROCS(0), 1+len(s.waiting)/readersRows)
	var others sync.WaitGroup
	for part := 1; part < readers; part++ {
		others.Go(func() { s.readPart(part, readers) })
	}
	s.readPart(0, readers)
	others.Wait()
	s.read += len(s.waiting)
	s.waiting = s.waiting[:0]
	s.readInflight()
}

// readPart reads the waiting rows of every slot whose remainder is part. No two parts write to the same slot or row.
func (s *sums) readPart(part, parts int) {
	now := &row{} // of one at a time
	for _, row := range s.waiting {
		if parts > 1 && int(row)%s.kernel.slots%parts != part {
			continue
		}
		s.awaiting[row] = false
		sum := s.slot(row)
		if s.rows[row] == nil {
			s.rows[row] = &copied{}
		}
		if s.rows[row].readRow(&s.kernel.rows[row], &sum.row, now) {
			sum.changed = true
		}
		if s.times == nil {
			continue
		}
		if s.times[row] == nil {
			s.times[row] = &copied{}
		}
		if _, changed := s.times[row].read(s.kernel.times[row].CallNS[:], sum.times.CallNS[:], 0, 0); changed {
			sum.changed = true
		}
	}
}

// readInflight reads what running threads had used at the last snapshot. If a CPU has switched since, its rows include it
// already. So the rows are read first.
func (s *sums) readInflight() {
	for _, slot := range s.running {
		if sum := s.slots[slot]; sum != nil {
			sum.inflight, sum.waited, sum.changed = threadCounters{}, [waits]uint64{}, true
		}
	}
	s.running = s.running[:0]
	for i := range s.kernel.cpus {
		cpu := &s.kernel.cpus[i]
		from, to := cpu.Start, cpu.Inflight
		if cpu.PID == pidUnknown || cpu.SnapshotSwitches != cpu.Switches || to.RunNS <= from.RunNS {
			continue
		}
		sum := s.slot(cpu.Slot)
		sum.changed = true
		s.running = append(s.running, cpu.Slot)
		for _, add := range []struct {
			sum      *uint64
			from, to uint64
		}{
			{&sum.inflight.RunNS, from.RunNS, to.RunNS}, {&sum.inflight.UserNS, from.UserNS, to.UserNS},
			{&sum.inflight.SysNS, from.SysNS, to.SysNS}, {&sum.inflight.DelayNS, from.DelayNS, to.DelayNS},
			{&sum.inflight.MinorFaults, from.MinorFaults, to.MinorFaults}, {&sum.inflight.MajorFaults, from.MajorFaults, to.MajorFaults},
		} {
			*add.sum += add.to - add.from
		}
		if n := to.Waits - from.Waits; n > 0 {
			sum.waited[waitBucket((to.DelayNS-from.DelayNS)/n)] += n
		}
	}
}

// hold raises the counts of a slot to the sums that were last read. They never decrease. When an exec moves a system call
// from one slot to another, the first row decreases before the second one increases. hold reports whether the slot may
// have counted since the last call.
func (s *sums) hold(slot uint32, counted *row, times **rowTime) bool {
	sum := s.slots[slot]
	if sum == nil || !sum.changed {
		return false
	}
	sum.changed = false
	counted.markAs(&sum.row)
	held, now := counted.words(), sum.words()
	for first, last := range sum.parts() {
		for w := first; w < last; w++ {
			raise(&held[w], now[w])
		}
	}
	raise(&counted.RunNS, sum.RunNS+sum.inflight.RunNS)
	raise(&counted.UserNS, sum.UserNS+sum.inflight.UserNS)
	raise(&counted.SysNS, sum.SysNS+sum.inflight.SysNS)
	raise(&counted.DelayNS, sum.DelayNS+sum.inflight.DelayNS)
	raise(&counted.MinorFaults, sum.MinorFaults+sum.inflight.MinorFaults)
	raise(&counted.MajorFaults, sum.MajorFaults+sum.inflight.MajorFaults)
	for i, n := range sum.waited {
		raise(&counted.Waits[i], sum.Waits[i]+n)
	}
	if sum.times != nil {
		if *times == nil {
			*times = &rowTime{}
		}
		**times = *sum.times // only increases
	}
	return true
}

// raise sets a counter to a value that is not less. Both may be below zero, modulo 2^64.
func raise(counter *uint64, to uint64) {
	if int64(to-*counter) > 0 {
		*counter = to
	}
}

// ranNS returns the run time of a slot at the last collection, including that of running threads.
func (s *sums) ranNS(slot int) uint64 {
	if sum := s.slots[slot]; sum != nil {
		return sum.ran + sum.inflight.RunNS
	}
	return 0
}

// clear sets the rows of a slot to zero. Nothing counts into it any more.
func (s *sums) clear(slot uint32) {
	s.slots[slot] = nil
	for i := int(slot); i < len(s.rows); i += s.kernel.slots {
		s.ran[i] = 0
		if s.rows[i] == nil && !s.awaiting[i] {
			continue
		}
		s.rows[i], s.kernel.rows[i] = nil, row{}
		if s.times != nil {
			s.times[i], s.kernel.times[i] = nil, rowTime{}
		}
	}
}

// blockWords is the number of words of a cache line.
const blockWords = 8

// copied is what was last read of a row. Blocks that were always zero are omitted, as most are: a program makes few of the
// system calls.
type copied struct {
	used   [(rowWords/blockWords + 63) / 64]uint64 // a bit for each block
	blocks [][blockWords]uint64
}

// readRow adds to the sum what a row has counted since it was last read, and reports whether that is anything. Calls that get
// their mark meanwhile are read the next time.
//
// It first copies what it compares. The cache lines of a copy are loaded at the same time. A comparison would wait for each.
func (c *copied) readRow(from, sum, now *row) (changed bool) {
	counted, total, at := now.words()[:], sum.words()[:], 0
	now.Called = row{}.Called
	now.markAs(from)
	for first, last := range now.parts() {
		copy(counted[first:last], from.words()[first:last])
	}
	for first, last := range now.marked() {
		next, some := c.read(counted[first:last], total[first:last], first/blockWords, at)
		at, changed = next, changed || some
	}
	marked := sum.Called // they are in the last block, but are not added up
	_, some := c.read(counted[firstOther:], total[firstOther:], firstOther/blockWords, at)
	sum.Called = marked
	sum.markAs(now)
	return changed || some
}

// read adds to the sum what blocks of a row, from the first one on, have counted since they were last read, and reports whether
// that is anything. The last copies of these blocks begin at a place, and those of the following ones at next.
func (c *copied) read(row, sum []uint64, first, place int) (next int, changed bool) {
	for b := first; len(row) >= blockWords; b, row, sum = b+1, row[blockWords:], sum[blockWords:] {
		now := [blockWords]uint64(row) // read once: the kernel side counts meanwhile
		bit := uint64(1) << (b % 64)
		if c.used[b/64]&bit == 0 {
			if now[0]|now[1]|now[2]|now[3]|now[4]|now[5]|now[6]|now[7] == 0 {
				continue
			}
			c.used[b/64] |= bit
			c.blocks = slices.Insert(c.blocks, place, [blockWords]uint64{})
		}
		before, to := &c.blocks[place], (*[blockWords]uint64)(sum)
		place++
		// Written out: a comparison of the arrays calls a function.
		if (now[0]^before[0])|(now[1]^before[1])|(now[2]^before[2])|(now[3]^before[3])|(now[4]^before[4])|(now[5]^before[5])|(now[6]^before[6])|(now[7]^before[7]) == 0 {
			continue
		}
		changed = true
		for w := range before {
			to[w] += now[w] - before[w]
		}
		*before = now
	}
	return place, changed
}
