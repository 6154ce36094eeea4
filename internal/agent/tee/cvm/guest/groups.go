// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"time"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/workload"
)

// quiet is the time without counts after which a group counts as unused. The end of its processes is not reported.
const quiet = 5 * time.Minute

// counts are what a group has mapped, by device class and enum bounce.
type counts [groupCounts]uint64

// Add implements attribution.Sum.
func (c *counts) Add(from *counts) {
	for i, n := range from {
		c[i] += n
	}
}

// Subtract implements attribution.Sum.
func (c *counts) Subtract(from *counts) {
	for i, n := range from {
		c[i] -= n
	}
}

// owner is the user side of a group: processes with the same cgroup and program.
type owner struct {
	attribution.Counted[counts, *counts]
	use    *groupUse // in the kernel
	active time.Time // when counts last changed
	now    time.Time // of the last refresh
}

// InUse implements attribution.Member.
func (o *owner) InUse() bool { return o.now.Sub(o.active) < quiet }

// read reads the counts of the kernel side.
func (o *owner) read(now time.Time) {
	o.now = now
	if n := counts(o.use.Count); n != o.Counts || o.active.IsZero() {
		o.Counts, o.active = n, now
	}
}

// owners keeps the user side of all groups in step with the kernel side.
type owners struct {
	*attribution.Groups[*owner, counts]
	kernel *kernelSide
}

func newOwners(k *kernelSide, limit int, complete func(*workload.Identity) bool) *owners {
	o := &owners{kernel: k}
	o.Groups = attribution.New(k.groups, limit, attribution.Hooks[*owner, counts]{
		Adopt:    func(g attribution.Group[counts], _ *attribution.Record) *owner { return o.owner(g) },
		Complete: complete,
		Clear:    func(w *owner) error { *w.use = groupUse{}; return nil },
	})
	o.Put(o.owner(attribution.Group[counts]{Number: groupOther, Identity: workload.Folded, Workload: o.Registry.Other()}))
	return o
}

func (o *owners) owner(g attribution.Group[counts]) *owner {
	return &owner{Counted: attribution.Counted[counts, *counts]{Group: g}, use: &o.kernel.uses[g.Number]}
}

// refresh updates the user side: new groups, their counts, and groups that are no longer used.
func (o *owners) refresh(now time.Time) error {
	o.Adopt(now)
	for w := range o.All() {
		w.read(now)
	}
	o.Promote(now)
	return o.Retire(now)
}
