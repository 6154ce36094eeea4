// SPDX-License-Identifier: Apache-2.0

package estimate

import (
	"math"
	"testing"
)

func TestAmdahl(t *testing.T) {
	for _, c := range []struct{ low, high, wantLow, wantHigh float64 }{
		{0.2, 0.5, 0.25, 1},
		{0, 0.1, 0, 1.0 / 9},
		{-1, 0.5, 0, 1},
		{0.5, 7, 1, 19}, // clipped to MaxShare
		{3, 7, 19, 19},
		{0.6, 0.5, 1, 1}, // reversed: the lower bound must not exceed the upper one
	} {
		g := Amdahl("x", c.low, c.high, "a")
		if math.Abs(g.Low-c.wantLow) > 1e-9 || math.Abs(g.High-c.wantHigh) > 1e-9 {
			t.Errorf("shares %v to %v: gain %v to %v, want %v to %v", c.low, c.high, g.Low, g.High, c.wantLow, c.wantHigh)
		}
	}
	for _, high := range []float64{0, -1, math.NaN()} {
		if g := Amdahl("x", 0, high); g != nil {
			t.Errorf("share %v: gain %+v, want none", high, g)
		}
	}
}

// A saving raises the throughput only where something limits it, and what is sure of it is its lower end.
func TestSavingRaisesALimitedThroughput(t *testing.T) {
	s := Saves(0.2, 0.5, "a")
	if g := s.Gain(1, Claim{}); g != nil {
		t.Errorf("no limit is known: gain %+v, want none", g)
	}
	g := s.Gain(1, Claim{Limit: "one thread"})
	if g == nil || math.Abs(g.Low-0.25) > 1e-9 || math.Abs(g.High-1) > 1e-9 || g.Sure() != g.Low {
		t.Fatalf("gain %+v, want 0.25 to 1, of which the lower end is sure", g)
	}
	// A wait that was measured is sure to its middle: 35 % of the time is 0.54 more.
	if w := Amdahl("memory", 0.2, 0.5, "a"); math.Abs(w.Sure()-0.35/0.65) > 1e-9 {
		t.Errorf("a measured wait of 20 to 50 %%: sure is %v", w.Sure())
	}
}

// Savings of one workload never exceed the cores that it uses. The certain parts stay, and what is uncertain becomes narrower.
func TestSavingsFitIntoTheCores(t *testing.T) {
	for _, c := range []struct {
		cores    float64
		all      [][2]float64
		want     [][2]float64
		narrowed bool
	}{
		{1, [][2]float64{{0.1, 0.4}, {0.2, 0.6}}, [][2]float64{{0.1, 0.4}, {0.2, 0.6}}, false},
		{1, [][2]float64{{0.1, 0.8}, {0.2, 0.9}}, [][2]float64{{0.1, 0.45}, {0.2, 0.55}}, true}, // 0.7 are left for 1.4
		{0.3, [][2]float64{{0.2, 0.2}, {0.4, 1}}, [][2]float64{{0.1, 0.1}, {0.2, 0.2}}, true},   // even the certain parts are too much
		{math.NaN(), [][2]float64{{1, 2}, {3, 4}}, [][2]float64{{1, 2}, {3, 4}}, false},         // the CPU time is not known
	} {
		var savings []*Saving
		for _, s := range c.all {
			savings = append(savings, Saves(s[0], s[1], "a"))
		}
		if got := FitSavings(c.cores, savings); got != c.narrowed {
			t.Errorf("%v of %v cores: changed %v", c.all, c.cores, got)
		}
		for i, s := range savings {
			if math.Abs(s.Low-c.want[i][0]) > 1e-9 || math.Abs(s.High-c.want[i][1]) > 1e-9 {
				t.Errorf("%v of %v cores: %d is %v to %v, want %v", c.all, c.cores, i, s.Low, s.High, c.want[i])
			}
		}
	}
	// Shares of 0.5 and 0.9 exceed 0.95 of the time. Without a certain part they become 0.339 and 0.611.
	gains := []*Gain{Amdahl("x", 0, 0.5, "a"), Amdahl("x", 0, 0.9, "a")}
	if !FitGains(gains) || math.Abs(gains[0].High-0.5134) > 1e-3 || math.Abs(gains[1].High-1.5682) > 2e-3 {
		t.Errorf("gains of %v and %v", gains[0].High, gains[1].High)
	}
}

// TestThreadsThatWaitRaiseTheUpperEndOnly: 2 cores do the work, of which 0.2 to 0.5 are saved, and 6 threads wait at most. At
// best 8 threads run, and each unit of work takes 1.5 cores and not 2: 8/1.5 = 5.33 times as much. At least 2/1.8.
func TestThreadsThatWaitRaiseTheUpperEndOnly(t *testing.T) {
	s := Saves(0.2, 0.5, "a")
	g := s.Gain(2, Claim{Limit: "CPUs", Waiting: 6})
	if low, high := 2/1.8-1, 8/1.5-1; math.Abs(g.Low-low) > 1e-9 || math.Abs(g.High-high) > 1e-9 || g.Sure() != g.Low {
		t.Errorf("%+v, sure %v, want %v to %v", *g, g.Sure(), low, high)
	}
	g = s.Gain(2, Claim{Limit: "locks", Waiting: 6, Unsure: true})
	if g.Low != 0 || math.Abs(g.High-(8/1.5-1)) > 1e-9 || g.Sure() != 0 {
		t.Errorf("limited by locks: %+v, sure %v", *g, g.Sure())
	}
	if s.Gain(2, Claim{Waiting: 6}) != nil {
		t.Error("a gain without a limit")
	}
}
