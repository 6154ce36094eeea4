// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"testing"
)

func TestDrainPassesEachEntryOnce(t *testing.T) {
	open(t, 1) // skips without the privilege
	o, err := Open(kit)
	if err != nil {
		t.Fatal(err)
	}
	const entries = 5 * batch
	defer o.Close()
	if err := errors.Join(o.Resize("counts", 1), o.Resize("table", entries), o.CreateMaps()); err != nil {
		t.Fatal(err)
	}
	d, err := NewDrain[uint32, uint64](o, "table")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint32{0, 1, entries, 3} {
		for i := range n {
			if err := o.Map("table").Put(i, uint64(i)*7); err != nil {
				t.Fatal(err)
			}
		}
		seen := map[uint32]bool{}
		err := d.All(func(key *uint32, value *uint64) {
			if seen[*key] || *value != uint64(*key)*7 {
				t.Errorf("%d has the value %d, seen before: %v", *key, *value, seen[*key])
			}
			seen[*key] = true
		})
		if err != nil || len(seen) != int(n) {
			t.Errorf("%d of %d entries: %v", len(seen), n, err)
		}
	}
	if _, err := NewDrain[uint32, uint64](o, "nothing"); err == nil {
		t.Error("a map that does not exist is emptied")
	}
}
