// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/attribution"
)

func refreshed(t *testing.T, o *owners, now time.Time) {
	t.Helper()
	if err := o.refresh(now); err != nil {
		t.Fatal(err)
	}
}

// The counts of ended enclaves stay with their workload, and the group becomes free.
func TestAGroupWithoutEnclavesIsGivenBackAndItsCountsStay(t *testing.T) {
	k, now := newFake(3), time.Unix(1000, 0)
	k.group(1, "worker", "", 0, counts{nAdded: 5})
	k.group(2, "other-one", "", 1, counts{})
	k.pairs[evictionKey{Victim: 1, By: 2}] = 7
	b := k.backend(8)
	o := b.watch.owners
	refreshed(t, o, now)
	if len(k.withdrawn.withdrawn) != 1 || !bytes.HasPrefix(k.withdrawn.withdrawn[0].Comm[:], []byte("worker\x00")) {
		t.Fatalf("withdrawn are %v, want the group without enclaves", k.withdrawn.withdrawn)
	}
	k.uses[1].Count[nAdded]++ // a late count
	refreshed(t, o, now.Add(attribution.IdleBeforeFree))
	if len(k.freed) != 0 {
		t.Fatal("a group is freed although its counts just grew")
	}
	refreshed(t, o, now.Add(3*attribution.IdleBeforeFree))
	if len(k.freed) != 1 || k.freed[0] != 1 || k.groups.Records[1].Ready != 0 || len(k.pairs) != 0 {
		t.Fatalf("freed %v, group %+v, pairs %v", k.freed, k.groups.Records[1].Ready, k.pairs)
	}
	k.group(1, "newcomer", "", 1, counts{nAdded: 100})
	k.pairs[evictionKey{Victim: 1, By: 2}] = 2
	got := told(t, b)
	for _, want := range []string{
		`sgx_workload_pages_added_total{container="",namespace="",pod="",workload="worker"} 6`,
		`sgx_workload_pages_added_total{container="",namespace="",pod="",workload="newcomer"} 100`,
		`sgx_workload_pages_evicted_by_total{by="other-one",container="",namespace="",pod="",workload="worker"} 7`,
		`sgx_workload_pages_evicted_by_total{by="other-one",container="",namespace="",pod="",workload="newcomer"} 2`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the exposition lacks %s", want)
		}
	}
}

// An enclave that joins a group while the group is being withdrawn keeps it.
func TestAGroupThatIsJoinedWhileItIsWithdrawnIsKept(t *testing.T) {
	k, now := newFake(2), time.Unix(1000, 0)
	k.group(1, "worker", "", 0, counts{})
	o := k.backend(8).watch.owners
	refreshed(t, o, now)
	k.uses[1].Enclaves = 1
	refreshed(t, o, now.Add(time.Hour))
	k.uses[1].Enclaves = 0
	refreshed(t, o, now.Add(2*time.Hour))
	if len(k.freed) != 0 {
		t.Error("the group was freed immediately when its enclave ended")
	}
	refreshed(t, o, now.Add(3*time.Hour))
	if len(k.freed) != 1 {
		t.Error("the group was never freed")
	}
}

// Workloads beyond the limit are folded without losing counts. No counter decreases when a folded workload gets
// its own name.
func TestWorkloadsAreBoundedAndPromotedWithoutAJump(t *testing.T) {
	k, now := newFake(4), time.Unix(1000, 0)
	k.group(1, "first", "", 0, counts{nAdded: 1})
	b := k.backend(1)
	o := b.watch.owners
	refreshed(t, o, now)
	k.group(2, "second", "", 1, counts{nAdded: 20})
	k.pairs[evictionKey{Victim: 2, By: 2}] = 9
	now = now.Add(time.Second)
	refreshed(t, o, now)
	other := func(want uint64, pairs uint64) {
		t.Helper()
		totals := o.Totals()
		if n := totals[o.Registry.Other()][nAdded]; n != want {
			t.Errorf("the folded rest has added %d pages, want %d", n, want)
		}
		var sum uint64
		for _, n := range o.evictions(totals) {
			sum += n
		}
		if sum != pairs {
			t.Errorf("%d evictions in all, want %d", sum, pairs)
		}
	}
	other(20, 9)
	// The first one ends, and its name is free after a while.
	refreshed(t, o, now.Add(3*attribution.IdleBeforeFree))
	now = now.Add(time.Hour)
	k.uses[2].Count[nAdded] = 25
	refreshed(t, o, now)
	if name := o.Get(2).Workload.Name; name != "second" {
		t.Fatalf("the second is %q, want its own name", name)
	}
	other(25, 9)
	k.uses[2].Count[nAdded] = 31
	refreshed(t, o, now)
	other(25, 9)
	if n := o.Totals()[o.Get(2).Workload][nAdded]; n != 6 {
		t.Errorf("the promoted one has added %d pages, want the 6 since", n)
	}
}

func TestWorkingSet(t *testing.T) {
	for _, tt := range []struct {
		record
		want uint64
	}{
		{record{Pages: 10_000, Resident: 1000}, 1000},
		{record{Pages: 10_000, Resident: 1000, Away: 600}, 1600},
		{record{Pages: 100_000, Resident: 1000, Away: 600, Bits: 5}, 20_200}, // each followed page stands for 32
		{record{Pages: 1200, Resident: 1000, Away: 600}, 1200},               // limited by all its pages
	} {
		if got := tt.workingSet(); got != tt.want {
			t.Errorf("%+v: a working set of %d pages, want %d", tt.record, got, tt.want)
		}
	}
}

// A function that was inlined in some of its callers is seen as a difference from the driver's own records.
func TestMissedCallsAreADifference(t *testing.T) {
	k := newFake(4)
	k.moment[0] = moment{FreePages: 1000, Read: 1}
	k.records[1] = record{Address: 1, CreatedNS: 1, Kind: kindEnclave, ID: 1, Read: 1, Flags: recordInitialized, Pages: 500, Resident: 500, SECSResident: 1}
	w := &k.backend(4).watch
	w.start, _ = w.allocated()
	want := func(allocated, evicted float64) {
		t.Helper()
		for _, s := range w.differences(newFamilies(), w.live()) {
			if want := map[string]float64{"allocated": allocated, "evicted": evicted}[s.labels[0]]; s.value != want {
				t.Errorf("%s: a difference of %v pages, want %v", s.labels[0], s.value, want)
			}
		}
	}
	want(0, 0)
	k.moment[0].FreePages -= 30
	k.moment[0].InUse = 70 - 40
	k.records[1].Resident, k.records[1].Count = 490, counts{nEvicted: 12, nLoadedBack: 2}
	want(0, 0)
	k.moment[0].FreePages -= 5 // pages that the hook did not see
	k.records[1].Resident, k.records[1].SECSResident = 480, 0
	want(5, 11)
}

func TestSymbols(t *testing.T) {
	got, err := findSymbols(strings.NewReader(`0000000000000000 A fixed_percpu_data
ffffffff81000010 T sgx_vma_fault
ffffffff82345678 b sgx_nr_free_pages
ffffffff8298ab00 D sgx_vm_ops
ffffffffc0000000 d sgx_vm_ops	[intel_sgx]
garbage
 zz d sgx_encl_fops
`))
	if want := (symbols{freePages: 0xffffffff82345678, vmOps: 0xffffffff8298ab00}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if got, _ := findSymbols(strings.NewReader("ffffffff81000010 t sgx_nr_free_pages\n")); got.freePages != 0 {
		t.Error("the function of that name, before 5.15, is taken for the counter")
	}
}
