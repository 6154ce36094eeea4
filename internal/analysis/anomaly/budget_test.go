// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/window"
)

// simulated are metrics of a program without an enclave.
func simulated(n int) []window.Metric {
	var all []window.Metric
	for _, m := range window.Metrics() {
		if !m.Machine && len(all) < n {
			all = append(all, m)
		}
	}
	return all
}

// opened counts the findings that open within days, by rule. A finding that is not seen for ten minutes is closed.
func opened(t *testing.T, s *simulation, from time.Time, lasts time.Duration) map[string]int {
	t.Helper()
	seen, count := make(map[string]time.Time), make(map[string]int)
	for at := from; at.Before(from.Add(lasts)); at = at.Add(5 * time.Minute) {
		found, _ := Find(t.Context(), s, at, s.windows(at), s.options())
		for _, f := range Findings(found, at, 0) {
			if last, open := seen[f.ID]; !open || at.Sub(last) > 10*time.Minute {
				count[f.Rule]++
			}
			seen[f.ID] = at
		}
	}
	return count
}

// machine is the number of series of a machine of 128 workloads with five metrics each. Simulated machines are smaller,
// and get their part of the error probability.
const machine = 128 * 5

func tableOf(few int) int {
	if n, _ := strconv.Atoi(os.Getenv("STATISTICS_TABLE")); n > 0 {
		return n
	}
	return few
}

func (s *simulation) options() Options {
	return Options{Metrics: s.metrics, Alpha: 0.001 * float64(len(s.names)*len(s.metrics)) / machine}
}

// TestErrorBudget: load without a change opens at most three findings a day for 128 workloads. STATISTICS_TABLE is the
// number of workloads of each kind.
func TestErrorBudget(t *testing.T) {
	workloads, metrics, lasts := tableOf(1), 1, day
	ages := []time.Duration{36 * time.Hour, 12 * day}
	if workloads > 1 {
		metrics, lasts = 5, 2*day
		ages = []time.Duration{36 * time.Hour, 5 * day, 12 * day} // from Tuesday, and from Saturday
	}
	monday := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	for _, age := range ages {
		total := 0.0
		for _, kind := range loads() {
			s := simulate(seedOf(kind.name), slices.Repeat([]kindOfLoad{kind}, workloads), simulated(metrics), monday.Add(-time.Hour), age+lasts+2*time.Hour, monday.Add(100*day), 1)
			count := opened(t, s, monday.Add(age), lasts)
			perDay := 128 / float64(workloads) / (lasts.Hours() / 24)
			t.Logf("%-36s history %5v: %6.1f baselines and %6.1f changes a day", kind.name, age, perDay*float64(count[BaselineRule]), perDay*float64(count[ChangeRule]))
			total += perDay * float64(count[BaselineRule]+count[ChangeRule]) / float64(len(loads()))
		}
		t.Logf("an equal mixture of %d workloads for %v, history %v: %.2f a day", workloads*len(loads()), lasts, age, total)
		if total > 3 {
			t.Errorf("%.1f findings a day in load without a change", total)
		}
	}
}

// TestStepsAreFound: a step of one metric that lasts is found.
func TestStepsAreFound(t *testing.T) {
	workloads := tableOf(20)
	monday := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	for _, age := range []time.Duration{36 * time.Hour, 12 * day} {
		for _, kind := range loads() {
			for _, step := range []float64{1.3, 1.5, 2, 5, 1 / 2.} {
				if workloads == 20 && (step != 1.3 || kind.name != "steady") {
					continue
				}
				from := monday.Add(age + 10*time.Hour)
				moment := from.Add(-150 * time.Second)
				s := simulate(seedOf(kind.name), slices.Repeat([]kindOfLoad{kind}, workloads), simulated(1), monday.Add(-time.Hour), age+12*time.Hour, moment, step)
				delay := make(map[string]time.Duration)
				for at := from; at.Before(from.Add(time.Hour)); at = at.Add(5 * time.Minute) {
					found, _ := Find(t.Context(), s, at, s.windows(at), s.options())
					for _, a := range found {
						if _, known := delay[a.Workload]; !known {
							delay[a.Workload] = at.Sub(moment)
						}
					}
				}
				within := func(most time.Duration) float64 {
					n := 0
					for _, d := range delay {
						if d <= most {
							n++
						}
					}
					return 100 * float64(n) / float64(workloads)
				}
				t.Logf("%-36s history %5v, step x%.1f: %5.1f %% in 5 min, %5.1f %% in 10 min, %5.1f %% in an hour (n=%d)", kind.name, age, step,
					within(5*time.Minute), within(10*time.Minute), within(time.Hour), workloads)
				if kind.name == "steady" && within(15*time.Minute) < 95 {
					t.Errorf("a step of x%v in steady load was found in %.0f %% within 15 minutes", step, within(15*time.Minute))
				}
			}
		}
	}
}
