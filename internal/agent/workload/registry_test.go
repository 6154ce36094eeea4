// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"testing"
	"time"
)

func named(i int) Identity { return Identity{Name: fmt.Sprint("p", i), Kind: Program} }

func TestRegistryFoldsWhatDoesNotFit(t *testing.T) {
	now := time.Now()
	r := NewRegistry[int](3)
	r.Join(KernelThreads, time.Time{}, now)
	r.Join(IdleThreads, time.Time{}, now)
	for i := range 5 {
		r.Join(named(i), time.Time{}, now).Data += 10
	}
	if r.Len() != 5 || r.Folded() != 2 || r.Other().Data != 20 {
		t.Errorf("%d named, %d folded, %d in other; want 5, 2, 20", r.Len(), r.Folded(), r.Other().Data)
	}
	total := 0
	r.Each(func(w *Workload[int]) { total += w.Data })
	if total != 50 {
		t.Errorf("total %d, want 50", total)
	}
	for name, want := range map[string]bool{"p0": true, "kernel": true, "other": true, "p4": false} {
		if r.Has(name) != want {
			t.Errorf("there is a workload %s: %v, want %v", name, !want, want)
		}
	}
	first := r.Join(named(0), time.Time{}, now)
	if again := r.Join(named(0), time.Time{}, now); again != first {
		t.Error("one identity is two workloads")
	}
}

func TestRegistryGivesTheNameOfTheLongestDeadToTheNext(t *testing.T) {
	now := time.Now()
	r := NewRegistry[int](2)
	old, young := r.Join(named(0), time.Time{}, now), r.Join(named(1), time.Time{}, now)
	r.Leave(old, now)
	r.Leave(young, now.Add(time.Second))
	if w := r.Join(named(2), time.Time{}, now.Add(minIdleName-1)); w != r.Other() {
		t.Fatal("a workload lost its name before its last counts were scraped")
	}
	later := now.Add(minIdleName + time.Minute)
	w := r.Promote(named(2), later)
	if w == nil || w.Name != "p2" {
		t.Fatal("no name is free although a workload has had no processes for a long time")
	}
	if r.Folded() != 0 || r.Len() != 2 {
		t.Errorf("%d folded, %d named; want 0 and 2", r.Folded(), r.Len())
	}
	if r.Join(named(1), time.Time{}, later) != young {
		t.Error("the younger lost its name")
	}
	if r.Promote(named(3), later) != nil {
		t.Error("a workload with processes lost its name")
	}
}

func TestRegistryNeverFoldsTheKernel(t *testing.T) {
	r := NewRegistry[int](1)
	r.Join(named(0), time.Time{}, time.Now())
	for _, id := range []Identity{KernelThreads, IdleThreads} {
		if r.Join(id, time.Time{}, time.Now()) == r.Other() {
			t.Errorf("%s was folded", id.Name)
		}
	}
}

// Workloads of the same name are distinguished by their other labels. Equal labels are one workload.
func TestRegistryTellsLabelsApart(t *testing.T) {
	r := NewRegistry[int](8)
	now := time.Now()
	program := r.Join(Identity{Name: "web", Kind: Program}, time.Time{}, now)
	container := r.Join(Identity{Name: "web", Kind: Container, Container: "web"}, time.Time{}, now)
	if program == container || container.Kind != Container {
		t.Error("a program joined a container of its name")
	}
	if again := r.Join(Identity{Name: "web", Kind: Unit}, time.Time{}, now); again != program {
		t.Error("two workloads would have the same labels")
	}
}

func TestOneUserCannotTakeAllNames(t *testing.T) {
	r, now := NewRegistry[int](8), time.Unix(0, 0)
	program := func(user uint32, i int) bool {
		id := Identity{Name: fmt.Sprint(user, "-", i), Kind: Program, User: user}
		return r.Join(id, time.Time{}, now) != r.Other()
	}
	its := map[uint32]int{}
	for _, user := range []uint32{1000, 1001, 0} {
		for i := range 8 {
			if program(user, i) {
				its[user]++
			}
		}
	}
	if its[1000] != 4 || its[1001] != 2 || its[0] != 2 {
		t.Errorf("of 8 names, the users have %v, want 4, 2 and for root all others", its)
	}
}

// A workload counts from the time at which its first group had counted nothing. A new workload of the same name has its own
// start.
func TestBegan(t *testing.T) {
	r := NewRegistry[int](1)
	began, now := time.Unix(90, 0), time.Unix(100, 0)
	first := r.Join(named(0), began, now)
	if again := r.Join(named(0), now, now); again != first || !first.Began.Equal(began) {
		t.Errorf("began at %v, want %v", first.Began, began)
	}
	if !r.Other().Began.IsZero() {
		t.Error("the folded rest has a start")
	}
	r.Join(named(1), now, now)
	r.Leave(first, now)
	r.Leave(first, now)
	later := now.Add(minIdleName)
	if w := r.Promote(named(1), later); w == nil || !w.Began.Equal(later) {
		t.Errorf("a promoted workload counts from its promotion, not %+v", w)
	}
}
