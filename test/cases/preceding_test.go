// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/events"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/server/findings"
)

// A timeline is a machine that is watched for 25 hours. Steps are half minutes.
type timeline struct{ fleet }

const (
	lineStep = 30 * time.Second
	lineAll  = 25 * 120 // steps
)

// minute is a time after the beginning of the timeline.
func minute(m float64) time.Time { return begin.Add(time.Duration(m * float64(time.Minute))) }

func (l timeline) series(values, format string, args ...any) {
	l.Helper()
	if err := l.AddSequence(fmt.Sprintf(format, args...), values, begin, lineStep); err != nil {
		l.Fatal(err)
	}
}

// judge runs an analyst from a time on for this long, and returns its finding about redis.
func (l timeline) judge(a *findings.Analyst, from time.Time, long time.Duration) analysis.Finding {
	l.Helper()
	if err := a.Init(l.Context()); err != nil {
		l.Fatal(err)
	}
	time.Sleep(time.Until(from))
	ctx, stop := context.WithCancel(l.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	time.Sleep(long + time.Second)
	synctest.Wait()
	report, err := a.Newest()
	stop()
	if ended := <-done; err != nil || ended != nil {
		l.Fatal(err, ended)
	}
	i := slices.IndexFunc(report.Findings, func(f analysis.Finding) bool { return f.Workload == "redis" && f.Severity.AtLeast(analysis.Medium) })
	if i < 0 {
		l.Fatalf("found %+v", report.Findings)
	}
	return report.Findings[i]
}

// counter increases by one rate before a step, and by another one from then on.
func counter(before, after float64, change int) string {
	b, a := before*lineStep.Seconds(), after*lineStep.Seconds()
	return fmt.Sprintf("0+%gx%d %g+%gx%d", b, change-1, b*float64(change-1)+a, a, lineAll-change)
}

// existing is a gauge of 1 in these steps only.
func existing(from, to int) string {
	if from == 0 {
		return fmt.Sprintf("1x%d", to)
	}
	return fmt.Sprintf("_x%d 1x%d", from, to-from)
}

// workload adds a workload that makes few calls, and many from a step on. It uses these cores.
func (l timeline) workload(name, tee string, cores, calls, many float64, from, change, to int) {
	of := fmt.Sprintf(`workload=%q,instance="a:1"`, name)
	l.series(existing(from, to), `teescope_workload_info{%s,tee=%q,runtime="gramine-sgx"}`, of, tee)
	l.series(existing(from, to), `teescope_processes{%s}`, of)
	if from > 0 {
		l.series(fmt.Sprintf("_x%d 0+%gx%d", from, cores*lineStep.Seconds(), to-from), `teescope_cpu_seconds_total{%s,mode="user"}`, of)
		return
	}
	l.series(existing(from, to), `teescope_threads{%s}`, of)
	l.series(counter(0.7*cores, 0.7*cores, change), `teescope_cpu_seconds_total{%s,mode="user"}`, of)
	l.series(counter(0.2*cores, 0.2*cores, change), `teescope_cpu_seconds_total{%s,mode="system"}`, of)
	l.series(counter(calls, many, change), `teescope_enclave_transitions_total{%s,kind="eexit"}`, of)
	l.series(counter(calls, many, change), `teescope_syscalls_total{%s,syscall="call000"}`, of)
}

// moments is a gauge with the newest of some times, in minutes after the beginning.
func moments(minutes ...float64) string {
	var parts []string
	for i, m := range minutes {
		next := lineAll
		if i+1 < len(minutes) {
			next = int(minutes[i+1] * 2)
		}
		from := int(m * 2)
		if i == 0 && from > 0 {
			parts = append(parts, fmt.Sprintf("_x%d", from))
		}
		parts = append(parts, fmt.Sprintf("%dx%d", minute(m).Unix(), next-from-1))
	}
	return strings.Join(parts, " ")
}

// TestAFindingNamesWhatPrecededIt: calls become many at minute 1440. The events are at known times before, and the looks of a
// real server begin at minute 1420.
func TestAFindingNamesWhatPrecededIt(t *testing.T) {
	const change = 1440
	var hourly []float64
	for m := 15.0; m < change; m += 60 {
		hourly = append(hourly, m) // the last one at 1395, another one at 1437
	}
	for _, tt := range some([]struct {
		name   string
		events string
		values string
		at     float64 // of the named event; 0: none
		what   string
	}{
		{"a restart", `teescope_workload_change_timestamp_seconds{workload="redis",instance="a:1",change="restart"}`, moments(100, 1439), 1439, "redis was restarted"},
		{
			"a deployment", `teescope_workload_change_timestamp_seconds{workload="redis",instance="a:1",change="deployment"}`, moments(1439), 1439,
			"redis began with another program file",
		},
		{
			"another image", `teescope_container_change_timestamp_seconds{workload="redis",instance="a:1",name="cache",image="r:2",change="deployment"}`,
			moments(1439), 1439, "cache began with another image, r:2",
		},
		{"nothing", `teescope_workload_change_timestamp_seconds{workload="nginx",instance="a:1",change="restart"}`, moments(1439), 0, ""},
		{"on another machine", `teescope_workload_change_timestamp_seconds{workload="redis",instance="b:1",change="restart"}`, moments(1439), 0, ""},
		{"a restart long before", `teescope_workload_change_timestamp_seconds{workload="redis",instance="a:1",change="restart"}`, moments(100, 1425), 0, ""},
		{
			"restarts every hour", `teescope_workload_change_timestamp_seconds{workload="redis",instance="a:1",change="restart"}`,
			moments(append(slices.Clone(hourly), 1438)...), 0, "",
		},
	}, 3) {
		synctest.Test(t, func(t *testing.T) {
			l := timeline{newFleet(t)}
			l.series(existing(0, lineAll), `teescope_build_info{instance="a:1"}`)
			l.workload("redis", "sgx", 1, 10, chatter, 0, change*2, lineAll)
			l.series(tt.values, "%s", tt.events)
			dir := t.TempDir()
			a := findings.New(findings.Options{
				Source: l.source(), Rules: rules.All(), Interval: time.Minute, Window: 5 * time.Minute, Scrape: lineStep, Log: slog.New(slog.DiscardHandler),
				File: filepath.Join(dir, "findings"), HistoryFile: filepath.Join(dir, "history"),
			})
			f := l.judge(a, minute(1420), 25*time.Minute)
			if tt.at == 0 {
				if len(f.Preceded) != 0 {
					t.Errorf("%s: %+v", tt.name, f.Preceded)
				}
				return
			}
			if len(f.Preceded) != 1 || f.Preceded[0].What != tt.what || !f.Preceded[0].At.Equal(minute(tt.at)) ||
				f.Preceded[0].Seconds != f.FirstSeen.Sub(minute(tt.at)).Seconds() || f.Preceded[0].Chance > events.MaxChance {
				t.Errorf("%s: first seen at %s, preceded by %+v", tt.name, f.FirstSeen, f.Preceded)
			}
			// Before the event and the day before, it made 10 calls a second. There is no week before.
			if len(f.Earlier) != 2 || f.Earlier[0].Ago != f.Preceded[0].Seconds || f.Earlier[1].Ago != 86_400 {
				t.Fatalf("%s: earlier %+v", tt.name, f.Earlier)
			}
			for _, e := range f.Earlier {
				if e.Name != f.Evidence[0].Name || e.Value > f.Evidence[0].Value/2 {
					t.Errorf("%s: earlier %+v, now %+v", tt.name, e, f.Evidence[0])
				}
			}
		})
	}
}

// TestNewNeighbours: workloads that begin beside redis. Each case has the ones that are named at minute 1440.
func TestNewNeighbours(t *testing.T) {
	for _, tt := range []struct {
		name   string
		shared analysis.Resource
		add    func(l timeline)
		want   []string
	}{
		{"an enclave, for EPC", analysis.SharedEPC, func(l timeline) { l.workload("new", "sgx", 0.5, 0, 0, 2872, 2872, lineAll) }, []string{"new 1436"}},
		{"an enclave, for a rule about neither", "", func(l timeline) { l.workload("new", "sgx", 0.5, 0, 0, 2872, 2872, lineAll) }, nil},
		{"no enclave, for EPC", analysis.SharedEPC, func(l timeline) { l.workload("new", "none", 0.5, 0, 0, 2872, 2872, lineAll) }, nil},
		{"a busy one, for CPU", analysis.SharedCPU, func(l timeline) { l.workload("new", "none", 0.5, 0, 0, 2872, 2872, lineAll) }, []string{"new 1436"}},
		{"an idle one, for CPU", analysis.SharedCPU, func(l timeline) { l.workload("new", "none", 0.01, 0, 0, 2872, 2872, lineAll) }, nil},
		{"one that began earlier", analysis.SharedEPC, func(l timeline) { l.workload("new", "sgx", 0.5, 0, 0, 2800, 2800, lineAll) }, nil},
		{"one that is there for long", analysis.SharedEPC, func(l timeline) { l.workload("old", "sgx", 0.5, 0, 0, 0, 2, lineAll) }, nil},
		{"one that ran in the morning too", analysis.SharedEPC, func(l timeline) {
			l.workload("cron", "sgx", 0.5, 0, 0, 1000, 1000, 1100)
			l.series(existing(2872, lineAll), `teescope_processes{workload="cron",instance="a:1",again="yes"}`)
			l.series(existing(2872, lineAll), `teescope_workload_info{workload="cron",instance="a:1",tee="sgx",again="yes"}`)
		}, nil},
		{"new ones all the time", analysis.SharedEPC, func(l timeline) {
			for i := range 140 {
				l.workload(fmt.Sprintf("job%d", i), "sgx", 0.5, 0, 0, 100+i*20, 100, 100+i*20+15)
			}
			l.workload("new", "sgx", 0.5, 0, 0, 2872, 2872, lineAll)
		}, nil},
		{"one on another machine", analysis.SharedEPC, func(l timeline) {
			l.series(existing(2872, lineAll), `teescope_processes{workload="new",instance="b:1"}`)
			l.series(existing(2872, lineAll), `teescope_workload_info{workload="new",instance="b:1",tee="sgx"}`)
		}, nil},
		{"a container that replaces another one", analysis.SharedEPC, func(l timeline) {
			l.workload("new", "sgx", 0.5, 0, 0, 2872, 2872, lineAll)
			l.series(moments(1436), `teescope_container_change_timestamp_seconds{workload="new",instance="a:1",name="n",change="restart"}`)
		}, nil},
	} {
		l := timeline{newFleet(t)}
		l.workload("redis", "sgx", 1, 10, 10, 0, 2, lineAll)
		tt.add(l)
		q := query.NewAsker(t.Context(), l.source(), time.Minute)
		named, answered := events.Before(q, query.Target{Workload: "redis", Instance: "a:1"}, tt.shared, minute(1440))
		if !answered {
			t.Errorf("%s: %+v", tt.name, q.Problems)
		}
		var got []string
		for _, e := range named {
			got = append(got, fmt.Sprintf("%s %.0f", e.Workload, e.At.Sub(begin).Minutes()))
			if e.Kind != analysis.Neighbour || e.What != e.Workload+" began on the same machine" {
				t.Errorf("%s: %+v", tt.name, e)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: named %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A query that fails is no answer. Names of other users are quoted.
func TestBeforeWithoutAnAnswer(t *testing.T) {
	l := timeline{newFleet(t)}
	l.workload(`re"dis\`, "sgx", 1, 10, 10, 0, 2, lineAll)
	l.series(moments(1439), `teescope_workload_change_timestamp_seconds{workload="re\"dis\\",instance="a:1",change="restart"}`)
	who := query.Target{Workload: `re"dis\`, Instance: "a:1"}
	named, answered := events.Before(query.NewAsker(t.Context(), l.source(), time.Minute), who, analysis.SharedCPU, minute(1440))
	if !answered || len(named) != 1 {
		t.Errorf("%v: %+v", answered, named)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, answered := events.Before(query.NewAsker(ctx, l.source(), time.Minute), who, analysis.SharedCPU, minute(1440)); answered {
		t.Error("a cancelled query is an answer")
	}
}
