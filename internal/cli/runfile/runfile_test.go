// SPDX-License-Identifier: Apache-2.0

package runfile

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/runtest"
)

func exported(t testing.TB, r *run.Run, format string) string {
	t.Helper()
	var b strings.Builder
	if err := Export(&b, r, format); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// example is a run with a counter, the sum of a histogram, a gauge that is absent once, and a name that is not a good.
func example() *run.Run {
	at := func(ms int64) time.Time { return time.UnixMilli(1_000_000 + ms).UTC() }
	return &run.Run{
		Meta:  run.Meta{Started: at(0), Command: []string{"benchmark", "\x1b[31m"}, Labels: map[string]string{"commit": "a b"}},
		Times: []time.Time{at(0), at(1500)},
		Series: []*run.Series{
			{Name: "b_bytes", Kind: run.Gauge, Values: []float64{math.NaN(), 7}},
			{Name: "a_total", Labels: map[string]string{"x": "=1\"\n"}, Kind: run.Counter, Values: []float64{1, 2.5}},
			{Name: "c_sum", Kind: run.Counter, Values: []float64{1, math.Inf(1)}},
			{Name: "no name", Kind: run.Gauge, Values: []float64{1, 1}},
		},
		Phases:   []run.Phase{{Name: run.Whole, Repetition: 1, From: at(0), To: at(1500)}},
		Outcomes: []run.Outcome{{Repetition: 2, Name: "p99", Unit: "seconds", Value: 0.5}, {Repetition: 1, Name: "p99", Unit: "seconds", Value: 0.25}},
	}
}

func TestExports(t *testing.T) {
	r := example()
	want := "# TYPE a counter\na_total{x=\"=1\\\"\\n\"} 1 1000.000\na_total{x=\"=1\\\"\\n\"} 2.5 1001.500\n" +
		"# TYPE b_bytes gauge\nb_bytes 7 1001.500\n# TYPE c_sum unknown\n# HELP c_sum A counter without the ending _total.\nc_sum 1 1000.000\nc_sum +Inf 1001.500\n# EOF\n"
	if got := exported(t, r, "openmetrics"); got != want {
		t.Errorf("OpenMetrics:\n%s\nwant:\n%s", got, want)
	}
	want = "BenchmarkRun/commit=a_b 1 0.25 p99-seconds\nBenchmarkRun/commit=a_b 1 0.5 p99-seconds\n"
	if got := exported(t, r, "benchfmt"); got != want {
		t.Errorf("benchmarks:\n%s\nwant:\n%s", got, want)
	}
	if got := exported(t, r, "csv"); !strings.Contains(got, "1970-01-01T00:16:41.500Z,1,b_bytes,gauge,,7\n") || strings.Count(got, "b_bytes") != 1 ||
		!strings.Contains(got, ",2,p99,outcome,seconds,0.5\n") {
		t.Errorf("CSV:\n%s", got)
	}
	var all struct {
		Series []struct{ Values []*float64 }
		End    *run.End
	}
	if err := json.Unmarshal([]byte(exported(t, r, "json")), &all); err != nil || all.Series[0].Values[0] != nil || *all.Series[0].Values[1] != 7 || all.End != nil {
		t.Errorf("JSON: %v, %+v", err, all)
	}
	if err := Export(io.Discard, r, "xml"); err == nil || !strings.Contains(err.Error(), "use one of openmetrics") {
		t.Errorf("%v", err)
	}
}

func TestShow(t *testing.T) {
	for want, change := range map[string]func(*run.Run){
		"cut off: the recorder was stopped":                func(*run.Run) {},
		"the file is damaged, and what is below is before": func(r *run.Run) { r.Damaged = errors.New("line 7") },
		"interrupted, exit status by repetition: [0 1]":    func(r *run.Run) { r.End = &run.End{Reason: "interrupted", Status: []int{0, 1}} },
		"note: the load was short":                         func(r *run.Run) { r.Notes = []string{"the load was short"} },
		"kernel  6.1  machine":                             func(r *run.Run) { r.Meta.Conditions = []run.Condition{{Name: "kernel", Value: "6.1", Kind: "machine"}} },
		"1  steady state  1.5 s (by samples 1.5 s apart)": func(r *run.Run) {
			r.Times = append(r.Times, r.Times[1].Add(time.Second))
			for _, s := range r.Series {
				s.Values = append(s.Values, 1)
			}
			r.Phases[0].To = r.Times[2]
			r.Phases = append(r.Phases, run.Phase{Name: run.Steady, Repetition: 1, From: r.Times[1], To: r.Times[2]})
		},
		"label commit  a b": func(*run.Run) {},
	} {
		r := example()
		change(r)
		var b strings.Builder
		if err := Show(&b, r, "file", true); err != nil || !strings.Contains(b.String(), want) || strings.Contains(b.String(), "\x1b") {
			t.Errorf("%v: %q is not in\n%s", err, want, b.String())
		}
	}
}

// What is exported of a recorded file has each of its samples: 3 samples of 2 series in 2 repetitions.
func TestExportOfAFile(t *testing.T) {
	rep := runtest.Repetition{Counters: []runtest.Value{runtest.Counter(4, "x_total")}, Gauges: []runtest.Value{runtest.Counter(1, "y")}}
	r, err := runtest.Run(runtest.Spec{Samples: 3, Repetitions: []runtest.Repetition{rep, rep}})
	if err != nil {
		t.Fatal(err)
	}
	if got := exported(t, r, "openmetrics"); strings.Count(got, "\n") != 2+12+1 || !strings.Contains(got, `x_total{workload="app"} 8 `) {
		t.Errorf("%s", got)
	}
}
