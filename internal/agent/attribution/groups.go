// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"errors"
	"iter"
	"maps"
	"time"

	"github.com/teescope/teescope/internal/agent/workload"
)

// IdleBeforeFree is the time without counts after which a group's number is freed.
const IdleBeforeFree = 2 * time.Second

// Group is the user side of a group. K is the type of the counts that a workload keeps of ended groups.
type Group[K any] struct {
	Number   uint32
	Identity workload.Identity
	Workload *workload.Workload[K]
	TGID     uint32 // the process that it was created for

	keyless   bool      // it has no key in the kernel
	idleSince time.Time // time since which it is empty; zero while it is in use
	withdrawn bool      // its key was removed, so that no process joins
}

func (g *Group[K]) group() *Group[K] { return g }

// InUse implements [Member] for members that their user ends by [Groups.Leave].
func (*Group[K]) InUse() bool { return true }

// Moved implements [Member] for members without counters of their own.
func (*Group[K]) Moved() bool { return false }

// AddTo implements [Member] for members without counters of their own.
func (*Group[K]) AddTo(*K) {}

// SubtractFrom implements [Member] for members without counters of their own.
func (*Group[K]) SubtractFrom(*K) {}

// Member is a user's record of a group, such as its counters. It embeds [Group], which implements the methods for
// members without counters of their own.
type Member[K any] interface {
	group() *Group[K]
	// InUse reports whether something in the group is alive and may count: a process, an enclave.
	InUse() bool
	// Moved reports whether something was counted since the last call.
	Moved() bool
	// AddTo adds the counts of the group to the counts that a workload keeps.
	AddTo(ended *K)
	// SubtractFrom subtracts them. The result may be below zero, modulo 2^64. Later counts make it positive again.
	SubtractFrom(ended *K)
}

// Hooks are called at the steps of a group's life. All except Adopt may be nil.
type Hooks[M any, K any] struct {
	// Adopt returns the member for a group that the kernel side has created. The group's Workload is set.
	Adopt func(Group[K], *Record) M
	// Complete completes the identity of a new group, and returns false if it will be complete later. The group's counts wait
	// for that in the kernel.
	Complete func(*workload.Identity) bool
	// Withdraw is called after a group's key was removed.
	Withdraw func(*Record)
	// Promote is called before a member moves to a workload of its own.
	Promote func(M)
	// Retire is called before the counts of a member are added to its workload and the member ends.
	Retire func(M)
	// Clear sets all counters of the kernel side at the member's number to zero.
	Clear func(M) error
}

// Groups synchronises all groups of one object with the kernel side. It is not safe for concurrent use.
type Groups[M Member[K], K any] struct {
	Registry *workload.Registry[K]

	kernel *Kernel
	hooks  Hooks[M, K]
	active map[uint32]M
	users  map[uint32]uint32 // as last written to the kernel side
	looked time.Time         // see Looked
}

// New returns groups for at most limit workloads. kernel is nil if user space creates all groups by [Groups.Join].
func New[M Member[K], K any](kernel *Kernel, limit int, hooks Hooks[M, K]) *Groups[M, K] {
	if kernel == nil {
		kernel = &Kernel{}
	}
	return &Groups[M, K]{Registry: workload.NewRegistry[K](limit), kernel: kernel, hooks: hooks, active: map[uint32]M{}, looked: time.Now()}
}

// Get returns the member with a number, or the zero value.
func (g *Groups[M, K]) Get(number uint32) M { return g.active[number] }

// Len returns the number of members.
func (g *Groups[M, K]) Len() int { return len(g.active) }

// All returns the members in no order. The loop may end the current member.
func (g *Groups[M, K]) All() iter.Seq[M] { return maps.Values(g.active) }

// Totals returns the counts of each workload: the counts of its members and of ended members. K must be a value without
// pointers, because the totals start as copies.
func (g *Groups[M, K]) Totals() map[*workload.Workload[K]]*K {
	all := map[*workload.Workload[K]]*K{}
	g.Registry.Each(func(w *workload.Workload[K]) {
		sum := w.Data
		all[w] = &sum
	})
	for m := range g.All() {
		m.AddTo(all[m.group().Workload])
	}
	return all
}

// Put adds a member whose Workload is set: a group of the object itself, or one from Split or Join.
func (g *Groups[M, K]) Put(m M) { g.active[m.group().Number] = m }

// Join returns a group that does not exist in the kernel side, such as a process. The caller chooses a unique number, and
// adds the member by Put.
func (g *Groups[M, K]) Join(number uint32, id workload.Identity, now time.Time) Group[K] {
	return Group[K]{Number: number, Identity: id, Workload: g.Registry.Join(id, g.looked, now), TGID: number, keyless: true}
}

// Adopt names the groups that the kernel side has created since the last call.
func (g *Groups[M, K]) Adopt(now time.Time) {
	waits := false
	for number := g.kernel.First; int(number) < len(g.kernel.Records); number++ {
		r := &g.kernel.Records[number]
		if _, known := g.active[number]; known || r.Ready == 0 {
			continue
		}
		id := r.identity()
		if g.hooks.Complete != nil && !g.hooks.Complete(&id) {
			waits = true
			continue
		}
		g.Put(g.hooks.Adopt(Group[K]{Number: number, Identity: id, Workload: g.Registry.Join(id, g.looked, now), TGID: r.TGID}, r))
	}
	if !waits {
		g.Looked(now) // otherwise a group that is adopted later may have counted already
	}
}

// Split takes a free number for a part of a member's group. The part belongs to the same workload and has no key. Split
// returns false if no number is free.
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

// Looked states when the user last looked for groups. A group that is found later had counted nothing by then. Adopt calls
// it. Before the first call, this is the time of New.
func (g *Groups[M, K]) Looked(now time.Time) { g.looked = now }

// own reports whether a group belongs to the object itself.
func (g *Groups[M, K]) own(m M) bool { return m.group().Number < g.kernel.First }

// Promote moves folded groups to their own workloads as far as names are free. Earlier counts stay in the folded
// workload, so that no counter jumps.
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
		m.AddTo(&other.Data)
		m.SubtractFrom(&to.Data)
		group.Workload = to
	}
}

// Retire frees the numbers of unused groups. When a group is empty, Retire withdraws its key, so that no process can
// join. When nothing was counted for IdleBeforeFree after that, it frees the number. If a process joins in between, the
// group continues as before.
func (g *Groups[M, K]) Retire(now time.Time) error {
	var errs []error
	for m := range g.All() {
		if !g.own(m) {
			errs = append(errs, g.retire(m, now))
		}
	}
	users, err := g.kernel.countUsers(g.users)
	g.users = users
	return errors.Join(append(errs, err)...)
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
	if now.Sub(group.idleSince) < IdleBeforeFree {
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

// Leave ends a member. Its counts stay with its workload. Leave does not free the number of a kernel group: Retire
// does.
func (g *Groups[M, K]) Leave(m M, now time.Time) {
	group := m.group()
	if g.hooks.Retire != nil {
		g.hooks.Retire(m)
	}
	m.AddTo(&group.Workload.Data)
	g.Registry.Leave(group.Workload, now)
	delete(g.active, group.Number)
}
