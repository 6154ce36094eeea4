// SPDX-License-Identifier: Apache-2.0

package system

import (
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// Processes lists the processes that count into a workload now. It returns false if no workload has
// that name. It reads the processes on request, so that nothing is stored without a request.
func (c *Collector) Processes(name string) (pids []int, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil || !c.slots.Registry.Has(name) {
		return nil, false
	}
	its := map[uint16]bool{}
	for sl := range c.slots.All() {
		if sl.Workload.Name == name && sl.Number != slotUnknown {
			its[uint16(sl.Number)] = true
		}
	}
	running, _ := hostfs.At(c.opts.Proc).Processes() // after an error the list is incomplete, which is as if processes had ended
	for _, pid := range running {
		if slot, ok := c.kernel.slotOf(pid); ok && its[slot] {
			pids = append(pids, pid)
		}
	}
	return pids, true
}

// Group is the slot that a process counts into, and the number of system calls counted there, as of the last scrape.
type Group struct {
	Slot  uint32
	Calls uint64
}

// Groups returns the slot of each of these processes. Processes that are not known yet are absent.
func (c *Collector) Groups(pids []int) map[int]Group {
	c.mu.Lock()
	defer c.mu.Unlock()
	groups := map[int]Group{}
	if c.kernel == nil || !c.kernel.attached("syscall") {
		return groups
	}
	for _, pid := range pids {
		slot, ok := c.kernel.slotOf(pid)
		sl := c.slots.Get(uint32(slot))
		if !ok || sl == nil || slot < slotFirst {
			continue
		}
		g := Group{Slot: sl.Number}
		for _, n := range sl.Calls {
			g.Calls += n
		}
		groups[pid] = g
	}
	return groups
}
