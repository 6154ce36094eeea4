// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/teescope/teescope/internal/agent/workload"
)

// count is one counter.
type count uint64

func (c *count) Add(from *count)      { *c += *from }
func (c *count) Subtract(from *count) { *c -= *from }

// counter is a member with one counter.
type counter struct {
	Counted[count, *count]
	alive bool
}

func (c *counter) InUse() bool { return c.alive }

// keys is the map of keys.
type keys map[Key]uint32

func (k keys) Update(key, number any, _ Flags) error {
	if _, ok := k[key.(Key)]; ok {
		return ebpf.ErrKeyExist
	}
	k[key.(Key)] = number.(uint32)
	return nil
}

func (k keys) Delete(key any) error {
	if _, ok := k[key.(Key)]; !ok {
		return ebpf.ErrKeyNotExist
	}
	delete(k, key.(Key))
	return nil
}

// numbers is the map of free numbers.
type numbers []uint32

func (q *numbers) Update(_, number any, _ Flags) error {
	*q = append(*q, number.(uint32))
	return nil
}

func (q *numbers) LookupAndDelete(_, number any) error {
	if len(*q) == 0 {
		return ebpf.ErrKeyNotExist
	}
	*number.(*uint32), *q = (*q)[0], (*q)[1:]
	return nil
}

// fake is a kernel side in memory, with its groups.
type fake struct {
	*Groups[*counter, count]
	keys    keys
	free    *numbers
	records []Record
	steps   []string
}

func newFake(limit int) *fake {
	f := &fake{keys: keys{}, free: &numbers{3, 4, 5}, records: make([]Record, 6)}
	f.Groups = New(&Kernel{First: 1, Records: f.records, Keys: f.keys, Free: f.free}, limit, Hooks[*counter, count]{
		Adopt: func(g Group[count], _ *Record) *counter {
			return &counter{Counted: Counted[count, *count]{Group: g}, alive: true}
		},
		Withdraw: func(r *Record) { f.steps = append(f.steps, "withdraw "+r.Program()) },
		Promote:  func(c *counter) { f.steps = append(f.steps, "promote "+c.Identity.Name) },
		Retire:   func(c *counter) { f.steps = append(f.steps, "retire "+c.Identity.Name) },
		Clear:    func(c *counter) error { f.steps = append(f.steps, "clear "+c.Identity.Name); return nil },
	})
	f.Put(&counter{Counted: Counted[count, *count]{Group: Group[count]{Identity: workload.Folded, Workload: f.Registry.Other()}}})
	return f
}

// make creates a group as the kernel side does for a new program.
func (f *fake) make(number uint32, program string) {
	r := Record{Cgroup: uint64(100 + number), Ready: 1, TGID: 7}
	copy(r.Comm[:], program)
	f.records[number] = r
	f.keys[r.Key()] = number
}

func (f *fake) retireAt(t *testing.T, now time.Time) {
	t.Helper()
	if err := f.Retire(now); err != nil {
		t.Fatal(err)
	}
}

func (f *fake) member(t *testing.T, number uint32) *counter {
	t.Helper()
	c := f.Get(number)
	if c == nil {
		t.Fatalf("group %d is not known", number)
	}
	return c
}

func TestAGroupLivesUntilNothingCountsIntoIt(t *testing.T) {
	f, now := newFake(8), time.Unix(1000, 0)
	f.make(1, "worker")
	f.records[2].Cgroup = 9 // it is being created
	f.Adopt(now)
	c := f.member(t, 1)
	if f.Get(2) != nil || c.Workload.Name != "worker" || c.TGID != 7 {
		t.Fatalf("adopted %+v; the incomplete one: %v", c.Group, f.Get(2))
	}
	c.Counts = 5
	c.Workload.Data = 2 // of a group that has ended
	if got := *f.Totals()[c.Workload]; got != 7 || c.Workload.Data != 2 {
		t.Errorf("the total is %d, and %d of ended groups; want 7 and 2", got, c.Workload.Data)
	}
	c.Workload.Data = 0
	f.retireAt(t, now)
	if len(f.keys) != 1 {
		t.Fatal("the key of a group in use was withdrawn")
	}
	c.alive = false
	f.retireAt(t, now)
	if len(f.keys) != 0 {
		t.Fatal("the key of an empty group was not withdrawn")
	}
	c.Counts++ // late
	f.retireAt(t, now.Add(IdleBeforeFree))
	f.retireAt(t, now.Add(IdleBeforeFree+time.Second))
	if f.Get(1) == nil {
		t.Fatal("a group ended just after an event was counted into it")
	}
	f.retireAt(t, now.Add(2*IdleBeforeFree))
	if f.Get(1) != nil || f.records[1].Ready != 0 || !slices.Contains(*f.free, 1) {
		t.Fatalf("its number was not freed: %v", *f.free)
	}
	if c.Workload.Data != 6 {
		t.Errorf("its workload keeps %d, want 6", c.Workload.Data)
	}
	if want := []string{"withdraw worker", "retire worker", "clear worker"}; !slices.Equal(f.steps, want) {
		t.Errorf("the steps were %q, want %q", f.steps, want)
	}
	if f.Get(0) == nil {
		t.Error("the object's own group has ended")
	}
}

func TestAGroupThatIsJoinedWhileItIsWithdrawnGoesOn(t *testing.T) {
	f, now := newFake(8), time.Unix(1000, 0)
	f.make(1, "worker")
	f.Adopt(now)
	c := f.member(t, 1)
	c.alive = false
	f.retireAt(t, now)
	c.alive = true
	f.retireAt(t, now.Add(time.Hour))
	if f.keys[f.records[1].Key()] != 1 {
		t.Error("its key was not published again")
	}
	c.alive = false
	f.retireAt(t, now.Add(2*time.Hour))
	if f.Get(1) == nil {
		t.Error("the group ended as soon as it was empty")
	}
	// A newer group has the key when a process joins the older one again.
	f.keys[f.records[1].Key()] = 2
	c.alive = true
	f.retireAt(t, now.Add(3*time.Hour))
	if f.keys[f.records[1].Key()] != 2 {
		t.Error("the older group took the key of a newer one")
	}
}

func TestPromotionMovesNoCounts(t *testing.T) {
	f, now := newFake(1), time.Unix(1000, 0)
	f.make(1, "first")
	f.Adopt(now)
	f.make(2, "second")
	f.Adopt(now)
	first, second := f.member(t, 1), f.member(t, 2)
	first.alive, second.Counts = false, 20
	f.Promote(now)
	if second.Workload != f.Registry.Other() {
		t.Fatal("want one named workload")
	}
	f.retireAt(t, now)
	f.retireAt(t, now.Add(IdleBeforeFree))
	f.Promote(now.Add(time.Hour))
	second.Counts = 25
	if second.Workload.Name != "second" || second.Workload.Data+second.Counts != 5 || f.Registry.Other().Data != 20 {
		t.Errorf("%q keeps %d, the folded rest %d; want 5 more than was counted, and 20",
			second.Workload.Name, int64(second.Workload.Data), f.Registry.Other().Data)
	}
}

func TestAPartOfAGroupHasNoKey(t *testing.T) {
	f, now := newFake(8), time.Unix(1000, 0)
	f.make(1, "worker")
	f.Adopt(now)
	part, ok := f.Split(f.member(t, 1), 42)
	if !ok || part.Number != 3 || f.records[3].TGID != 42 || f.records[3].Cgroup != f.records[1].Cgroup {
		t.Fatalf("split off %+v, %v", part, ok)
	}
	c := &counter{Counted: Counted[count, *count]{Group: part, Counts: 3}}
	f.Put(c)
	f.retireAt(t, now)
	f.retireAt(t, now.Add(IdleBeforeFree))
	if f.Get(3) != nil || len(f.keys) != 1 || c.Workload.Data != 3 || !slices.Contains(*f.free, 3) {
		t.Errorf("keys %v, ended %d, free %v", f.keys, c.Workload.Data, *f.free)
	}
	*f.free = nil
	if _, ok := f.Split(f.member(t, 1), 43); ok {
		t.Error("no number was free")
	}
}

// Without a kernel side, user space creates and ends the groups.
func TestGroupsOfUserSpace(t *testing.T) {
	now := time.Unix(1000, 0)
	g := New[*counter, count](nil, 1, Hooks[*counter, count]{})
	for pid, name := range []string{"first", "second"} {
		g.Put(&counter{Counted: Counted[count, *count]{Group: g.Join(uint32(pid), workload.Identity{Name: name, Kind: workload.Program}, now), Counts: 10}})
	}
	g.Adopt(now)
	first, second := g.Get(0), g.Get(1)
	g.Put(&counter{Counted: Counted[count, *count]{Group: g.Join(2, workload.Identity{Name: "kernel", Kind: workload.Kernel}, now.Add(time.Hour))}})
	if began := g.Get(2).Workload.Began; !began.Equal(now) {
		t.Errorf("a group counts from %v, want the last look at %v", began, now)
	}
	g.Leave(g.Get(2), now)
	g.Leave(first, now)
	g.Promote(now.Add(time.Hour))
	if second.Workload.Name != "second" || g.Registry.Other().Data != 10 || first.Workload.Data != 10 {
		t.Errorf("%+v, the folded rest keeps %d", second.Group, g.Registry.Other().Data)
	}
	if n := g.Len(); n != 1 {
		t.Errorf("%d members, want 1", n)
	}
}

func TestNamesOfARecord(t *testing.T) {
	r := Record{Depth: 200}
	copy(r.Comm[:], "0123456789abcdef") // no NUL
	copy(r.Path[0][:], "leaf")
	if got := r.Cgroups(); len(got) != pathLevels || got[0] != "leaf" || r.Program() != "0123456789abcdef" {
		t.Errorf("%q, %q", got, r.Program())
	}
}
