// SPDX-License-Identifier: Apache-2.0

package system

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
)

// direct adds up the rows of a slot on all CPUs.
func (k *kernelSide) direct(slot int) (sum row) {
	for i := slot; i < len(k.rows); i += k.slots {
		for w, v := range k.rows[i].words()[:firstMark] {
			sum.words()[w] += v
		}
		sum.markAs(&k.rows[i])
	}
	return sum
}

// The cost of a reading depends on the number of rows that have counted since the last reading, on any number of CPUs with any
// number of slots. So 256 CPUs that run some of 128 workloads are read in less than 10 ms. Reading all rows takes 80 ms.
func TestAReadingCostsWhatHasCounted(t *testing.T) {
	const cpus, slots = 256, 260
	k := madeOf(t, cpus, slots)
	rows := func(count func()) int {
		before := k.sums.read
		count()
		k.sums.readRows()
		return k.sums.read - before
	}
	if n := rows(func() {}); n != 0 {
		t.Errorf("%d rows are read where nothing has counted", n)
	}
	spread := func() {
		for i := range 300 {
			k.count(i%cpus, slotFirst+(i*7+i/cpus)%(slots-slotFirst)).call(i%calls, 1)
		}
	}
	for range 2 {
		if n := rows(spread); n != 300 {
			t.Errorf("%d rows are read after 300 have counted", n)
		}
	}
	k.cpus[7].Slot, k.cpus[7].Switches = 90, 1
	if n := rows(func() { k.count(7, 90).call(0, 1) }); n != 2 {
		t.Errorf("%d rows are read after a CPU has left the slot of its start for another one, want 2", n)
	}
	if n := rows(func() { k.rows[7*slots+90].call(0, 1) }); n != 1 {
		t.Errorf("%d rows are read while one CPU keeps a slot, want 1", n)
	}
	k.cpus[7].Slot, k.cpus[7].Switches = slotIdle, 2
	if n := rows(func() { k.count(7, slotIdle) }); n != 2 {
		t.Errorf("%d rows are read after a CPU has become idle, want 2", n)
	}
	if n := rows(func() {}); n != 0 {
		t.Errorf("%d rows are read while all CPUs are idle", n)
	}
	for slot := range slots {
		var sum row
		if k.sums.hold(uint32(slot), &sum, nil); sum != k.direct(slot) {
			t.Errorf("the sum of slot %d is not that of its rows", slot)
		}
	}
}

// Several concurrent readers of many rows find the same sums as one reader.
func TestSeveralReadersReadEachRowOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	const cpus, slots = 64, 70
	k := madeOf(t, cpus, slots)
	for round := range 3 {
		for cpu := range cpus {
			for slot := range slots {
				k.count(cpu, slot).call((cpu+slot+round)%calls, uint64(1+cpu))
			}
		}
		before := k.sums.read
		if k.sums.readRows(); k.sums.read-before != cpus*slots {
			t.Errorf("%d rows were read, want %d", k.sums.read-before, cpus*slots)
		}
		for slot := range slots {
			if k.sums.slots[slot].row != k.direct(slot) {
				t.Errorf("the sum of slot %d is not that of its rows", slot)
			}
		}
	}
}

// A row that is read repeatedly uses memory only for the blocks that it uses.
func TestWhatWasReadIsRememberedInBlocks(t *testing.T) {
	k := madeOf(t, 2, 8)
	for range 3 {
		r := k.count(1, slotFirst)
		r.call(0, 1)
		r.call(7, 1)
		r.call(300, 1)
		r.RunNS += 5
		k.sums.readRows()
	}
	if n := len(k.sums.rows[8+slotFirst].blocks); n != 4 { // two of calls, that of the run time, and that of the marks
		t.Errorf("%d blocks of 8 words are remembered, want 4", n)
	}
	if k.sums.rows[slotFirst] != nil {
		t.Error("a row that has counted nothing is remembered")
	}
}

// Only the counters of marked system calls are read.
func TestOnlyMarkedCallsAreRead(t *testing.T) {
	k := madeOf(t, 1, 8)
	r := k.count(0, slotFirst)
	r.call(callsPerMark, 1)
	r.Calls[2*callsPerMark-1]++ // has the same mark
	r.Calls[0]++                // was counted a moment ago, and is marked later
	r.Calls[2*callsPerMark]++
	var sum row
	read := func() map[int]uint64 {
		k.count(0, slotFirst)
		k.sums.readRows()
		k.sums.hold(slotFirst, &sum, nil)
		found := map[int]uint64{}
		for nr, n := range sum.Calls {
			if n > 0 {
				found[nr] = n
			}
		}
		return found
	}
	want := map[int]uint64{callsPerMark: 1, 2*callsPerMark - 1: 1}
	if got := read(); !maps.Equal(got, want) {
		t.Errorf("%v calls, want %v", got, want)
	}
	r.Called[0], r.Called[2] = 1, 1
	want[0], want[2*callsPerMark] = 1, 1
	if got := read(); !maps.Equal(got, want) {
		t.Errorf("%v calls after they were marked, want %v", got, want)
	}
}

// The next group of a slot begins at zero.
func TestAClearedSlotBeginsAtZero(t *testing.T) {
	k := madeOf(t, 3, 8)
	for range 2 {
		for cpu := range k.cpus {
			k.count(cpu, slotFirst).call(3, 2)
			k.rows[cpu*k.slots+slotFirst].RunNS += 10
		}
		k.sums.readRows()
		var sum row
		if k.sums.hold(slotFirst, &sum, nil); sum.Calls[3] != 6 || k.sums.ranNS(slotFirst) != 30 {
			t.Errorf("%d calls in %d ns, want 6 in 30", sum.Calls[3], k.sums.ranNS(slotFirst))
		}
		k.sums.clear(slotFirst)
		if k.direct(slotFirst) != (row{}) || k.sums.ranNS(slotFirst) != 0 {
			t.Error("a cleared slot has counts")
		}
	}
}

// No count is lost wherever the kernel side is when user space reads. The CPUs take steps at random between those of the
// reader: a step is a store of a program (set_slot, on_switch, on_migrate, count_call).
func TestNoCountIsLostBetweenTwoReadings(t *testing.T) {
	const cpus, slots, steps = 3, 8, 200_000
	k := madeOf(t, cpus, slots)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a fixed seed
	var next [cpus][]func()
	step := func() {
		cpu := random.IntN(cpus)
		state := &k.cpus[cpu]
		if len(next[cpu]) > 0 {
			next[cpu][0]()
			next[cpu] = next[cpu][1:]
			return
		}
		mark := func(slot int) func() { return func() { k.count(cpu, slot) } }
		event := func(at uint32) []func() { // a call is marked when it is the first one with its number
			r, call, first := &k.rows[at], random.IntN(calls), false
			return []func(){
				func() { first = r.Calls[call] == 0; r.Calls[call]++; r.RunNS += 3 },
				func() {
					if first {
						r.Called[call/callsPerMark] = 1
					}
				},
			}
		}
		switch slot := random.IntN(slots); random.IntN(4) {
		case 0:
			next[cpu] = append(event(state.Row),
				func() { state.Switches++ },
				func() { state.Row = uint32(cpu*slots + slot) },
				func() { state.Slot = uint32(slot) },
				mark(slot),
			)
		case 1:
			next[cpu] = append(event(uint32(cpu*slots+slot)), mark(slot))
		default:
			if state.Slot != slotIdle && state.Slot != slotUnknown {
				next[cpu] = event(state.Row)
			}
		}
	}
	some := func() {
		for range random.IntN(6) {
			step()
		}
	}
	for cpu := range cpus {
		k.cpus[cpu].Row = uint32(cpu * slots)
	}
	for n := range steps {
		for cpu := range cpus {
			k.sums.takeMarks(cpu)
			some()
			k.sums.addCurrent(cpu)
			some()
			k.sums.readRan()
			some()
		}
		if n%3 == 0 {
			k.sums.readRows()
		}
		if n%50 != 0 {
			continue
		}
		for cpu := range cpus { // what has begun ends
			for _, do := range next[cpu] {
				do()
			}
			next[cpu] = nil
		}
		k.sums.readRows()
		for slot := range slots {
			want := k.direct(slot)
			if sum := k.sums.slots[slot]; sum == nil && want != (row{}) || sum != nil && (sum.row != want || sum.ran != want.RunNS) {
				t.Fatalf("after %d readings the sum of slot %d is not that of its rows", n, slot)
			}
		}
	}
}

// On the real kernel: what is read is what the rows contain. A program may be between its count and its mark, so the sums
// may need further readings.
//
// False alarms: none. A count is in the sum as soon as its program has ended.
func TestSumsAreThoseOfTheRows(t *testing.T) {
	privilegetest.Alone(t)
	c := start(t, Options{})
	path := program(t, "summed")
	execve := []int{59, 322} // the count of an exec moves from one slot to another
	for range 20 {
		run(t, job(path, "getppid", "1000"))
		c.mu.Lock()
		k := c.kernel
		want := make([]row, k.slots)
		for slot := range want {
			want[slot] = k.direct(slot)
			for _, call := range execve {
				want[slot].Calls[call] = 0
			}
		}
		want[slotIdle] = row{} // an interrupt may count while a CPU is idle, and is read after the next switch
		behind := -1
		for until := time.Now().Add(5 * time.Minute); time.Now().Before(until); time.Sleep(time.Millisecond) {
			k.sums.readRows()
			if behind = k.sums.behind(want); behind < 0 {
				break
			}
		}
		c.mu.Unlock()
		if behind >= 0 {
			t.Fatalf("the sum of slot %d lacks what its rows have counted", behind)
		}
	}
	if n, most := c.kernel.sums.read, len(c.kernel.rows); n < 20 {
		t.Errorf("%d of %d rows were read", n, most)
	}
}

// behind returns a slot whose sum is less than wanted, or -1.
func (s *sums) behind(want []row) int {
	for slot := range want {
		for w, v := range want[slot].words()[:firstMark] {
			if v > 0 && (s.slots[slot] == nil || s.slots[slot].words()[w] < v) {
				return slot
			}
		}
	}
	return -1
}
