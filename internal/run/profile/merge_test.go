// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"strconv"
	"strings"
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

// Samples that share labels are merged without looking at all labels again. The builder asks for its end for each MiB.
func TestMergeResolvesLabelsOnce(t *testing.T) {
	values := []ValueType{{Type: "samples", Unit: "count"}}
	var labels []Label
	for i := range 100 {
		labels = append(labels, Label{Key: strconv.Itoa(i), Value: strings.Repeat("x", 4000)})
	}
	from := NewBuilder("pprof", values, DefaultLimits())
	set, err := from.LabelSet(labels)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(1000) {
		if err := from.AddSet(i+1, nil, set, 1); err != nil {
			t.Fatal(err)
		}
	}
	limits, asked := DefaultLimits(), 0
	limits.Ended = func() error { asked++; return nil }
	to := NewBuilder("pprof", values, limits)
	to.Times = true
	if err := to.Merge(from.Profile(), func(*Sample) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if p := to.Profile(); len(p.Samples) != 1000 || len(p.LabelSets[p.Samples[999].Labels]) != 100 || asked > 1 {
		t.Errorf("%d samples, %d MiB are looked up", len(p.Samples), asked)
	}
}
