// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/unitcost"
)

// costsOf analyses the last five minutes.
func costsOf(t *testing.T, f *filled, at time.Time, found ...analysis.Finding) engine.Result {
	t.Helper()
	r := engine.Result{At: at, Window: 5 * time.Minute, Findings: found}
	unitcost.Add(t.Context(), f.Source(), &r, unitcost.Options{})
	return r
}

func near(got, want, share float64) bool { return math.Abs(got-want) <= share*math.Abs(want) }

func costNamed(o analysis.Operations, name string) *analysis.Evidence {
	if i := slices.IndexFunc(o.Costs, func(e analysis.Evidence) bool { return e.Name == name }); i >= 0 {
		return &o.Costs[i]
	}
	return nil
}

// TestCostOfAnOperation: the load doubles and halves every 50 s. An operation makes 3 system calls, of which 2 are
// futex, and takes 20 µs of CPU time. The application is scraped 2 s after the agent.
func TestCostOfAnOperation(t *testing.T) {
	f := makeFilled(t)
	at := time.Now().Truncate(time.Minute)
	start := at.Add(-7 * time.Minute)
	done := func(at time.Time) float64 { // 1000/s and 2000/s in turn
		s := at.Sub(start).Seconds()
		whole, part := math.Floor(s/100), math.Mod(s, 100)
		return 150_000*whole + 1000*part + 1000*math.Max(0, part-50)
	}
	times := func(n float64) func(time.Time) float64 { return func(at time.Time) float64 { return n * done(at) } }
	one := func(time.Time) float64 { return 1 }
	late := start.Add(2 * time.Second)
	end := at.Add(-3 * time.Second)
	f.put(start, at, one, "teescope_build_info", "version", "1")
	f.put(late, end, times(0.75), "teescope:operations_total", "workload", "redis", "counter", "x_total", "basis", "guessed", "series", "1")
	f.put(late, end, times(0.25), "teescope:operations_total", "workload", "redis", "counter", "x_total", "basis", "guessed", "series", "2")
	f.put(start, at, times(1), "teescope_syscalls_total", "workload", "redis", "syscall", "read")
	f.put(start, at, times(2), "teescope_syscalls_total", "workload", "redis", "syscall", "futex")
	f.put(start, at, times(7), "teescope_syscalls_total", "workload", "other-program", "syscall", "read")
	f.put(start, at, times(90), "teescope_syscalls_total", "workload", "redis", "syscall", "read", "instance", "elsewhere")
	f.put(start, at, times(20e-6), "teescope_cpu_seconds_total", "workload", "redis")
	f.put(start, at, times(0), "teescope_page_faults_total", "workload", "redis", "mode", "user")
	f.put(start, at, one, "teescope_container_info", "workload", "redis", "id", "/r")
	f.put(start, at, times(4000), "container_fs_writes_bytes_total", "id", "/r", "device", "a")
	f.put(start, at, times(96), "container_fs_reads_bytes_total", "id", "/r", "device", "a")
	for le, share := range map[string]float64{"100": 0.5, "1000": 0.98, "2000": 1, "+Inf": 1} {
		f.put(late, end, times(share), "teescope:operation_duration_bucket", "workload", "redis", "counter", "took_usec", "unit", "usec", "series", "1", "le", le)
	}
	figure := func(unit, query string) analysis.Evidence {
		return analysis.Evidence{Name: "e", Unit: unit, Value: 1, Query: query}
	}
	finding := analysis.Finding{ID: "1", Workload: "redis", Instance: "here", Gain: estimate.Amdahl("a thread", 0.5, 0.5), Evidence: []analysis.Evidence{
		figure("1/s", `sum by (workload, instance, syscall) (rate(teescope_syscalls_total{workload="redis",instance="here",syscall="futex"}[5m]))`),
		figure("cores", `sum by (workload, instance) (rate(teescope_cpu_seconds_total{workload="redis"}[5m]))`),
		figure("ratio", `sum by (workload, instance) (rate(teescope_cpu_seconds_total{workload="redis"}[5m]))`),
		figure("1/s", `sum by (instance) (rate(teescope_syscalls_total[5m]))`),
	}}
	elsewhere := analysis.Finding{ID: "2", Workload: "redis", Instance: "elsewhere", Evidence: finding.Evidence}
	r := costsOf(t, f, at, finding, elsewhere)
	if len(r.Operations) != 1 {
		t.Fatalf("%+v", r.Operations)
	}
	o := r.Operations[0]
	if o.Workload != "redis" || o.Instance != "here" || !o.Guessed || o.Counter != "x_total" || o.Because != "" {
		t.Errorf("%+v", o)
	}
	if o.PerSecond == nil || !near(o.PerSecond.Value, 1500, 0.02) || o.PerSecond.Low != nil || o.PerSecond.N < 55 { // a load that wanders so slowly has no interval
		t.Errorf("throughput %+v", o.PerSecond)
	}
	for name, want := range map[string]float64{"system calls": 3, "CPU time": 20e-6, "page faults": 0, "disk": 4096} {
		e := costNamed(o, name)
		if e == nil {
			t.Errorf("%s: none in %+v", name, o.Costs)
			continue
		}
		if !near(e.Value, want, 0.02) || e.Low == nil || *e.Low > want || *e.High < want || e.N < 55 || want > 0 && *e.High-*e.Low > 0.2*want {
			t.Errorf("%s = %+v (%v to %v), want %v", name, *e, *e.Low, *e.High, want)
		}
		// The query of a figure gives about that figure.
		if got := onlyValue(t, f, e.Query, at); !near(got, want, 0.02) {
			t.Errorf("%s = %v, want %v", e.Query, got, want)
		}
	}
	if want := "enclave exits, interrupts of the enclave (AEX), context switches, enclave pages evicted, network"; strings.Join(o.Missing, ", ") != want {
		t.Errorf("missing %q, want %q", o.Missing, want)
	}
	// Half of the durations end at 100 µs, and the last two hundredths are spread from 1 to 2 ms.
	for i, want := range []float64{100e-6, 1500e-6} {
		if e := o.Latency[i]; e.Name != []string{"p50", "p99"}[i] || e.Unit != "seconds" || !near(e.Value, want, 1e-6) || !near(float64(e.N), 450_000, 0.02) {
			t.Errorf("latency %+v, want %v", e, want)
		} else if got := onlyValue(t, f, e.Query, at); !near(got, want, 1e-6) {
			t.Errorf("%s = %v, want %v", e.Query, got, want)
		}
	}
	got := r.Findings[0]
	if got.Throughput == nil || got.Throughput.Value != o.PerSecond.Value || !near(got.Gain.Operations.Low, 1500, 0.02) || got.Gain.Low != 1 {
		t.Errorf("throughput %+v, gain %+v", got.Throughput, got.Gain)
	}
	for i, want := range []float64{2, 20e-6} {
		p := got.Evidence[i].PerOperation
		if p == nil || !near(p.Value, want, 0.02) || p.Low == nil || *p.Low > want || *p.High < want || p.N < 55 || p.Unit != []string{"1", "seconds"}[i] {
			t.Errorf("per operation %+v, want %v", p, want)
		}
	}
	if got.Evidence[2].PerOperation != nil || got.Evidence[3].PerOperation != nil {
		t.Error("a share, or a figure of the machine, is divided by the operations of one workload")
	}
	if other := r.Findings[1]; other.Throughput != nil || other.Evidence[0].PerOperation != nil {
		t.Error("a workload of the same name on another machine has these operations")
	}
	if finding.Evidence[0].PerOperation != nil || finding.Gain.Operations != nil {
		t.Error("the finding that was passed has changed")
	}
}

func onlyValue(t *testing.T, f *filled, query string, at time.Time) float64 {
	t.Helper()
	all, err := f.Source().Instant(t.Context(), query, at)
	if err != nil || len(all) != 1 {
		t.Fatalf("%s: %v, %v", query, all, err)
	}
	return all[0].Value
}

// TestCostIsUnknown: what cannot be known is absent, and says why.
func TestCostIsUnknown(t *testing.T) {
	f := makeFilled(t)
	at := time.Now().Truncate(time.Minute)
	start := at.Add(-7 * time.Minute)
	since := func(at time.Time) float64 { return at.Sub(start).Seconds() }
	one := func(time.Time) float64 { return 1 }
	f.put(start, at, one, "teescope_build_info", "version", "1")
	counts := map[string]func(time.Time) float64{
		"idle-server": func(time.Time) float64 { return 5 },
		"gauge":       func(at time.Time) float64 { return 100 - 10*math.Mod(since(at)/5, 2) },
		"restarted": func(at time.Time) float64 {
			if s := since(at); s > 300 {
				return 100 * (s - 300)
			}
			return 1e6 + 100*since(at)
		},
		"huge": func(at time.Time) float64 { return 1 << 52 * since(at) / 420 },
	}
	for name, count := range counts {
		f.put(start, at, count, "teescope:operations_total", "workload", name, "counter", "x_total", "basis", "configured", "series", "1")
		f.put(start, at, func(at time.Time) float64 { return 300 * since(at) }, "teescope_syscalls_total", "workload", name, "syscall", "read")
	}
	f.put(at.Add(-15*time.Second), at, since, "teescope:operations_total", "workload", "new", "counter", "x_total", "basis", "configured", "series", "1")
	source := func(workload, selector, state string) {
		f.put(start, at, one, "teescope_operations_source_info", "workload", workload, "machine", "here", "kind", "operations", "selector", selector,
			"basis", "configured", "state", state, "target_job", "shop", "target_instance", "h:1")
	}
	source("silent", "y_total", "missing")
	source("idle-server", "x_total", "counted")
	r := costsOf(t, f, at)
	by := map[string]analysis.Operations{}
	for _, o := range r.Operations {
		by[o.Workload] = o
	}
	for name, want := range map[string]string{
		"idle-server": "no operation within the window", "gauge": "the counter went back", "new": "at least 5 are needed",
		"silent": "no series of the target has this name and these labels", "restarted": "", "huge": "",
	} {
		o := by[name]
		if (want == "") != (o.Because == "") || !strings.Contains(o.Because, want) || (want == "") != (len(o.Costs) > 0) {
			t.Errorf("%s: %q with %d costs, want %q", name, o.Because, len(o.Costs), want)
		}
	}
	if o := by["idle-server"]; o.PerSecond == nil || o.PerSecond.Value != 0 || o.Target != "shop at h:1" {
		t.Errorf("no operation is a throughput of zero: %+v", o)
	}
	if e := costNamed(by["restarted"], "system calls"); e == nil || !near(e.Value, 3, 0.03) {
		t.Errorf("over a restart: %+v", e)
	}
	if i := slices.IndexFunc(r.Problems, func(p query.Problem) bool {
		return p.Workload == "silent" && p.Error == "scrape, shop at h:1, operations=y_total: no series of the target has this name and these labels"
	}); i < 0 {
		t.Errorf("%+v", r.Problems)
	}
	for _, o := range r.Operations {
		if o.Costs == nil || o.Missing == nil || o.Latency == nil {
			t.Errorf("%s: a list is nil", o.Workload)
		}
	}
}

// TestPartOfTheOperations: of two applications of one workload one is down. The other one's operations are not all.
func TestPartOfTheOperations(t *testing.T) {
	f := makeFilled(t)
	at := time.Now().Truncate(time.Minute)
	start := at.Add(-7 * time.Minute)
	one := func(time.Time) float64 { return 1 }
	f.put(start, at, one, "teescope_build_info", "version", "1")
	f.put(start, at, func(at time.Time) float64 { return at.Sub(start).Seconds() }, "teescope:operations_total", "workload", "w", "counter", "x_total", "basis", "configured", "series", "1")
	for target, state := range map[string]string{"h:1": "counted", "h:2": "down"} {
		f.put(start, at, one, "teescope_operations_source_info", "workload", "w", "machine", "here", "kind", "operations", "selector", "x_total",
			"basis", "configured", "state", state, "target_job", "shop", "target_instance", target)
	}
	if o := costsOf(t, f, at).Operations[0]; o.PerSecond != nil || o.Because != "the target does not answer" || !strings.Contains(o.Target, "h:1") || !strings.Contains(o.Target, "h:2") {
		t.Errorf("%+v", o)
	}
}
