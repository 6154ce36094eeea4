// SPDX-License-Identifier: Apache-2.0

package system

import (
	"os"
	"strconv"
)

// Processes lists the processes that count into a workload now; false when there is no workload of
// that name. It looks when it is asked, so that nothing is kept for those who never ask.
func (c *Collector) Processes(name string) (pids []int, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil || !c.slots.registry.Has(name) {
		return nil, false
	}
	its := map[uint16]bool{}
	for n, sl := range c.slots.active {
		if sl.owner.Name == name && n != slotUnknown {
			its[uint16(n)] = true
		}
	}
	for _, pid := range processIDs(c.opts.Proc) {
		if slot, ok := c.kernel.slotOf(pid); ok && its[slot] {
			pids = append(pids, pid)
		}
	}
	return pids, true
}

// processIDs lists the processes there are. An error leaves some out: they may have ended as well.
func processIDs(proc string) []int {
	dir, err := os.Open(proc)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
