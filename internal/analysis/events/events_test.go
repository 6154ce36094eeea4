// SPDX-License-Identifier: Apache-2.0

package events

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// pastOf returns what is known at a moment of sorted events at these seconds, over a day.
func pastOf(seconds []float64, at float64) past {
	next := sort.Search(len(seconds), func(i int) bool { return seconds[i] > at })
	first := sort.SearchFloat64s(seconds, at-day.Seconds())
	p := past{covered: day, count: float64(next - first)}
	if next > first {
		p.events = []analysis.Preceding{{Kind: analysis.Restart, At: noon.Add(time.Duration(seconds[next-1] * float64(time.Second)))}}
	}
	return p
}

// A finding that begins at a random moment has nothing to do with restarts. With any pattern, at most one in twenty
// such findings names one.
func TestRestartsAreRarelyNamedByChance(t *testing.T) {
	const days, moments = 40, 20_000
	end := days * day.Seconds()
	r := rand.New(rand.NewPCG(1, 2))
	poisson := func(perHour float64) (all []float64) {
		for s := 0.0; s < end; s += r.ExpFloat64() * 3600 / perHour {
			all = append(all, s)
		}
		return all
	}
	every := func(period, jitter float64) (all []float64) {
		for s := 0.0; s < end; s += period {
			all = append(all, s+r.Float64()*jitter)
		}
		return all
	}
	var loops []float64 // ten restarts within two minutes, every six hours
	for s := 0.0; s < end; s += 6 * 3600 {
		for i := range 10 {
			loops = append(loops, s+float64(i)*12)
		}
	}
	for _, tt := range []struct {
		name   string
		events []float64
		least  float64 // so many are named: the limit is not lower than it needs to be
	}{
		{"every hour", every(3600, 0), 0.03},
		{"every hour, more or less", every(3600, 900), 0.02},
		{"at random, one an hour", poisson(1), 0.02},
		{"at random, ten an hour", poisson(10), 0},
		{"at random, one a day", poisson(1.0 / 24), 0.002},
		{"every minute", every(60, 0), 0},
		{"every ten seconds", every(10, 0), 0},
		{"once a day", every(day.Seconds(), 0), 0.005},
		{"crash loops", loops, 0},
	} {
		named := 0
		slices.Sort(tt.events)
		for range moments {
			// The looks come 0.3 s after each full minute.
			at := math.Floor((day.Seconds()+r.Float64()*(end-day.Seconds()))/60)*60 + 0.3
			if len(pastOf(tt.events, at).named(noon.Add(time.Duration(at*float64(time.Second))))) > 0 {
				named++
			}
		}
		share := float64(named) / moments
		t.Logf("%s: %.4f of %d findings name a restart", tt.name, share, moments)
		if share > MaxChance || // the seeds are fixed, so the result is always the same
			share < tt.least {
			t.Errorf("%s: %.4f of the findings name a restart, want %v to %v", tt.name, share, tt.least, MaxChance)
		}
	}
}

// Within ten minutes after a restart, what is named depends on how often the workload restarts, and on how long it is watched.
func TestWhatIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name    string
		after   time.Duration
		count   float64
		covered time.Duration
		chance  float64 // 0: it is not named
	}{
		{"the only one of a day", 9 * time.Minute, 1, day, 10. / 1440},
		{"the only one of a day, later", 11 * time.Minute, 1, day, 0},
		{"at the same moment", 0, 1, day, 1. / 1440},
		{"one an hour, soon", 2 * time.Minute, 24, day, 72. / 1440},
		{"one an hour, later", 4 * time.Minute, 24, day, 0},
		{"watched for 20 minutes", 2 * time.Minute, 1, 20 * time.Minute, 0},
		{"watched for an hour", 2 * time.Minute, 1, time.Hour, 3. / 60},
		{"watched for no time", 0, 1, 0, 0},
		{"after the moment", -time.Second, 1, day, 0},
		{"counted too few", time.Minute, 0, day, 2. / 1440},
	} {
		p := past{count: tt.count, covered: tt.covered, events: []analysis.Preceding{{Kind: analysis.Restart, At: noon.Add(-tt.after)}}}
		named := p.named(noon)
		if len(named) != 1 != (tt.chance == 0) {
			t.Errorf("%s: named %+v", tt.name, named)
			continue
		}
		if len(named) == 1 && (named[0].Chance > tt.chance*1.0001 || named[0].Chance < tt.chance*0.9999-1e-9 || named[0].Seconds != tt.after.Seconds()) {
			t.Errorf("%s: named %+v, want the chance %v", tt.name, named, tt.chance)
		}
	}
	var many past
	many.covered = day
	for i := range 10 {
		many.events = append(many.events, analysis.Preceding{At: noon.Add(-time.Duration(i) * time.Second)})
	}
	slices.Reverse(many.events)
	if named := many.named(noon); len(named) != most || !named[0].At.Equal(noon) {
		t.Errorf("of ten: %+v", named)
	}
}
