// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/ledger"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/rules"
)

// A load wanders as an autoregressive process of first order: its correlation decays to 1/e in the time of tau. The mean
// over a window of five minutes has a standard deviation of 10 %.
const (
	wanderSD    = 0.10
	wanderStep  = 10 * time.Second
	mostAlerts  = 2 // a day
	stepsOfLook = int(time.Minute / wanderStep)
)

// wanderOf returns the means over the last five minutes and over the last minute, at each look, around 1.
func wanderOf(days int, tau time.Duration, seed uint64) (five, one []float64) {
	r := rand.New(rand.NewPCG(seed, uint64(tau)))
	steps := days * int(24*time.Hour/wanderStep)
	keep := math.Exp(-wanderStep.Seconds() / tau.Seconds())
	sum := make([]float64, steps+1)
	z := r.NormFloat64()
	for i := range steps {
		z = keep*z + math.Sqrt(1-keep*keep)*r.NormFloat64()
		sum[i+1] = sum[i] + z
	}
	mean := func(end, n int) float64 { return (sum[end] - sum[end-n]) / float64(n) }
	var squares float64
	for at := 5 * stepsOfLook; at <= steps; at += stepsOfLook {
		five, one = append(five, mean(at, 5*stepsOfLook)), append(one, mean(at, stepsOfLook))
		squares += five[len(five)-1] * five[len(five)-1]
	}
	sd := math.Sqrt(squares / float64(len(five)))
	for i := range five {
		five[i], one[i] = 1+wanderSD*five[i]/sd, 1+wanderSD*one[i]/sd
	}
	return five, one
}

// alarm counts the alerts of a ledger.
type alarm struct {
	*ledger.Ledger
	at    time.Time
	fires bool
	fired []time.Time
}

func newAlarm(t *testing.T) *alarm {
	t.Helper()
	l, err := ledger.Open("", slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &alarm{Ledger: l, at: begin}
	a.look(t) // the findings of the first look do not count
	return a
}

// look passes the findings of the next minute on.
func (a *alarm) look(t *testing.T, found ...analysis.Finding) {
	t.Helper()
	a.at = a.at.Add(time.Minute)
	for i := range found {
		found[i].FirstSeen, found[i].LastSeen = a.at, a.at
	}
	err := a.Update(ledger.Observation{At: a.at, Window: 5 * time.Minute, Findings: found, Knows: func(_, _, _ string) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	fires := slices.ContainsFunc(a.Open(), func(f analysis.Finding) bool { return f.Severity != analysis.Info && !f.Unconfirmed })
	if fires && !a.fires {
		a.fired = append(a.fired, a.at)
	}
	a.fires = fires
}

// most returns the largest number of alerts within any 24 hours.
func (a *alarm) most() (most int) {
	for i := range a.fired {
		n := 0
		for n < len(a.fired)-i && a.fired[i+n].Sub(a.fired[i]) < 24*time.Hour {
			n++
		}
		most = max(most, n)
	}
	return most
}

// wanderer is a rule with the signals of one of its cases. All rates of events follow the load, and the CPU time does not.
type wanderer struct {
	rule   engine.Rule
	values map[string][]query.Sample
	scale  float64                      // of the rates, at a load of 1
	judged map[string]*analysis.Finding // by severity and load
}

func newWanderer(t *testing.T, file string) wanderer {
	t.Helper()
	all := loadAll(t)
	c := all[slices.IndexFunc(all, func(c testCase) bool { return c.file == file })]
	db, err := c.source(host)
	if err != nil {
		t.Fatal(err)
	}
	list := rules.All()
	w := wanderer{list[slices.IndexFunc(list, func(r engine.Rule) bool { return r.Name == c.rule })], make(map[string][]query.Sample), 1, make(map[string]*analysis.Finding)}
	for _, s := range w.rule.Signals {
		samples, err := db.Instant(t.Context(), strings.NewReplacer("$window", "5m", "$whole", "5m").Replace(s.Query), c.end())
		if err != nil {
			t.Fatal(err)
		}
		w.values[s.Name] = slices.DeleteFunc(samples, func(s query.Sample) bool { return math.IsNaN(s.Value) })
	}
	return w
}

// at judges the load, while the finding is open with this severity.
func (w wanderer) at(load float64, was analysis.Severity) *analysis.Finding {
	seen := make(map[string][]query.Sample)
	for _, s := range w.rule.Signals {
		for _, v := range w.values[s.Name] {
			if s.Unit == "1/s" {
				v.Value *= load
			}
			seen[s.Name] = append(seen[s.Name], v)
		}
	}
	of := w.rule.View("w", 5*time.Minute, seen)
	of.Load.Cores, of.Load.Busiest = 0, 0.95
	for _, v := range seen["cpu"] {
		of.Load.Cores += v.Value
	}
	v := w.rule.Judge(of.WhileOpen(was))
	if v == nil {
		return nil
	}
	f := &analysis.Finding{ID: analysis.ID(w.rule.Name, "w", ""), Rule: w.rule.Name, Workload: "w", Severity: v.Severity, Confidence: v.Confidence}
	if f.Severity == "" {
		f.Severity = analysis.SeverityWhile(was, v.Gain, v.Saving, of.Load.Cores)
	}
	return f
}

// near is at for the load rounded to a thousandth, which is a hundredth of the standard deviation.
func (w wanderer) near(load float64, was analysis.Severity) *analysis.Finding {
	load = math.Round(1000*load) / 1000
	key := fmt.Sprint(was, load)
	f, known := w.judged[key]
	if !known {
		f = w.at(load*w.scale, was)
		w.judged[key] = f
	}
	return f
}

// border returns the load at which the rule begins to find something that raises an alert.
func (w wanderer) border(t *testing.T) float64 {
	t.Helper()
	raises := func(load float64) bool { f := w.at(load, ""); return f != nil && f.Severity != analysis.Info }
	if !raises(1) {
		t.Fatalf("%s finds nothing in its case", w.rule.Name)
	}
	low, high := 0.0, 1.0
	for range 40 {
		if middle := (low + high) / 2; raises(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// TestAWanderingLoadRaisesTwoAlertsADay: the load wanders around the threshold of a rule, and below and above it. In no 24
// hours of 20 days has it more than two alerts, though it crosses the threshold more than 24 times a day.
func TestAWanderingLoadRaisesTwoAlertsADay(t *testing.T) {
	const days = 20
	files := []string{
		"ocall-bound--positive-gramine-redis.yaml", "lock-contention--positive-gramine.yaml",
		"context-switch-storm--positive-teemon-graphene.yaml", "epc-thrashing--positive-noisy-neighbour.yaml",
	}
	for i, file := range some(files, len(files)) {
		w := newWanderer(t, file) // with the rates of its case
		w.scale = w.border(t)
		without, worst, total, runs := 0, 0, 0, 0
		for _, tau := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour} {
			five, one := wanderOf(days, tau, uint64(i))
			for _, mean := range []float64{1.05, 1, 0.9, 0.85} { // of the load, as a part of the border
				a := newAlarm(t)
				naive, before := 0, false
				for k := range five {
					var found []analysis.Finding
					was := a.Severities()[analysis.ID(w.rule.Name, "w", "")]
					if f := w.near(mean*five[k], was); f != nil && w.near(mean*one[k], analysis.Info) != nil {
						found = append(found, *f)
					}
					a.look(t, found...)
					now := five[k]*mean >= 1
					if now && !before {
						naive++
					}
					before = now
				}
				if most := a.most(); most > mostAlerts {
					t.Errorf("%s, tau %s, a mean of %v: %d alerts within 24 hours", w.rule.Name, tau, mean, most)
				}
				without, worst, total, runs = max(without, naive/days), max(worst, a.most()), total+len(a.fired), runs+1
			}
		}
		t.Logf("%s: %.2f alerts a day, at most %d within 24 hours; crossings up to %d a day", w.rule.Name, float64(total)/float64(runs*days), worst, without)
		if without < 24 || total == 0 {
			t.Errorf("%s: %d crossings a day and %d alerts: the test shows little", w.rule.Name, without, total)
		}
	}
}

// wanderingSource answers each query of the engine as at the end of a case. Rates of exits and calls follow the load.
type wanderingSource struct {
	query.Source
	at      time.Time
	answers map[string][]query.Sample
	ranges  map[string][]query.Series
	loads   map[string]float64 // by window, such as "[5m]"
}

func (s *wanderingSource) Instant(ctx context.Context, expr string, _ time.Time) ([]query.Sample, error) {
	known, asked := s.answers[expr]
	if !asked {
		var err error
		// The windows differ in their loads, not in their samples.
		if known, err = s.Source.Instant(ctx, strings.ReplaceAll(expr, "[1m]", "[5m]"), s.at); err != nil {
			return nil, err
		}
		s.answers[expr] = known
	}
	load := 1.0
	if strings.Contains(expr, "teescope_enclave_transitions_total") || strings.Contains(expr, "teescope_syscalls_total") {
		for window, of := range s.loads {
			if strings.Contains(expr, window) {
				load = of
			}
		}
	}
	samples := slices.Clone(known)
	for i := range samples {
		samples[i].Value *= load
	}
	return samples, nil
}

func (s *wanderingSource) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) (series []query.Series, err error) {
	key := fmt.Sprint(expr, step)
	if _, asked := s.ranges[key]; !asked {
		if s.ranges[key], err = s.Source.Range(ctx, expr, start, end, step); err != nil {
			return nil, err
		}
	}
	return s.ranges[key], nil
}

// TestAllRulesOnAWanderingLoad is the same for a day through the engine and all its rules: for each finding there are at most
// two alerts.
func TestAllRulesOnAWanderingLoad(t *testing.T) {
	all := loadAll(t)
	c := all[slices.IndexFunc(all, func(c testCase) bool { return c.file == "ocall-bound--positive-beside-a-cause.yaml" })]
	db, err := c.source(host)
	if err != nil {
		t.Fatal(err)
	}
	source := &wanderingSource{Source: db, at: c.end(), answers: make(map[string][]query.Sample), ranges: make(map[string][]query.Series)}
	five, one := wanderOf(1, 10*time.Minute, 1)
	alerts := make(map[string]int)
	l, err := ledger.Open("", slog.New(slog.DiscardHandler), func(e ledger.Event) {
		if e.Kind == ledger.Opened && e.Finding.Severity != analysis.Info || e.Kind == ledger.SeverityChanged && e.Was == analysis.Info {
			alerts[e.Finding.Rule]++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for k := range five {
		// 30,000 exits a second take 12.4 % of the CPU time, and 24,300 take the 10 % of the threshold. Of them, 30 % are
		// calls for the time, which are below the threshold of 5 % then.
		source.loads = map[string]float64{"[5m]": 0.243 * five[k], "[1m]": 0.243 * one[k]}
		open := l.Severities()
		r, err := engine.Evaluate(t.Context(), source, rules.All(), engine.Options{At: c.end(), Open: func(rule, workload, instance string) analysis.Severity {
			return open[analysis.ID(rule, workload, instance)]
		}})
		if err != nil {
			t.Fatal(err)
		}
		at := begin.Add(time.Duration(k) * time.Minute)
		if err := l.Update(ledger.Observation{At: at, Window: 5 * time.Minute, Findings: r.Findings, AtOnce: r.AtOnce, Knows: r.Knows}); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("alerts by rule: %v", alerts)
	for rule, n := range alerts {
		if n > mostAlerts {
			t.Errorf("%s raises %d alerts in a day", rule, n)
		}
	}
	if len(alerts) == 0 {
		t.Error("no alert in a day: the load is not at the threshold")
	}
}
