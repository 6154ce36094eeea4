// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"io"
	"sync/atomic"
	"unsafe"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/sampling"
)

// iterate makes one pass over all threads in the kernel. It gives slots to processes without one, fills the gauges,
// and stores the counters of running threads.
func (k *kernelSide) iterate() error {
	if k.tasks == nil {
		it, err := k.object.Iterator("tasks")
		if err != nil {
			return err
		}
		k.tasks = it
	}
	clear(k.gauges)
	pass, err := k.tasks.Open()
	if err != nil {
		return fmt.Errorf("starting to iterate over the tasks: %w", err)
	}
	defer pass.Close()
	if _, err := io.Copy(io.Discard, pass); err != nil {
		return fmt.Errorf("iterating over the tasks: %w", err)
	}
	return nil
}

// runTimes adds up the run times that the programs have measured on all CPUs.
func (k *kernelSide) runTimes() (sum [sampling.Events]sampling.RunTime) {
	for cpu := range k.cpus {
		for i, t := range k.cpus[cpu].RunTimes {
			sum[i].Runs += t.Runs
			sum[i].NS += t.NS
		}
	}
	return sum
}

// withdrawn lets each program of a cgroup have its own slot again, after the key of their common slot was removed.
func (k *kernelSide) withdrawn(r *attribution.Record) {
	_ = k.wholeCgroups.Delete(r.Cgroup) // there may be no entry
}

// clear sets a slot's counters to zero. Nothing counts into it any more.
func (k *kernelSide) clear(sl *slot) error {
	slot := sl.Number
	k.durations.free(slot)
	k.sums.clear(slot)
	k.blocks[slot] = blockIO{}
	if sl.watched == nil {
		return nil
	}
	return k.deleteErrors(slot)
}

// deleteErrors removes the error counts of a watched process, so that the next process in its slot starts
// without them.
func (k *kernelSide) deleteErrors(slot uint32) error {
	var key errorKey
	var n uint64
	var old []errorKey
	for entries := k.callErrors.Iterate(); entries.Next(&key, &n); {
		if key.Slot == slot {
			old = append(old, key)
		}
	}
	for _, key := range old {
		if err := ignoreMissing(k.callErrors.Delete(key)); err != nil {
			return fmt.Errorf("deleting the error counts of slot %d: %w", slot, err)
		}
	}
	return nil
}

// slotOf returns the slot of a process. It returns false if the process has ended, or its ID is above the limit at the
// start.
func (k *kernelSide) slotOf(pid int) (uint16, bool) {
	if pid < 0 || pid/pidsPerPage >= len(k.pids) {
		return slotUnknown, false
	}
	slot := k.pids[pid/pidsPerPage].Slot[pid%pidsPerPage]
	return slot, slot != slotEnded
}

// moveProcess moves a process from one slot to another, and reports whether it was still in the first one.
// The kernel side may move processes at any time. Go has no 16-bit compare-and-swap, so the swap includes a neighbour.
func (k *kernelSide) moveProcess(pid int, from, to uint16) bool {
	page, at := &k.pids[pid/pidsPerPage], pid%pidsPerPage
	pair := (*uint32)(unsafe.Pointer(&page.Slot[at&^1]))
	shift := 16 * (at & 1) // little-endian
	for {
		old := atomic.LoadUint32(pair)
		if uint16(old>>shift) != from {
			return false
		}
		if atomic.CompareAndSwapUint32(pair, old, old&^(0xffff<<shift)|uint32(to)<<shift) {
			return true
		}
	}
}
