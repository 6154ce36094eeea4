// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/runtest"
)

// commits is a history of so many commits with three repetitions each. From the commit at on, the throughput is multiplied
// by factor. The scatter is 2 %.
func commits(t *testing.T, random *rand.Rand, n, at int, factor float64) []*Record {
	t.Helper()
	var all []*Record
	for i := range n {
		s := runtest.Spec{Labels: map[string]string{"commit": fmt.Sprintf("c%02d", i)}, Started: runtest.Began.Add(time.Duration(i) * time.Hour)}
		level := 1000.
		if i >= at {
			level *= factor
		}
		for range 3 {
			s.Repetitions = append(s.Repetitions, runtest.Repetition{Outcomes: []run.Outcome{runtest.Throughput(level * math.Exp(0.02*random.NormFloat64()))}})
		}
		all = append(all, record(t, s.Labels["commit"], s))
	}
	random.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// A regression of 10 % is placed at its commit, whichever that is. The place is wrong if the mean of a commit's three
// repetitions is nearer to the other level: 2.6 standard deviations of 2 %, or 4.5 of the mean. That has a chance of 3e-6 for
// each commit beside the change. The seed is fixed.
func TestRegressionIsPlaced(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for at := 3; at <= 37; at++ {
		h, err := HistoryOf(commits(t, random, 40, at, 0.9), HistoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Points) != 40 || len(h.Changes) != 1 || h.Changes[0].At != at || h.Changes[0].Verdict != Worse || h.Points[at].Name != fmt.Sprintf("c%02d", at) {
			t.Fatalf("a regression at %d: %+v in %d points", at, h.Changes, len(h.Points))
		}
		if r := h.Changes[0].Ratio; r.Value < 0.88 || r.Value > 0.92 || h.Changes[0].P > 0.05 {
			t.Errorf("a regression at %d: %+v", at, h.Changes[0])
		}
	}
}

func TestSteadyHistory(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	alarms := 0
	for range 40 {
		h, err := HistoryOf(commits(t, random, 40, 40, 1), HistoryOptions{Ratio: 1.001})
		if err != nil {
			t.Fatal(err)
		}
		alarms += min(1, len(h.Changes))
	}
	if alarms > 10 { // more than 10 of 40 have a chance of 3e-6 at 5 %; the seed is fixed
		t.Errorf("%d of 40 steady histories have a change", alarms)
	}
}

// The occurrences of clock_gettime over SCONE's commits: over 370,000 a second before, and at most 100 from 09fea91 on.
func TestHistoryOfSCONE(t *testing.T) {
	var all []*Record
	for i, name := range []string{"572bd1a5", "09fea91"} {
		s := scone([]float64{267952.22, 621504}[i], []float64{370_000, 100}[i])
		s.Labels, s.Started = map[string]string{"commit": name}, runtest.Began.Add(time.Duration(i)*time.Hour)
		all = append(all, record(t, name, s))
	}
	h, err := HistoryOf(all, HistoryOptions{Metric: "syscalls_per_second{clock_gettime}"})
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Changes) != 1 || h.Points[h.Changes[0].At].Name != "09fea91" || h.Changes[0].Before.Value != 370_000 || math.Abs(h.Changes[0].After.Value-100) > 1e-6 {
		t.Errorf("%+v", h.Changes)
	}
	_, err = HistoryOf(all, HistoryOptions{Metric: "throughputs"})
	if err == nil || !strings.Contains(err.Error(), "did you mean throughput?") {
		t.Errorf("%v", err)
	}
}

func TestOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	all := commits(t, random, 12, 12, 1)
	for i, r := range all {
		r.Labels = map[string]string{"build": fmt.Sprint(len(all) - i)}
	}
	h, err := HistoryOf(all, HistoryOptions{Label: "build", Order: "build"})
	if err != nil || h.Points[0].Name != "1" || h.Points[11].Name != "12" || h.Points[1].Name != "2" {
		t.Errorf("%v, %+v", err, h)
	}
	if _, err := HistoryOf(all, HistoryOptions{Order: "commit"}); err == nil || !strings.Contains(err.Error(), "has no label commit") {
		t.Errorf("%v", err)
	}
	if _, err := HistoryOf(all[:1], HistoryOptions{Label: "build"}); err == nil {
		t.Error("one point is no history")
	}
}

func TestMainMetric(t *testing.T) {
	throughput := Metric{Name: "throughput", Unit: "operations_per_second", Better: "higher"}
	time := Metric{Name: "time_per_operation", Unit: "seconds", Better: "lower"}
	allocations := Metric{Name: "allocations_per_operation", Better: "lower"}
	operations := Metric{Name: "operations", Unit: "operations"}
	set := Metric{Name: "SET.throughput", Area: Outcome, Unit: "operations_per_second", Better: "higher"}
	for _, tt := range []struct {
		list []Metric
		want Metric
	}{
		{[]Metric{allocations, operations, time, throughput}, throughput},
		{[]Metric{time, set, allocations}, set},
		{[]Metric{time, set, throughput}, throughput},
		{[]Metric{allocations, operations, time}, time},
		{[]Metric{operations, allocations}, allocations},
		{[]Metric{operations}, operations},
	} {
		if got, ok := Main(tt.list); !ok || got != tt.want {
			t.Errorf("of %v it is %v, %v; want %v", tt.list, got, ok, tt.want)
		}
	}
	if got, ok := Main(nil); ok {
		t.Errorf("of nothing it is %v", got)
	}
}
