// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"errors"
	"iter"
	"maps"
	"time"

	"github.com/teescope/teescope/internal/agent/workload"
)

// RestBeforeFree is how long nothing must have counted into a group before its number is handed back.
const RestBeforeFree = 2 * time.Second

// Group is the user side of a group. K is what a workload keeps of groups that ended.
type Group[K any] struct {
	Number   uint32
	Identity workload.Identity
	Workload *workload.Workload[K]
	TGID     uint32 // the process that it was made for

	keyless   bool      // no key leads to it
	idleSince time.Time // nothing is in it; zero while something is
	withdrawn bool      // its key was taken away: nothing new joins
}

func (g *Group[K]) group() *Group[K] { return g }

// InUse is that of a member which its user ends by [Groups.Leave].
func (*Group[K]) InUse() bool { return true }

// Moved is that of such a member.
func (*Group[K]) Moved() bool { return false }

// AddTo is that of a member whose user counts straight into its workload: it adds nothing.
func (*Group[K]) AddTo(*K) {}

// SubtractFrom is that of such a member.
func (*Group[K]) SubtractFrom(*K) {}

// Member is what a user keeps of a group, such as its counters. It embeds [Group], whose methods are those of a member
// without counters of its own.
type Member[K any] interface {
	group() *Group[K]
	// InUse tells whether something in the group still lives and may count: a process, an enclave.
	InUse() bool
	// Moved tells whether something was counted since the last call.
	Moved() bool
	// AddTo adds what the group has counted to what a workload keeps.
	AddTo(kept *K)
	// SubtractFrom takes it off. Less than zero, modulo 2^64, is fine: what is counted later brings it back.
	SubtractFrom(kept *K)
}

// Hooks are what a user does at the steps of a group's life. All but Adopt may be nil.
type Hooks[M any, K any] struct {
	// Adopt makes the member for a group that the kernel side has made. Its Workload is set.
	Adopt func(Group[K], *Record) M
	// Withdraw is told that a group's key was taken away.
	Withdraw func(*Record)
	// Promote is told that a member is about to move to a workload of its own.
	Promote func(M)
	// Retire is told that a member is about to be added to its workload for good.
	Retire func(M)
	// Clear makes everything zero that the kernel side keeps by the member's number.
	Clear func(M) error
}

// Groups keeps all groups of one object in step with the kernel side. It is not safe for concurrent use.
type Groups[M Member[K], K any] struct {
	Registry *workload.Registry[K]

	kernel *Kernel
	hooks  Hooks[M, K]
	active map[uint32]M
}

// New makes groups for at most limit workloads. The kernel side is nil where user space makes all groups, by [Groups.Join].
func New[M Member[K], K any](kernel *Kernel, limit int, hooks Hooks[M, K]) *Groups[M, K] {
	if kernel == nil {
		kernel = &Kernel{}
	}
	return &Groups[M, K]{Registry: workload.NewRegistry[K](limit), kernel: kernel, hooks: hooks, active: map[uint32]M{}}
}

// Get returns the member of a number, the zero value where there is none.
func (g *Groups[M, K]) Get(number uint32) M { return g.active[number] }

// Len is the number of members.
func (g *Groups[M, K]) Len() int { return len(g.active) }

// All are the members, in no order. The loop may end the one that it is at.
func (g *Groups[M, K]) All() iter.Seq[M] { return maps.Values(g.active) }

// Put adds a member whose Workload is set: one of the object's own groups, or one made by Split.
func (g *Groups[M, K]) Put(m M) { g.active[m.group().Number] = m }

// Join makes a group that the kernel side knows nothing of, such as a process. The caller chooses its number, which no
// other group has, and adds its member by Put.
func (g *Groups[M, K]) Join(number uint32, id workload.Identity, now time.Time) Group[K] {
	return Group[K]{Number: number, Identity: id, Workload: g.Registry.Join(id, now), TGID: number, keyless: true}
}

// Adopt names the groups that the kernel side has made since the last call.
func (g *Groups[M, K]) Adopt(now time.Time) {
	for number := g.kernel.First; int(number) < len(g.kernel.Records); number++ {
		r := &g.kernel.Records[number]
		if _, known := g.active[number]; known || r.Ready == 0 {
			continue
		}
		id := workload.Identify(r.Cgroups(), r.Program())
		g.Put(g.hooks.Adopt(Group[K]{Number: number, Identity: id, Workload: g.Registry.Join(id, now), TGID: r.TGID}, r))
	}
}

// Split takes a free number for a part of a member's group: it belongs to the same workload, and no key leads to it.
// False says that no number is free.
func (g *Groups[M, K]) Split(from M, tgid uint32) (Group[K], bool) {
	var number uint32
	if g.kernel.Free.LookupAndDelete(nil, &number) != nil {
		return Group[K]{}, false
	}
	whole := from.group()
	r := &g.kernel.Records[number]
	*r = g.kernel.Records[whole.Number]
	r.TGID, r.Ready = tgid, 1
	g.Registry.Add(whole.Workload)
	return Group[K]{Number: number, Identity: whole.Identity, Workload: whole.Workload, TGID: tgid, keyless: true}, true
}

// own tells whether a group is one of the object's own.
func (g *Groups[M, K]) own(m M) bool { return m.group().Number < g.kernel.First }

// Promote gives groups that were folded the workload that there is room for by now. What they have counted so far stays
// where it was counted, so that no counter jumps.
func (g *Groups[M, K]) Promote(now time.Time) {
	other := g.Registry.Other()
	for m := range g.All() {
		group := m.group()
		if group.Workload != other || g.own(m) {
			continue
		}
		to := g.Registry.Promote(group.Identity, now)
		if to == nil {
			continue
		}
		if g.hooks.Promote != nil {
			g.hooks.Promote(m)
		}
		m.AddTo(&other.Kept)
		m.SubtractFrom(&to.Kept)
		group.Workload = to
	}
}

// Retire hands back the numbers of the groups that nothing can count into any more: nothing is in them, their key is
// withdrawn so that nothing can join, and then nothing was counted for a while. A group that was joined in between goes
// on as before.
func (g *Groups[M, K]) Retire(now time.Time) error {
	var errs []error
	for m := range g.All() {
		if !g.own(m) {
			errs = append(errs, g.retire(m, now))
		}
	}
	return errors.Join(errs...)
}

func (g *Groups[M, K]) retire(m M, now time.Time) error {
	group := m.group()
	if m.InUse() {
		group.idleSince = time.Time{}
		if !group.withdrawn {
			return nil
		}
		group.withdrawn = false
		if group.keyless {
			return nil
		}
		return g.kernel.publish(group.Number)
	}
	if m.Moved() || group.idleSince.IsZero() {
		group.idleSince = now
		if group.withdrawn {
			return nil
		}
		group.withdrawn = true
		return g.withdraw(group)
	}
	if now.Sub(group.idleSince) < RestBeforeFree {
		return nil
	}
	g.Leave(m, now)
	g.kernel.Records[group.Number] = Record{}
	if g.hooks.Clear != nil {
		if err := g.hooks.Clear(m); err != nil {
			return err
		}
	}
	return g.kernel.free(group.Number)
}

func (g *Groups[M, K]) withdraw(group *Group[K]) error {
	if group.keyless {
		return nil
	}
	if err := g.kernel.withdraw(group.Number); err != nil {
		return err
	}
	if g.hooks.Withdraw != nil {
		g.hooks.Withdraw(&g.kernel.Records[group.Number])
	}
	return nil
}

// Leave ends a member: its counts stay with its workload. The number of a kernel group stays taken; Retire hands it back.
func (g *Groups[M, K]) Leave(m M, now time.Time) {
	group := m.group()
	if g.hooks.Retire != nil {
		g.hooks.Retire(m)
	}
	m.AddTo(&group.Workload.Kept)
	g.Registry.Leave(group.Workload, now)
	delete(g.active, group.Number)
}
