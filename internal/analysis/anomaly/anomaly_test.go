// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/query/querytest"
	"github.com/teescope/teescope/internal/analysis/window"
)

// look computes windows at noon and searches for anomalies.
func look(t *testing.T, source *querytest.Canned) ([]Anomaly, []analysis.Finding, []query.Problem) {
	t.Helper()
	stats, problems := window.Compute(t.Context(), source, querytest.Noon, window.Options{})
	found, more := Find(t.Context(), source, querytest.Noon, stats, Options{})
	return found, Findings(found, querytest.Noon, 0), append(problems, more...)
}

// constant returns a noisy level of a workload.
func constant(workload string, level float64) func(time.Time) map[string]float64 {
	return func(at time.Time) map[string]float64 { return map[string]float64{workload: querytest.Noisy(at, level)} }
}

// from returns levels of a workload that change at a moment.
func from(moment time.Time, workload string, before, after float64) func(time.Time) map[string]float64 {
	return func(at time.Time) map[string]float64 {
		if at.After(moment) {
			return map[string]float64{workload: querytest.Noisy(at, after)}
		}
		return map[string]float64{workload: querytest.Noisy(at, before)}
	}
}

func TestNothingUnusual(t *testing.T) {
	found, findings, problems := look(t, &querytest.Canned{Instants: querytest.Scraped(), Value: map[string]func(time.Time) map[string]float64{
		"teescope_syscalls_total": constant("redis", 50_000), "teescope_cpu_seconds": constant("redis", 0.8),
	}})
	if len(found) > 0 || len(findings) > 0 || len(problems) > 0 {
		t.Errorf("found in noise: %+v, %+v", findings, problems)
	}
}

func TestChangeWithRestart(t *testing.T) {
	moment := querytest.Noon.Add(-12 * time.Minute)
	source := &querytest.Canned{Instants: querytest.Scraped(), Value: map[string]func(time.Time) map[string]float64{
		"teescope_syscalls_total":                     from(moment, "redis", 20_500, 65_000),
		`teescope_context_switches_total{kind="volun`: from(moment, "redis", 5500, 2000),
		"teescope_cpu_migrations_total":               from(moment, "redis", 1, 4), // too few to matter
		"increase(teescope_execs_total":               func(at time.Time) map[string]float64 { return onlyAt(at, moment.Add(30*time.Second), "redis") },
		"teescope_thread_starts_total":                from(moment, "kernel", 10, 4000),
	}}
	found, findings, _ := look(t, source)
	var change *analysis.Finding
	for i := range findings {
		if findings[i].Rule == ChangeRule {
			change = &findings[i]
		}
	}
	if change == nil {
		t.Fatalf("no change in %+v", found)
	}
	if change.Workload != "redis" || change.Severity != analysis.Info || change.ID != analysis.ID(ChangeRule, "redis", "here") || !change.LastSeen.Equal(querytest.Noon) {
		t.Errorf("%+v", change)
	}
	if off := change.FirstSeen.Sub(moment).Abs(); off > time.Minute {
		t.Errorf("the change is reported at %v, off by %v", change.FirstSeen, off)
	}
	for _, want := range []string{`system calls 2\d{4} -> 6\d{4} calls/s \(x3\.`, `threads that waited 5\d{3} -> 2\d{3} `, "one of its programs ended and one was started"} {
		if !regexp.MustCompile(want).MatchString(change.Cause) {
			t.Errorf("%q is not in %q", want, change.Cause)
		}
	}
	if strings.Contains(change.Cause, "moves of threads") || len(change.Evidence) != 4 {
		t.Errorf("%q, evidence %+v", change.Cause, change.Evidence)
	}
	e := change.Evidence[0]
	if e.Unit != "1/s" || e.Low == nil || *e.Low > e.Value || e.N < 10 ||
		e.Query != `sum by (instance, workload) (rate(teescope_syscalls_total{workload="redis"}[30s]))` {
		t.Errorf("%+v", e)
	}
	if q := change.Evidence[2].Query; q != `sum by (instance, workload) (rate(teescope_context_switches_total{workload="redis",kind="voluntary"}[30s]))` {
		t.Errorf("%s", q)
	}
}

func onlyAt(at, moment time.Time, workload string) map[string]float64 {
	if at.Equal(moment) {
		return map[string]float64{workload: 1}
	}
	return nil
}

// TestManyNoisySeries: an evaluation of thousands of series finds nothing in noise, whether its values are independent
// or not.
func TestManyNoisySeries(t *testing.T) {
	value := make(map[string]func(time.Time) map[string]float64)
	for n, m := range window.Metrics() {
		if m.Machine {
			continue
		}
		value[m.Selector] = func(at time.Time) map[string]float64 {
			v := make(map[string]float64, 100)
			for i := range 100 {
				other := at.Add(time.Duration(100*n+i) * 1000 * time.Hour)
				z := querytest.Noisy(other, 20) - 20
				if i%2 == 1 { // each depends on the two before it
					z = (z + querytest.Noisy(other.Add(-30*time.Second), 20) + querytest.Noisy(other.Add(-time.Minute), 20) - 40) / math.Sqrt(3)
				}
				v[fmt.Sprintf("w%d", i)] = 1e8 * math.Exp(0.5*z) // spread over a factor of ten
			}
			return v
		}
	}
	found, _, _ := look(t, &querytest.Canned{Instants: querytest.Scraped(), Value: value})
	if len(found) > 0 {
		t.Errorf("%d anomalies in %d series of noise, the first: %+v", len(found), 100*len(value), found[0])
	}
}

func TestMeasuringChanged(t *testing.T) {
	moment := querytest.Noon.Add(-10 * time.Minute)
	level := func(name string, from, to int) query.Series { // in half minutes since half an hour ago
		s := query.Series{Labels: map[string]string{"instance": "here", "level": name}}
		for i := from; i <= to; i++ {
			s.Points = append(s.Points, query.Point{Time: querytest.Noon.Add(-30*time.Minute + time.Duration(i)*30*time.Second), Value: 1})
		}
		return s
	}
	full := level("full", 0, 5)
	full.Points = append(full.Points, level("full", 40, 60).Points...)
	source := &querytest.Canned{Value: map[string]func(time.Time) map[string]float64{
		"teescope_syscalls_total": from(moment, "redis", 20_000, 60_000),
	}, Instants: map[string][]query.Sample{
		"teescope_build_info[":       {{Value: 60}},
		"process_start_time_seconds": {{Labels: map[string]string{"instance": "here"}, Value: float64(moment.Unix())}},
	}, Ranges: map[string][]query.Series{"teescope_self_level": {full, level("sampled", 6, 39)}}}
	_, findings, _ := look(t, source)
	findings = slices.DeleteFunc(findings, func(f analysis.Finding) bool { return f.Rule != ChangeRule })
	if len(findings) != 1 || findings[0].Confidence != analysis.Possible || !strings.Contains(findings[0].Cause, "teescope was started") ||
		!strings.Contains(findings[0].Cause, "counts at the level full; before: teescope counts at the level sampled (11:50:00)") {
		t.Errorf("%+v", findings)
	}
}

// TestContainerReplaced: a new container is a new workload, and the change between the two is found.
func TestContainerReplaced(t *testing.T) {
	moment := querytest.Noon.Add(-15 * time.Minute)
	halves := func(before, after float64) func(time.Time) map[string]float64 {
		return func(at time.Time) map[string]float64 {
			if at.After(moment) {
				return map[string]float64{"c2": querytest.Noisy(at, after)}
			}
			return map[string]float64{"c1": querytest.Noisy(at, before)}
		}
	}
	info := func(workload, image string, from, to time.Time) query.Series {
		return query.Series{Labels: map[string]string{"instance": "here", "workload": workload, "name": "shop", "image": image}, Points: []query.Point{{Time: from, Value: 1}, {Time: to, Value: 1}}}
	}
	source := &querytest.Canned{Instants: querytest.Scraped(), Value: map[string]func(time.Time) map[string]float64{
		"teescope_syscalls_total": halves(20_000, 90_000),
	}, Ranges: map[string][]query.Series{"max by (instance, workload, container, namespace, name, image)": {
		info("c2", "shop:2", moment, querytest.Noon), info("c1", "shop:1", querytest.Noon.Add(-30*time.Minute), moment.Add(-30*time.Second)),
	}}}
	_, findings, _ := look(t, source)
	findings = slices.DeleteFunc(findings, func(f analysis.Finding) bool { return f.Rule != ChangeRule })
	if len(findings) != 1 || findings[0].Workload != "c2" || !strings.Contains(findings[0].Cause, "image shop:2, before shop:1") {
		t.Errorf("%+v", findings)
	}
}

// storedAt returns stored windows of a workload at a level that depends on the time.
func storedAt(level func(time.Time) float64) func(time.Time) map[string]float64 {
	return func(at time.Time) map[string]float64 {
		return map[string]float64{"redis": querytest.Noisy(at, level(at))}
	}
}

func TestBaseline(t *testing.T) {
	steady := func(time.Time) float64 { return 10_000 }
	daily := func(at time.Time) float64 { // a job of an hour at noon, each day
		if at.Hour() == 12 || at.Hour() == 11 && at.Minute() >= 40 {
			return 40_000
		}
		return 10_000
	}
	weeks := func(level float64) (all []query.Series) {
		for i := 1; i <= window.Weeks; i++ {
			s := query.Series{Labels: map[string]string{"instance": "here", "workload": "redis", "stat": window.WeekStat(i)}}
			for shift := -30 * time.Minute; shift <= 0; shift += 5 * time.Minute {
				at := querytest.Noon.Add(shift)
				s.Points = append(s.Points, query.Point{Time: at, Value: querytest.Noisy(at.Add(-time.Duration(i)*7*day), level)})
			}
			all = append(all, s)
		}
		return all
	}
	first := func(days int, level func(time.Time) float64) func(time.Time) map[string]float64 {
		from := querytest.Noon.Add(-time.Duration(days) * day)
		return func(at time.Time) map[string]float64 {
			if at.Before(from) {
				return nil
			}
			return storedAt(level)(at)
		}
	}
	for _, c := range []struct {
		name    string
		history func(time.Time) map[string]float64
		carried []query.Series // medians of earlier weeks
		want    string         // in the cause; empty is no finding
	}{
		{"of a day", first(1, steady), nil, `\d+ windows before it: system calls (10|9)\d{3} -> [34]\d{4} calls/s \(x`},
		{"of a day, of the job's level", first(1, func(time.Time) float64 { return 40_000 }), nil, ""},
		{"daily job, after a day", first(3, daily), nil, ""},
		{"daily job", first(10, daily), nil, ""},
		{"daily, without the job", first(10, steady), nil, `the same hour of 10 days: system calls (10|9)\d{3} -> `},
		{"weekly", first(40, func(at time.Time) float64 {
			if at.Weekday() == querytest.Noon.Weekday() {
				return 40_000
			}
			return 10_000
		}), nil, ""},
		{"weekly, of a database that keeps 15 days", first(15, steady), weeks(40_000), ""},
		{"unlike the weeks before", first(15, steady), weeks(10_000), `the same hour of the week in 6 weeks: system calls (10|9)\d{3} -> `},
	} {
		source := &querytest.Canned{Instants: querytest.Scraped(), Value: map[string]func(time.Time) map[string]float64{
			"irate(teescope_syscalls_total":                          storedAt(func(time.Time) float64 { return 40_000 }),
			`window_value{metric="teescope_syscalls",stat="median",`: c.history,
		}, Ranges: map[string][]query.Series{}}
		if c.carried != nil {
			source.Ranges[`metric="teescope_syscalls",stat=~"median.*"`] = c.carried
		}
		_, findings, problems := look(t, source)
		switch {
		case len(problems) > 0:
			t.Errorf("%s: %+v", c.name, problems)
		case c.want == "" && len(findings) > 0:
			t.Errorf("%s: %+v", c.name, findings)
		case c.want != "" && (len(findings) != 1 || findings[0].Rule != BaselineRule || findings[0].Severity != analysis.Info || !regexp.MustCompile(c.want).MatchString(findings[0].Cause)):
			t.Errorf("%s: %+v, want %q", c.name, findings, c.want)
		}
	}
}

func TestBaselineRefuses(t *testing.T) {
	source := &querytest.Canned{Instants: querytest.Scraped(), Value: map[string]func(time.Time) map[string]float64{
		"irate(teescope_syscalls_total": storedAt(func(time.Time) float64 { return 40_000 }),
		"window_value": func(at time.Time) map[string]float64 {
			if at.Before(querytest.Noon.Add(-2 * time.Hour)) {
				return nil
			}
			return map[string]float64{"redis": 1}
		},
	}}
	_, findings, problems := look(t, source)
	if len(findings) > 0 || len(problems) != 1 || problems[0].Kind != query.Absent || !strings.Contains(problems[0].Error, "1 of 1 series have less than 3h of history") {
		t.Errorf("after two hours: %+v, %+v", findings, problems)
	}
}

// TestBaselineWithoutKeptWindows computes the history from the scraped series, as on a Prometheus that stores no
// windows.
func TestBaselineWithoutKeptWindows(t *testing.T) {
	source := &querytest.Canned{Instants: querytest.Scraped(), Value: map[string]func(time.Time) map[string]float64{
		"irate(teescope_syscalls_total":     storedAt(func(time.Time) float64 { return 40_000 }),
		"(rate(teescope_syscalls_total[5m]": storedAt(func(time.Time) float64 { return 0 }),
	}}
	found, findings, problems := look(t, source)
	if len(findings) != 1 || len(problems) > 0 || !math.IsInf(found[0].Z, 1) || found[0].Before.Value != 0 {
		t.Errorf("%+v, %+v", findings, problems)
	}
}
