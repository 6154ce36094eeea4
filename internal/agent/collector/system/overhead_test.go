// SPDX-License-Identifier: Apache-2.0

package system

import (
	"testing"
	"time"
)

// Each rare event costs something, and frequent events are not counted twice.
func TestRareEventsHaveACost(t *testing.T) {
	var kernelFault, insertion, frequent row
	kernelFault.Faults[1][0], insertion.Cache[cacheInsertion] = 1, 1
	frequent.Calls[0], frequent.Faults[0][0], frequent.Cache[cacheAccess], frequent.Switches[0] = 1e9, 1e9, 1e9, 1e9
	for name, r := range map[string]*row{
		"a fork": {Forks: 1}, "a thread": {Threads: 1}, "an exit": {Exits: 1}, "an exec": {Execs: 1}, "a migration": {Migrations: 1},
		"a fault in kernel mode": &kernelFault, "a page that is inserted": &insertion,
		"an interrupt of a performance counter": {LLCMisses: counterPeriod},
	} {
		if cost := othersCost(r); cost < 50*time.Nanosecond || cost > 10*time.Microsecond {
			t.Errorf("%s costs %v", name, cost)
		}
	}
	if cost := othersCost(&frequent); cost != 0 {
		t.Errorf("frequent events cost %v as rare ones too", cost)
	}
}
