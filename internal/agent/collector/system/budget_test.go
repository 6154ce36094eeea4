// SPDX-License-Identifier: Apache-2.0

package system

import (
	"math"
	"testing"
	"time"
)

func TestTheBudgetIsKept(t *testing.T) {
	type step struct {
		after time.Duration
		calls float64
		want  level
	}
	quiet, busy, wild := 10_000.0, 300_000.0, 500e6
	for name, tt := range map[string]struct {
		governor governor
		steps    []step
	}{
		"a quiet machine": {
			governor{budget: 0.01}, []step{{0, quiet, levelFull}, {time.Hour, quiet, levelFull}},
		},
		"a busy one": {
			governor{budget: 0.01}, []step{{0, quiet, levelFull}, {2 * time.Second, busy, levelSampled}, {time.Hour, busy, levelSampled}},
		},
		"one that is busy for a while": {
			governor{budget: 0.01}, []step{
				{0, busy, levelSampled}, {2 * time.Second, quiet, levelSampled},
				{waitToStepUp - time.Second, quiet, levelSampled}, {time.Second, quiet, levelFull},
			},
		},
		"a load near the budget does not make it swing": {
			governor{budget: 0.01}, []step{
				{0, 140_000, levelSampled}, {time.Minute, 120_000, levelSampled}, {time.Minute, 140_000, levelSampled},
				{time.Minute, 120_000, levelSampled},
			},
		},
		"room must last": {
			governor{budget: 0.01}, []step{
				{0, busy, levelSampled}, {2 * time.Second, quiet, levelSampled}, {20 * time.Second, busy, levelSampled},
				{2 * time.Second, quiet, levelSampled}, {20 * time.Second, quiet, levelSampled}, {10 * time.Second, quiet, levelFull},
			},
		},
		"timing goes first": {
			governor{budget: 0.01, timing: true}, []step{{0, 100_000, levelUntimed}, {2 * time.Second, busy, levelSampled}},
		},
		"who watches has more, then no detail": {
			governor{budget: 0.01, watching: true}, []step{{0, busy, levelFull}, {2 * time.Second, 1e6, levelTotals}},
		},
		"nothing helps but to stop, and to look again": {
			governor{budget: 0.01}, []step{
				{0, wild, levelOff}, {2 * time.Second, wild, levelOff}, {waitToStepUp, wild, levelSampled}, {2 * time.Second, wild, levelOff},
			},
		},
		"no limit":           {governor{budget: 1}, []step{{0, wild, levelFull}}},
		"no budget was told": {governor{}, []step{{0, wild, levelFull}}},
	} {
		g, now := tt.governor, time.Unix(1000, 0)
		g.cpus = 2
		for i, s := range tt.steps {
			now = now.Add(s.after)
			if got := g.decide(now, demand{calls: s.calls, switches: 1000, turns: 4}); got != s.want {
				t.Errorf("%s: step %d, %.0f calls/s: %s, want %s", name, i, s.calls, levelNames[got], levelNames[s.want])
			}
		}
	}
}

// What cannot be given up, switches and the agent itself, does not blind the agent.
func TestABudgetThatCannotBeKeptBlindsNobody(t *testing.T) {
	g := governor{budget: 0.01, cpus: 2}
	if got := g.decide(time.Unix(1000, 0), demand{calls: 1e4, agent: 0.5, switches: 1e6, turns: 4}); got != levelFull {
		t.Errorf("%s, although the frequent events cost next to nothing", levelNames[got])
	}
}

func TestEachLevelCostsLessThanTheOneBefore(t *testing.T) {
	d := demand{calls: 1e6, faults: 1e5, cache: 1e5, switches: 1e4, agent: 0.01, turns: 4}
	last := 10.0
	for _, l := range []level{levelFull, levelUntimed, levelSampled, levelOff} {
		cost := d.frequent(l, true, mostPart)
		if cost >= last {
			t.Errorf("%s costs %v, the level before %v", levelNames[l], cost, last)
		}
		last = cost
	}
}

func TestTheWindowFillsTheBudget(t *testing.T) {
	for calls, want := range map[float64]float64{10_000: mostPart, 1e6: mostPart, 3e6: 0.0374, 100e6: leastPart} {
		g := governor{budget: 0.01, cpus: 2, demand: demand{calls: calls, switches: 5000, turns: 4}}
		if got := g.part(); math.Abs(got-want) > 0.001 {
			t.Errorf("%.0f calls/s: attached for %.4f of the time, want %.4f", calls, got, want)
		}
	}
}
