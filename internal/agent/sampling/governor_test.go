// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"math"
	"testing"
	"time"
)

func TestTheBudgetIsKept(t *testing.T) {
	type step struct {
		after time.Duration
		calls float64
		want  Level
	}
	quiet, busy, wild := 10_000.0, 300_000.0, 500e6
	for name, tt := range map[string]struct {
		governor Governor
		steps    []step
	}{
		"a quiet machine": {
			Governor{Budget: 0.01}, []step{{0, quiet, Full}, {time.Hour, quiet, Full}},
		},
		"a busy one": {
			Governor{Budget: 0.01}, []step{{0, quiet, Full}, {2 * time.Second, busy, Sampled}, {time.Hour, busy, Sampled}},
		},
		"one that is busy for a while": {
			Governor{Budget: 0.01}, []step{
				{0, busy, Sampled}, {2 * time.Second, quiet, Sampled},
				{waitToStepUp - time.Second, quiet, Sampled}, {time.Second, quiet, Full},
			},
		},
		"a load near the budget does not make it swing": {
			Governor{Budget: 0.01}, []step{
				{0, 140_000, Sampled}, {time.Minute, 120_000, Sampled}, {time.Minute, 140_000, Sampled},
				{time.Minute, 120_000, Sampled},
			},
		},
		"headroom must last": {
			Governor{Budget: 0.01}, []step{
				{0, busy, Sampled}, {2 * time.Second, quiet, Sampled}, {20 * time.Second, busy, Sampled},
				{2 * time.Second, quiet, Sampled}, {20 * time.Second, quiet, Sampled}, {10 * time.Second, quiet, Full},
			},
		},
		"timing goes first": {
			Governor{Budget: 0.01, Timing: true}, []step{{0, 100_000, Untimed}, {2 * time.Second, busy, Sampled}},
		},
		"watching raises the budget, then detail goes": {
			Governor{Budget: 0.01, Watching: true}, []step{{0, busy, Full}, {2 * time.Second, 1e6, SampledSums}},
		},
		"nothing helps but to stop, and to look again": {
			Governor{Budget: 0.01}, []step{
				{0, wild, Sampled}, {waitToStop - time.Second, wild, Sampled}, {time.Second, wild, Off}, {2 * time.Second, wild, Off},
				{waitToStepUp, wild, Sampled}, {time.Second, wild, Sampled}, {waitToStop, wild, Off},
			},
		},
		"a short burst does not stop it": {
			Governor{Budget: 0.01}, []step{
				{0, wild, Sampled}, {waitToStop - time.Second, wild, Sampled}, {time.Second, busy, Sampled},
				{time.Second, wild, Sampled}, {waitToStop - time.Second, wild, Sampled}, {time.Second, busy, Sampled},
			},
		},
		"no limit":  {Governor{Budget: 1}, []step{{0, wild, Full}}},
		"no budget": {Governor{}, []step{{0, wild, Full}}},
	} {
		g, now := tt.governor, time.Unix(1000, 0)
		g.CPUs = 2
		for i, s := range tt.steps {
			now = now.Add(s.after)
			if got := g.Decide(now, Demand{Calls: s.calls, Switches: 1000, Programs: 4}); got != s.want {
				t.Errorf("%s: step %d, %.0f calls/s: %s, want %s", name, i, s.calls, got, s.want)
			}
		}
	}
}

// The cost of context switches, which every level counts, and of the agent never stop the counting.
func TestABudgetThatCannotBeKeptStopsNothing(t *testing.T) {
	g := Governor{Budget: 0.01, CPUs: 2}
	if got := g.Decide(time.Unix(1000, 0), Demand{Calls: 1e4, Agent: 0.5, Switches: 1e6, Programs: 4}); got != Full {
		t.Errorf("%s, although the frequent events cost next to nothing", got)
	}
}

// The programs together cost no more than the budget while the events that every level counts leave them a tenth of it.
// Nothing else may be spent on frequent events above that.
func TestAllProgramsKeepTheBudget(t *testing.T) {
	for _, switches := range []float64{0, 1e4, 5e4, 1e5, 1.5e5, 2e5, 1e6} {
		for _, agent := range []float64{0, 0.005, 0.05} {
			g := Governor{Budget: 0.01, CPUs: 2}
			g.Decide(time.Unix(1000, 0), Demand{Calls: 1e6, Faults: 1e5, Switches: switches, Agent: agent, Programs: 4})
			always := g.Demand.always() / 2
			if got, most := g.Spent(g.Ratio()), max(0.01, always+0.001); got > most {
				t.Errorf("%.0f switches/s, agent %v: the programs take %.5f, want at most %.5f", switches, agent, got, most)
			}
		}
	}
}

func TestEachLevelCostsLessThanTheOneBefore(t *testing.T) {
	d := Demand{Calls: 1e6, Faults: 1e5, Cache: 1e5, Switches: 1e4, Agent: 0.01, Programs: 4}
	last := 10.0
	for _, l := range []Level{Full, Untimed, Sampled, Off} {
		cost := d.frequent(l, true, maxRatio)
		if cost >= last {
			t.Errorf("%s costs %v, the level before %v", l, cost, last)
		}
		last = cost
	}
}

func TestTheWindowFillsTheBudget(t *testing.T) {
	for calls, want := range map[float64]float64{10_000: maxRatio, 1e6: maxRatio, 3e6: 0.0374, 100e6: minRatio} {
		g := Governor{Budget: 0.01, CPUs: 2, Demand: Demand{Calls: calls, Switches: 5000, Programs: 4}}
		if got := g.Ratio(); math.Abs(got-want) > 0.001 {
			t.Errorf("%.0f calls/s: attached for %.4f of the time, want %.4f", calls, got, want)
		}
	}
}

// Programs that stay attached are part of the cost at every ratio.
func TestProgramsThatStayCostAllTheTime(t *testing.T) {
	d := Demand{Calls: 1e6, Faults: 1e4, Programs: 3}
	before := d.frequent(Sampled, false, minRatio)
	d.Staying = 0.002
	if got, want := d.frequent(Sampled, false, minRatio)-before, (1-minRatio)*0.002; math.Abs(got-want) > 1e-9 {
		t.Errorf("%v more, want %v", got, want)
	}
}

func TestTheMeterTellsRates(t *testing.T) {
	var m Meter
	now, last := time.Unix(1000, 0), Demand{}
	if _, ok := m.Read(now, Totals{Calls: 5}, last, true); ok || m.Due(now.Add(decideEvery-1)) || !m.Due(now.Add(decideEvery)) {
		t.Error("there are rates of one moment, or the next reading is not due in time")
	}
	now = now.Add(4 * time.Second)
	d, ok := m.Read(now, Totals{Calls: 45, Faults: 8, Cache: 4, Switches: 12, Others: 2 * time.Second, Agent: time.Second}, last, true)
	if want := (Demand{Calls: 10, Faults: 2, Cache: 1, Switches: 3, Others: 0.5, Agent: 0.25}); !ok || d != want {
		t.Errorf("%+v, want %+v", d, want)
	}
	// Frequent events are not counted now. The counts of a group that ended are gone.
	next, _ := m.Read(now.Add(time.Second), Totals{Switches: 11}, d, false)
	if want := (Demand{Calls: 10, Faults: 2, Cache: 1, Agent: -1}); next != want {
		t.Errorf("%+v, want %+v", next, want)
	}
}

// Every program counts towards the budget, also the programs on rare events. On a machine that only starts processes, the
// frequent events get the rest of the budget, and at least a tenth.
func TestRareEventsCountTowardsTheBudget(t *testing.T) {
	g := Governor{Budget: 0.01, CPUs: 2, Demand: Demand{Calls: 100_000, Switches: 1000}}
	quiet, headroom := g.Spent(1), g.headroom()
	g.Demand.Others = 0.01
	if busy := g.Spent(1); math.Abs(busy-quiet-0.005) > 1e-9 {
		t.Errorf("a share of %.4f, and of %.4f with 10 ms per second of programs on rare events", quiet, busy)
	}
	if left := g.headroom(); math.Abs(headroom-left-0.005) > 1e-9 {
		t.Errorf("%.4f are left, and %.4f with 10 ms per second of programs on rare events", headroom, left)
	}
	if g.Demand.Others = 1; math.Abs(g.headroom()-0.001) > 1e-9 {
		t.Errorf("%.4f are left, want a tenth of the budget", g.headroom())
	}
}

// A user who requests more gets it at once if the budget allows. Without the wish, the level is what the budget allows.
func TestWishesAreMetAtOnce(t *testing.T) {
	const budget = 0.01
	for _, tt := range []struct {
		calls                   float64
		from                    Level
		watching, timing, exact bool
		want                    Level
	}{
		{10_000, Sampled, false, false, false, Full},
		{120_000, Full, false, false, false, Full},
		{120_000, Sampled, false, false, false, Sampled}, // no headroom
		{150_000, Sampled, true, false, false, Full},     // five times the budget
		{300_000, Full, false, false, false, Sampled},
		{1e6, SampledSums, false, false, false, Sampled}, // no level of these wishes
		{1e6, Sampled, true, false, false, SampledSums},
		{100_000, Full, false, true, false, Untimed},
		{100_000, Untimed, false, false, false, Full},
		{500e6, Sampled, false, false, true, Full},
		{500e6, Full, false, false, false, Sampled}, // what costs too much for longer is stopped by Decide
		{500e6, Off, true, false, false, SampledSums},
	} {
		g := Governor{Budget: budget, CPUs: 2, Level: tt.from, Demand: Demand{Calls: tt.calls, Switches: 1000, Programs: 4}}
		limit := budget
		if tt.exact {
			limit = 0
		}
		if got := g.Want(tt.timing, tt.watching, limit); got != tt.want || g.Level != got {
			t.Errorf("%+v: %s", tt, got)
		}
		if now := time.Unix(1000, 0); !tt.exact && g.Decide(now, g.Demand) != tt.want {
			t.Errorf("%+v: the next decision is %s", tt, g.Level)
		}
	}
}
