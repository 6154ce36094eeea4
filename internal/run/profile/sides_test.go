// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"testing"
	"time"
)

// Each side adds up to the whole exactly, also with thirds, and a function of both sides is one sample with both shares.
func TestJoinKeepsTheWholeOfEachSide(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := one(t, at, map[string]int64{"x": 1, "y": 1, "z": 1})
	a.Notes = []string{"lost"}
	p, err := Join(a, one(t, at, map[string]int64{"y": 3, "w": 1}))
	if err != nil {
		t.Fatal(err)
	}
	var sums [3]int64
	shares := map[string][2]int64{}
	for _, s := range p.Samples {
		for i, v := range s.Values {
			sums[i] += v
		}
		shares[p.Frames[s.Stack[0]].Function] = [2]int64{s.Values[BeforeValue], s.Values[AfterValue]}
	}
	if want := [3]int64{1e9, 1e9, 2e9}; sums != want || p.Total() != 2e9 || len(p.Samples) != 4 {
		t.Errorf("%v of %d samples, want %v of 4", sums, len(p.Samples), want)
	}
	if y := shares["y"]; y[0]/10 != 33333333 || y[1] != 750_000_000 || shares["w"] != [2]int64{0, 250_000_000} {
		t.Errorf("shares of y and w: %v", shares)
	}
	if len(p.Notes) != 1 || p.Notes[0] != "A: lost" {
		t.Errorf("notes %q", p.Notes)
	}
	if _, err := Join(a, one(t, at, nil)); err == nil {
		t.Error("a side without samples is joined")
	}
}
