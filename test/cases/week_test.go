// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/ledger"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/rules"
)

const (
	// weekDays is the variable with the number of days that TestHealthyWeek simulates.
	weekDays = "HEALTHY_DAYS"
	// weekSeed is the variable with the seed of the first week. Each further week has the next one.
	weekSeed = "HEALTHY_SEED"
	// weekChunk is the part of a week that is in memory at once.
	weekChunk = time.Hour
	// down is how long a program is away when it is restarted.
	down = 30 * time.Second
)

// A shape is how the load of a program depends on the time. 1 is the load of its scene, and its highest one except for chance.
type shape struct {
	name  string
	tau   time.Duration // of an autoregressive process of first order
	sd    float64       // of its logarithm
	level func(at time.Time, phase time.Duration) float64
}

func steadily(time.Time, time.Duration) float64 { return 1 }

// byDay is three times higher at noon than at midnight.
func byDay(at time.Time, phase time.Duration) float64 {
	of := float64(at.Add(phase/8).Unix()%86400) / 86400
	return math.Exp(-math.Log(3) / 2 * (1 + math.Cos(2*math.Pi*of)))
}

// byWeek is byDay with a quarter of the load on weekends.
func byWeek(at time.Time, phase time.Duration) float64 {
	if d := at.Weekday(); d == time.Saturday || d == time.Sunday {
		return byDay(at, phase) / 4
	}
	return byDay(at, phase)
}

// jobs has a fifth of the load, except for a part of each period.
func jobs(every, lasts time.Duration) func(time.Time, time.Duration) float64 {
	return func(at time.Time, phase time.Duration) float64 {
		if time.Duration(at.UnixNano()+int64(phase))%every < lasts {
			return 1
		}
		return 0.2
	}
}

// shapes are the loads of a simulated week, as in internal/analysis/anomaly.
var shapes = []shape{
	{"steady", time.Minute, 0.05, steadily},
	{"wandering in minutes", 5 * time.Minute, 0.3, steadily},
	{"wandering in a quarter of an hour", 15 * time.Minute, 0.3, steadily},
	{"wandering in an hour", time.Hour, 0.2, steadily},
	{"days", 5 * time.Minute, 0.1, byDay},
	{"days and weekends", 5 * time.Minute, 0.1, byWeek},
	{"a job every ten minutes", time.Minute, 0.05, jobs(10*time.Minute, 2*time.Minute)},
	{"a job every hour", time.Minute, 0.05, jobs(time.Hour, 6*time.Minute)},
	{"a job every day", time.Minute, 0.05, jobs(24*time.Hour, 20*time.Minute)},
	{"a job every seven hours", time.Minute, 0.05, jobs(7*time.Hour, 20*time.Minute)},
}

// daemons are programs of each independent scene. The same one on each machine would make the weeks longer, and show nothing.
var daemons = map[string]bool{"containerd": true, "systemd-journald": true}

// A week is the load of the programs of a machine. Each program is restarted once.
type week struct {
	from time.Duration // begins this long after [begin], so that the day of the week is right
	seed uint64
	slow map[string]float64
}

func (w *week) of(name string) (s shape, r *rand.Rand) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	r = rand.New(rand.NewPCG(w.seed, h.Sum64()))
	return shapes[r.IntN(len(shapes))], r
}

func (w *week) level(f *film, name string, at time.Time) float64 {
	s, r := w.of(name)
	keep := math.Exp(-f.seconds / s.tau.Seconds())
	w.slow[name] = keep*w.slow[name] + math.Sqrt(1-keep*keep)*f.random.NormFloat64()
	phase := time.Duration(r.Int64N(int64(24 * time.Hour)))
	return s.level(at.Add(w.from), phase) * math.Exp(s.sd*w.slow[name]-s.sd*s.sd/2)
}

// restarted returns the program as it is at a time: its counters begin again after its restart.
func (w *week) restarted(f *film, name string, a *actor, left float64) *actor {
	_, r := w.of(name)
	_ = r.Int64N(int64(24 * time.Hour)) // the phase
	restart := r.Float64() * float64(f.last) * f.seconds
	if left > restart {
		return a
	}
	again := *a
	again.Began = max(1, restart-down.Seconds())
	if left <= again.Began && left > again.Began-f.seconds {
		for _, t := range f.series {
			if t.labels["workload"] == name || t.labels["name"] == name {
				t.sum = 0
			}
		}
	}
	return &again
}

// plain reports whether a scene adds nothing to a machine that a rule may judge.
func (m *scene) plain() bool {
	for series := range m.Extra {
		if !strings.HasPrefix(series, "node_") {
			return false
		}
	}
	for series := range m.Gauges {
		if !strings.HasPrefix(series, "node_") {
			return false
		}
	}
	return len(m.Find)+len(m.Must)+len(m.Allow)+len(m.Without) == 0 && m.Steal+m.Reclaim+m.Network.Resent+m.Network.Drops == 0 && len(m.Machines) == 1
}

// full reports whether the enclaves of a scene fill its enclave page cache. Together with others they would not.
func (m *scene) full() bool {
	inside := 0.0
	for _, a := range m.Workloads {
		if a.TEE == "sgx" {
			inside += a.Inside
		}
	}
	return m.EPC > 0 && inside >= 0.85*m.EPC
}

// healthyMachines are machines with the programs of all scenes in which nothing is wrong, by TEE. Scenes with a full enclave page cache
// are machines of their own.
func healthyMachines(t *testing.T) map[string]*scene {
	t.Helper()
	all := make(map[string]*scene)
	cores := make(map[string]float64)
	for _, s := range scenes(t) {
		if !s.plain() {
			continue
		}
		of := s.TEE
		if s.full() {
			of = s.name
		}
		for name, a := range s.Workloads {
			if a.Was != nil || a.Began > 0 || a.IO > 0.3 || daemons[name] {
				continue
			}
			m := all[of]
			if m == nil {
				m = &scene{GHz: s.GHz, TEE: s.TEE, Nodes: 1, DiskMS: 0.4, Interval: duration(15 * time.Second), Machines: []string{host}, Workloads: map[string]*actor{}, name: of}
				all[of] = m
			}
			m.Workloads[s.name+"-"+name] = a
			cores[of] += a.User + a.System
		}
		if m := all[of]; m != nil {
			m.EPC += s.EPC
		}
	}
	for tee, m := range all {
		m.CPUs = 8 + int(1.5*cores[tee])
	}
	return all
}

// An opening is a finding that opened, or whose severity rose.
type opening struct {
	rule, workload string
	severity       analysis.Severity
}

// watch looks at a machine each minute, as a server does, and returns the number of looks. It reports what opened in each chunk.
func (m *scene) watch(t *testing.T, w *week, lasts, step time.Duration, report func(opened map[opening]int)) (looks int) {
	t.Helper()
	opened := make(map[opening]int)
	l, err := ledger.Open("", slog.New(slog.DiscardHandler), func(e ledger.Event) {
		if e.Kind == ledger.Opened || e.Kind == ledger.SeverityChanged && e.Finding.Severity.AtLeast(e.Was) {
			if opened[opening{e.Finding.Rule, e.Finding.Workload, e.Finding.Severity}]++; e.Finding.Severity != analysis.Info {
				t.Logf("%s: %s at %s (%s): %s", e.At.Add(w.from).Format("Mon 15:04"), e.Finding.Rule, e.Finding.Workload, e.Finding.Severity, e.Finding.Cause)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &film{scene: m, instance: host, seconds: time.Duration(m.Interval).Seconds(), series: map[string]*track{}, load: map[string]float64{}, week: w,
		random: rand.New(rand.NewPCG(w.seed, 1))}
	var memo engine.Memo
	steps := func(d time.Duration) int { return int(d.Seconds() / f.seconds) }
	f.last = steps(sceneHistory + lasts)
	f.advance(steps(sceneHistory) + 1)
	for done := time.Duration(0); done < lasts; done += weekChunk {
		f.advance(steps(weekChunk))
		from := begin.Add(sceneHistory + done)
		source := lookAhead(m.store(t, slices.Collect(maps.Values(f.series)), f.times), from.Add(weekChunk), step)
		for at := from.Add(step); !at.After(from.Add(weekChunk)); at = at.Add(step) {
			open := l.Severities()
			r, err := engine.Evaluate(t.Context(), source, rules.All(), engine.Options{Window: sceneWindow, At: at, Timeout: 10 * time.Minute, PerQuery: time.Minute, Limiter: rules.Limits(), Memo: &memo,
				Open: func(rule, workload, instance string) analysis.Severity {
					return open[analysis.ID(rule, workload, instance)]
				}})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range r.Problems {
				if p.Kind == query.Failed || p.Kind == query.Broken || p.Kind == query.Bounded {
					t.Fatalf("%s: %s (%s)", p.Kind, p.Error, p.Query)
				}
			}
			if err := l.Update(ledger.Observation{At: at, Window: sceneWindow, Findings: r.Findings, AtOnce: r.AtOnce, Knows: r.Knows}); err != nil {
				t.Fatal(err)
			}
			looks++
		}
		f.forget(steps(sceneHistory) + 1)
		report(opened)
		clear(opened)
	}
	return looks
}

// A census counts what opened on machines on which nothing is wrong.
type census struct {
	mu     sync.Mutex
	opened map[opening]int
	weeks  float64 // of a workload
}

// add adds a part of a week of a machine, and returns a summary of all so far, because a long simulation may be ended early.
func (c *census) add(opened map[opening]int, weeks float64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for o, n := range opened {
		c.opened[o] += n
	}
	c.weeks += weeks
	above, of := 0.0, map[string]int{}
	for o, n := range c.opened {
		of[o.rule+" "+string(o.severity)] += n
		if o.severity != analysis.Info {
			above += float64(n)
		}
	}
	return fmt.Sprintf("%.1f weeks of a workload: %.0f findings above info, %.2f a week for %d workloads, at most %.2f with 95 %% confidence; %v",
		c.weeks, above, above/c.weeks*workloads, workloads, poissonUpper(above)/c.weeks*workloads, of)
}

// TestHealthyWeek: on machines whose programs have nothing wrong, no rule opens a finding above info. The load varies by chance, by
// day, by weekend and by periodic jobs, and each program is restarted once. By default it is a part of a Monday, and with HEALTHY_DAYS
// it begins on Thursday and also writes the rate of each rule. More than a week are several weeks with other loads.
func TestHealthyWeek(t *testing.T) {
	from, lasts, step := 4*24*time.Hour+7*time.Hour, 3*time.Hour, 3*time.Minute
	if days, _ := strconv.ParseFloat(os.Getenv(weekDays), 64); days > 0 {
		from, lasts, step = 0, time.Duration(days*float64(24*time.Hour)).Truncate(weekChunk), time.Minute
	}
	all := census{opened: make(map[opening]int)}
	machines := healthyMachines(t)
	watched := 0
	for _, m := range machines {
		watched += len(m.Workloads)
	}
	first, _ := strconv.ParseUint(cmp.Or(os.Getenv(weekSeed), "7"), 10, 64)
	t.Run("weeks", func(t *testing.T) {
		const most = 7 * 24 * time.Hour
		for seed := first; lasts > 0; seed, lasts = seed+1, lasts-most {
			its := min(lasts, most)
			for _, tee := range slices.Sorted(maps.Keys(machines)) {
				t.Run(fmt.Sprintf("%d-%s", seed, tee), func(t *testing.T) {
					t.Parallel()
					m := machines[tee]
					chunks := 0
					looks := m.watch(t, &week{from: from, seed: seed, slow: make(map[string]float64)}, its, step, func(opened map[opening]int) {
						sum := all.add(opened, float64(len(m.Workloads))*weekChunk.Hours()/(7*24))
						if chunks++; chunks%24 == 0 || time.Duration(chunks)*weekChunk >= its {
							t.Logf("%s: together %s", time.Duration(chunks)*weekChunk, sum)
						}
					})
					t.Logf("%d workloads, %d CPUs, %d looks in %s", len(m.Workloads), m.CPUs, looks, its)
				})
			}
		}
	})
	of := map[string]map[analysis.Severity]int{}
	for o, n := range all.opened {
		if o.severity != analysis.Info {
			t.Errorf("%s opens %d times at %s with the severity %s", o.rule, n, o.workload, o.severity)
		}
		if of[o.rule] == nil {
			of[o.rule] = map[analysis.Severity]int{}
		}
		of[o.rule][cmp.Or(o.severity, analysis.Info)] += n
	}
	for _, rule := range rules.All() {
		text := ""
		for severity, n := range of[rule.Name] {
			text += fmt.Sprintf(" %s %d (%.1f a week)", severity, n, float64(n)/all.weeks*workloads)
		}
		t.Logf("%-22s%s", rule.Name, cmp.Or(text, " nothing"))
	}
	t.Log(all.add(nil, 0))
	if watched < 30 || len(machines) < 3 {
		t.Errorf("%d workloads of %d machines: the test shows little", watched, len(machines))
	}
}
