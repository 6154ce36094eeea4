// SPDX-License-Identifier: Apache-2.0

package write

import (
	"reflect"
	"testing"

	"github.com/teescope/teescope/internal/run/profile"
)

// stacks makes a profile of stacks, outermost first, and their values.
func stacks(t *testing.T, all []struct {
	path []string
	n    int64
}) *profile.Profile {
	t.Helper()
	b := profile.NewBuilder("folded", []profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, profile.DefaultLimits())
	for _, one := range all {
		var stack []uint32
		for i := len(one.path) - 1; i >= 0; i-- {
			f, err := b.Frame(profile.Frame{Function: one.path[i], Library: "/bin/app"})
			if err != nil {
				t.Fatal(err)
			}
			stack = append(stack, f)
		}
		if err := b.Add(stack, nil, one.n); err != nil {
			t.Fatal(err)
		}
	}
	return b.Profile()
}

type stackOf = []struct {
	path []string
	n    int64
}

func TestTreeHasEachFrameOnce(t *testing.T) {
	p := stacks(t, stackOf{{[]string{"main"}, 10}, {[]string{"main", "read"}, 30}, {[]string{"main", "parse", "read"}, 5}, {[]string{"idle"}, 1}})
	got := NewTree(p, "title")
	var names []string
	for _, f := range got.Frames {
		names = append(names, got.Table[f].Name)
	}
	if want := []string{"idle", "main", "parse", "read", "read"}; !reflect.DeepEqual(names, want) || len(got.Table) != 4 {
		t.Errorf("frames %v of %v", names, got.Table)
	}
	if !reflect.DeepEqual(got.Depths, []int{0, 0, 1, 2, 1}) || !reflect.DeepEqual(got.Totals, []int64{1, 45, 5, 5, 30}) || !reflect.DeepEqual(got.Selfs, []int64{1, 10, 0, 5, 30}) || got.Total != 46 {
		t.Errorf("%+v", got)
	}
}

func TestDifferenceTreeHasBothShares(t *testing.T) {
	before := stacks(t, stackOf{{[]string{"main", "read"}, 50}, {[]string{"main", "write"}, 50}})
	after := stacks(t, stackOf{{[]string{"main", "read"}, 10}, {[]string{"main", "parse"}, 30}})
	got, err := DifferenceTree(before, after, "title")
	if err != nil {
		t.Fatal(err)
	}
	shares := map[string][2]int64{}
	for i, f := range got.Frames {
		shares[got.Table[f].Name] = [2]int64{got.Before[i], got.After[i]}
	}
	want := map[string][2]int64{"main": {1e9, 1e9}, "read": {5e8, 25e7}, "write": {5e8, 0}, "parse": {0, 75e7}}
	if !reflect.DeepEqual(shares, want) {
		t.Errorf("%v, want %v", shares, want)
	}
}
