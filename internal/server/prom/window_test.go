// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/analysis/anomaly"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/window"
)

// filled is a database with generated series. Each has a value at any time.
type filled struct {
	*Server
	tb testing.TB
}

func makeFilled(tb testing.TB) *filled {
	tb.Helper()
	s := New(Options{
		DataDir: tb.TempDir(), Interval: 5 * time.Second, RetentionTime: 24 * time.Hour, Instance: "here",
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err := s.Init(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Shutdown(tb.Context()) })
	return &filled{s, tb}
}

// put adds a series with a sample every five seconds from start to end. labels alternates names and values.
func (f *filled) put(start, end time.Time, value func(time.Time) float64, name string, labels ...string) {
	f.tb.Helper()
	l := map[string]string{"__name__": name, "instance": "here", "job": "teescope"}
	for i := 0; i+1 < len(labels); i += 2 {
		l[labels[i]] = labels[i+1]
	}
	var samples []query.Sample
	for at := start; !at.After(end); at = at.Add(5 * time.Second) {
		samples = append(samples, query.Sample{Labels: l, Time: at, Value: value(at)})
	}
	if err := f.Append(f.tb.Context(), samples); err != nil {
		f.tb.Fatal(err)
	}
}

// clean fails on all problems except missing data.
func clean(t *testing.T, problems []query.Problem) {
	t.Helper()
	for _, p := range problems {
		if p.Kind != query.Absent {
			t.Errorf("%+v", p)
		}
	}
}

// TestWindowsOfTheDatabase computes windows of known series by PromQL, stores them, and reads them back.
func TestWindowsOfTheDatabase(t *testing.T) {
	f := makeFilled(t)
	at := time.Now().Truncate(time.Minute)
	start := at.Add(-6 * time.Minute)
	since := func(t time.Time) float64 { return t.Sub(start).Seconds() }
	one := func(time.Time) float64 { return 1 }
	f.put(start, at, one, "teescope_build_info", "version", "1")
	f.put(start, at, since, "teescope_syscalls_total", "workload", "redis", "syscall", "read")
	f.put(start, at, func(t time.Time) float64 { return 9 * since(t) }, "teescope_syscalls_total", "workload", "redis", "syscall", "write")
	f.put(start, at, func(t time.Time) float64 { // restarted three minutes ago: the counter starts again from zero
		if s := since(t); s >= 180 {
			return s - 180
		}
		return 1e9 + since(t)
	}, "teescope_syscalls_total", "workload", "nginx", "syscall", "read")
	f.put(start, at.Add(-3*time.Minute), since, "teescope_forks_total", "workload", "gone")
	f.put(start, at, func(time.Time) float64 { return 4096 }, "sgx_epc_free_bytes")
	f.put(start, at, since, "teescope_context_switches_total", "workload", "redis", "kind", "voluntary")
	f.put(start, at, func(t time.Time) float64 { return 3 * since(t) }, "teescope_context_switches_total", "workload", "redis", "kind", "involuntary")

	stats, problems := window.Compute(t.Context(), f.Source(), at, window.Options{})
	clean(t, problems)
	if err := window.Store(t.Context(), f, stats, window.Whole(1)); err != nil {
		t.Fatal(err)
	}
	if err := window.Store(t.Context(), f, stats, window.Whole(1)); err != nil {
		t.Errorf("again: %v", err)
	}
	found := make(map[string]string)
	for _, s := range stats {
		found[s.Metric.Name+" "+s.Workload] = fmt.Sprintf("%g %d of %d", s.Box.Median, s.Box.N, s.Expected)
	}
	for name, want := range map[string]string{
		"teescope_syscalls redis": "10 60 of 60", "teescope_syscalls nginx": "1 60 of 60",
		"teescope_context_switches_voluntary redis": "1 60 of 60", "teescope_context_switches_involuntary redis": "3 60 of 60",
		"sgx_epc_free_bytes ": "4096 60 of 60",
	} {
		if found[name] != want {
			t.Errorf("%s is %q, want %s", name, found[name], want)
		}
	}
	var n int
	if got := found["teescope_forks gone"]; got == "" {
		t.Error("a workload that ended within the window has no box plot")
	} else if _, err := fmt.Sscanf(got, "1 %d of 60", &n); err != nil || n < 23 || n > 26 {
		t.Errorf("of a workload that was there for two minutes of five: %s", got)
	}
	kept, err := f.Source().Instant(t.Context(), `teescope:window_value{metric="teescope_syscalls",workload="redis",stat="median",window="5m"}`, at)
	if err != nil || len(kept) != 1 || kept[0].Value != 10 || kept[0].Labels["instance"] != "here" {
		t.Errorf("stored: %+v, %v", kept, err)
	}
}

// TestWeeksInTheDatabase carries medians of last week and of the week before it to now.
func TestWeeksInTheDatabase(t *testing.T) {
	f := makeFilled(t)
	now := time.Now().Truncate(5 * time.Minute)
	before := now.Add(-7 * 24 * time.Hour)
	for _, s := range []struct {
		stat  string
		value float64
	}{{"median", 10}, {"median_1w", 20}, {"median_6w", 60}, {"q3", 70}} {
		f.put(before, before, func(time.Time) float64 { return s.value }, window.ValueFamily, "metric", "teescope_syscalls", "stat", s.stat, "window", "5m", "workload", "redis")
	}
	q := query.NewAsker(t.Context(), f.Source(), time.Minute)
	for range 2 { // again after a restart
		if err := window.CarryWeeks(t.Context(), q, f, now.Add(time.Second), 5*time.Minute, window.Metrics()); err != nil || len(q.Problems) > 0 {
			t.Fatal(err, q.Problems)
		}
	}
	found, err := f.Source().Instant(t.Context(), `sort({__name__="teescope:window_value"})`, now)
	if err != nil || len(found) != 2 || found[0].Labels["stat"] != "median_1w" || found[0].Value != 10 || found[1].Labels["stat"] != "median_2w" || found[1].Value != 20 ||
		found[1].Labels["workload"] != "redis" || found[1].Labels["instance"] != "here" || found[1].Labels["metric"] != "teescope_syscalls" {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestChangeInTheDatabase: the queries for coincidences are joins, which only PromQL itself can test.
func TestChangeInTheDatabase(t *testing.T) {
	f := makeFilled(t)
	at := time.Now().Truncate(time.Minute)
	start, moment := at.Add(-40*time.Minute), at.Add(-15*time.Minute)
	one := func(time.Time) float64 { return 1 }
	is := func(v time.Time) func(time.Time) float64 {
		return func(time.Time) float64 { return float64(v.UnixMilli()) / 1000 }
	}
	stepping := func(rate, after float64) func(time.Time) float64 {
		return func(t time.Time) float64 {
			n := float64(t.Unix() % 7) // noise
			return rate*min(t.Sub(start).Seconds(), moment.Sub(start).Seconds()) + after*max(0, t.Sub(moment).Seconds()) + n*rate/10
		}
	}
	f.put(start, at, one, "teescope_build_info", "version", "1")
	f.put(start, at, is(start.Add(-time.Hour)), "process_start_time_seconds")
	f.put(start, at, stepping(20_000, 80_000), "teescope_syscalls_total", "workload", "c1", "syscall", "futex")
	f.put(start, at, stepping(20_000, 20_000), "teescope_syscalls_total", "workload", "c2", "syscall", "futex")
	for _, c := range []string{"c1", "c2"} {
		f.put(start, at, one, "teescope_container_info", "workload", c, "id", "/docker/"+c, "name", c, "image", "i")
		f.put(start, at, one, "teescope_workload_info", "workload", c, "tee", "sgx", "runtime", "gramine-sgx", "kind", "container")
		f.put(start, at, stepping(0, 0), "teescope_execs_total", "workload", c)
	}
	f.put(start, at, one, "teescope_self_level", "level", "full")
	for _, level := range []string{"incomplete", "untimed", "sampled", "totals", "off"} {
		f.put(start, at, func(time.Time) float64 { return 0 }, "teescope_self_level", "level", level)
	}
	f.put(start, at, is(moment.Add(3*time.Second)), "container_start_time_seconds", "id", "/docker/c1", "name", "c1", "image", "i")
	f.put(start, at, is(moment.Add(5*time.Second)), "sgx_enclave_start_time_seconds", "enclave", "1", "pid", "7")
	f.put(start, at, one, "sgx_enclave_info", "enclave", "1", "pid", "7", "workload", "c1")

	stats, problems := window.Compute(t.Context(), f.Source(), at, window.Options{})
	clean(t, problems)
	found, problems := anomaly.Find(t.Context(), f.Source(), at, stats, anomaly.Options{})
	clean(t, problems)
	findings := anomaly.Findings(found, at, 0)
	if len(findings) != 1 || findings[0].Rule != anomaly.ChangeRule || findings[0].Workload != "c1" {
		t.Fatalf("%+v", findings)
	}
	for _, want := range []string{"the container was started", "an enclave was created"} {
		if !strings.Contains(findings[0].Cause, want) {
			t.Errorf("%q is not in %q", want, findings[0].Cause)
		}
	}
	if off := findings[0].FirstSeen.Sub(moment).Abs(); off > time.Minute {
		t.Errorf("the change is %v off", off)
	}
	if got, err := f.Source().Instant(t.Context(), findings[0].Evidence[1].Query, at); err != nil || len(got) != 1 || math.Abs(got[0].Value-80_000) > 8000 {
		t.Errorf("%s is %+v, %v", findings[0].Evidence[1].Query, got, err)
	}
}

// BenchmarkWindows uses 128 workloads with everything that is measured every 5 s: 51 system calls each, page faults by
// mode and reason, ocalls by name. Windows are of five minutes, changes of half an hour, and baselines of half an hour
// of stored windows. cpu-ms/op is for the whole process.
func BenchmarkWindows(b *testing.B) {
	f := makeFilled(b)
	at := time.Now().Truncate(time.Minute)
	start := at.Add(-31 * time.Minute)
	f.put(start, at, func(time.Time) float64 { return 1 }, "teescope_build_info")
	series := 0
	for w := range 128 {
		count := func(t time.Time) float64 {
			return float64(w+1) * t.Sub(start).Seconds() * (1000 + float64(t.Unix()%13))
		}
		put := func(family string, labels ...string) {
			series++
			f.put(start, at, count, family, append([]string{"workload", fmt.Sprintf("workload%03d", w)}, labels...)...)
		}
		several := func(n int, family, label string, more ...string) {
			for i := range n {
				put(family, append([]string{label, fmt.Sprintf("%s%d", label, i)}, more...)...)
			}
		}
		several(51, "teescope_syscalls_total", "syscall")
		several(6, "teescope_page_faults_total", "reason", "mode", "user")
		several(4, "teescope_page_faults_total", "reason", "mode", "kernel")
		several(20, "teescope_ocalls_total", "ocall")
		several(10, "teescope_ecalls_total", "ecall")
		several(2, "teescope_cpu_seconds_total", "mode")
		put("teescope_page_faults_handled_total", "type", "major")
		for _, kind := range []string{"voluntary", "involuntary"} {
			put("teescope_context_switches_total", "kind", kind)
		}
		for _, kind := range []string{"eenter", "eexit", "aex"} {
			put("teescope_enclave_transitions_total", "kind", kind)
		}
		for _, family := range []string{
			"teescope_cpu_migrations_total", "teescope_forks_total", "teescope_llc_misses_total", "teescope_run_queue_wait_seconds_total",
			"teescope_thread_starts_total", "sgx_workload_enclaves_created_total", "sgx_workload_faults_total", "sgx_workload_pages_added_total",
			"sgx_workload_pages_augmented_total", "sgx_workload_pages_evicted_total", "sgx_workload_pages_loaded_back_total",
			"sgx_workload_resident_bytes", "sgx_workload_working_set_bytes",
		} {
			put(family)
		}
	}
	run := func(name string, do func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			before, n := cpuTime(b), 0
			for b.Loop() {
				do(b)
				n++
			}
			b.ReportMetric(float64((cpuTime(b)-before).Milliseconds())/float64(n), "cpu-ms/op")
			b.ReportMetric(float64(series), "series")
		})
	}
	var stats []window.Stat
	run("compute", func(b *testing.B) {
		var problems []query.Problem
		if stats, problems = window.Compute(b.Context(), f.Source(), at, window.Options{}); len(problems) > 0 || len(stats) != 128*25 {
			b.Fatalf("%d box plots, %+v", len(stats), problems)
		}
	})
	for minute := 55; minute > 31; minute-- {
		for i := range stats {
			stats[i].At = at.Add(-time.Duration(minute) * time.Minute)
		}
		if err := window.Store(b.Context(), f, stats, window.Whole(1)); err != nil {
			b.Fatal(err)
		}
	}
	ahead := 0
	run("store", func(b *testing.B) {
		for i := range stats {
			stats[i].At = at.Add(time.Duration(ahead-50_000) * time.Millisecond)
		}
		ahead++
		if err := window.Store(b.Context(), f, stats, window.Whole(1)); err != nil {
			b.Fatal(err)
		}
	})
	run("anomalies", func(b *testing.B) { // every five minutes
		_, problems := anomaly.Find(b.Context(), f.Source(), at, stats, anomaly.Options{})
		for _, p := range problems {
			if p.Kind != query.Absent {
				b.Fatalf("%+v", p)
			}
		}
	})
}

// cpuTime returns the CPU time of this process.
func cpuTime(b *testing.B) time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
