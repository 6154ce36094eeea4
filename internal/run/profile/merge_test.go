// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"testing"
	"time"
)

// one returns a profile with a frame of each name, of as many nanoseconds.
func one(t *testing.T, began time.Time, functions map[string]int64) *Profile {
	t.Helper()
	b := NewBuilder("test", []ValueType{{"cpu", "nanoseconds"}}, DefaultLimits())
	for name, n := range functions {
		f, err := b.Frame(Frame{Function: name})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Add([]uint32{f}, []Label{{Workload, name}}, n); err != nil {
			t.Fatal(err)
		}
	}
	p := b.Profile()
	p.Began, p.Lasted = began, time.Minute
	return p
}

// Frames have other numbers in each profile. What is added has the sum of the samples that are kept, and covers all times. Names
// of other samples take no room.
func TestMergeAddsSamples(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := NewBuilder("test", []ValueType{{"cpu", "nanoseconds"}}, DefaultLimits())
	for _, p := range []*Profile{one(t, at.Add(time.Minute), map[string]int64{"a": 1, "b": 2}), one(t, at, map[string]int64{"c": 4, "b": 8, "a": 16})} {
		if err := b.Merge(p, func(s *Sample) bool { return p.Label(s, Workload) != "c" }); err != nil {
			t.Fatal(err)
		}
	}
	all := b.Profile()
	got := map[string]int64{}
	for _, s := range all.Samples {
		got[all.Frames[s.Stack[0]].Function] += s.Values[0]
	}
	if len(all.Samples) != 2 || len(all.Frames) != 2 || got["a"] != 17 || got["b"] != 10 || !all.Began.Equal(at) || all.Lasted != 2*time.Minute {
		t.Errorf("%v of %d samples, %s for %s", got, len(all.Samples), all.Began, all.Lasted)
	}
	other := NewBuilder("test", []ValueType{{"cycles", "count"}}, DefaultLimits())
	if err := other.Merge(all, func(*Sample) bool { return true }); !errors.Is(err, ErrValues) {
		t.Errorf("other values are added: %v", err)
	}
}
