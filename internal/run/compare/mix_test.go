// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/runtest"
)

// mixedRun has the given calls of read and of write in each second of each of 3 repetitions.
func mixedRun(repetitions, seconds int, steadyFrom int, calls func(repetition, second int) (read, write float64)) *run.Run {
	r := &run.Run{End: &run.End{Reason: "done", Status: make([]int, repetitions)}}
	series := []*run.Series{}
	for _, name := range []string{"read", "write"} {
		series = append(series, &run.Series{Name: mixed, Kind: run.Counter, Labels: map[string]string{"workload": "app", mixedBy: name}})
	}
	r.Series = series
	at, total := runtest.Began, [2]float64{}
	for i := range repetitions {
		begin := at
		for s := range seconds + 1 {
			if s > 0 {
				read, write := calls(i, s-1)
				total[0], total[1] = total[0]+read, total[1]+write
			}
			r.Times = append(r.Times, at)
			for k := range series {
				series[k].Values = append(series[k].Values, total[k])
			}
			at = at.Add(time.Second)
		}
		end := at.Add(-time.Second)
		r.Phases = append(r.Phases, run.Phase{Name: run.Whole, Repetition: i + 1, From: begin, To: end})
		if steadyFrom > 0 {
			r.Phases = append(r.Phases, run.Phase{Name: run.Steady, Repetition: i + 1, From: begin.Add(time.Duration(steadyFrom) * time.Second), To: end})
		}
	}
	return r
}

// The right answers are of the programs: which share of the calls of the second half is of another kind than in the first one.
func TestMixOverTheLength(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	noisy := func(mean float64) float64 { return mean * (0.8 + 0.4*chance.Float64()) }
	for _, tt := range []struct {
		what   string
		steady int
		calls  func(repetition, second int) (read, write float64)
		want   string
	}{
		{"the same", 0, func(int, int) (float64, float64) { return 600, 400 }, ""},
		{"the same with noise", 0, func(int, int) (float64, float64) { return noisy(600), noisy(400) }, ""},
		{"a higher rate", 0, func(_, s int) (float64, float64) { return 600 * float64(1+s), 400 * float64(1+s) }, ""},
		{"from 60 to 40 %", 0, func(_, s int) (float64, float64) {
			if s < 20 {
				return 600, 400
			}
			return 400, 600
		}, "during the run, so figures depend on its length: in 3 of 3 repetitions 20 % of the calls of the second half differ from those of the first, such as read from 60 to 40 %"},
		{"a start of another kind, which is separated", 10, func(_, s int) (float64, float64) {
			if s < 10 {
				return 10, 990
			}
			return 600, 400
		}, ""},
		{"a drift in the steady state", 10, func(_, s int) (float64, float64) { return 300 + 20*float64(s), 1000 }, "during the steady state"},
		{"a job every 8 s", 0, func(_, s int) (float64, float64) { return 600, map[bool]float64{true: 2000}[s%8 == 3] }, ""},
		{"one repetition of three", 0, func(i, s int) (float64, float64) {
			if i == 1 && s >= 20 {
				return 0, 1000
			}
			return 600, 400
		}, ""},
		{"too few calls", 0, func(_, s int) (float64, float64) { return float64(20 - s/20*20), float64(s / 20 * 20) }, ""},
	} {
		notes := strings.Join(Extract(mixedRun(3, 40, tt.steady, tt.calls), "a", nil).Notes, "\n")
		if tt.want == "" && notes != "" || !strings.Contains(notes, tt.want) {
			t.Errorf("%s: %q, want %q", tt.what, notes, tt.want)
		}
	}
	if notes := Extract(mixedRun(3, leastMixSamples-2, 0, func(_, s int) (float64, float64) { return float64(1000 * s), float64(9000 - 1000*s) }), "a", nil).Notes; len(notes) > 0 {
		t.Errorf("too few samples: %s", notes)
	}
}

// Calls come in bursts, and nothing drifts. As many runs have a note as the derivation at overNoise says, within 3 standard errors. The seeds are
// none with which the constants were chosen.
func TestMixOfBursts(t *testing.T) {
	const runs = 2000
	over := func(k float64) float64 { return 2 / math.Pi * math.Asin(1/(1+2*k*k)) }
	one, few := over(overNoise), over(overNoiseOfFew)
	for repetitions, share := range map[int]float64{1: few, 2: few * few, 3: 3*one*one*(1-one) + one*one*one} {
		chance := rand.New(rand.NewPCG(20261127, uint64(repetitions)))
		noted := 0
		for range runs {
			r := mixedRun(repetitions, 40, 0, func(int, int) (float64, float64) { return 500 * chance.ExpFloat64(), 500 * chance.ExpFloat64() })
			noted += len(Extract(r, "a", nil).Notes)
		}
		if most := runs*share + 3*math.Sqrt(runs*share*(1-share)); float64(noted) > most {
			t.Errorf("%d repetitions: %d of %d runs have a note, want at most %.0f", repetitions, noted, runs, most)
		}
		t.Logf("%d repetitions: %d of %d runs have a note, expected %.1f", repetitions, noted, runs, runs*share)
		if share > 0.05 {
			t.Errorf("%d repetitions: %.2f of all runs have a note by chance", repetitions, share)
		}
	}
}
