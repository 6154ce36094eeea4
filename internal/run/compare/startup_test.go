// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/run"
)

var startBegan = time.UnixMilli(1_700_000_000_000).UTC()

func startAt(seconds float64) time.Time {
	return startBegan.Add(time.Duration(seconds * float64(time.Second)))
}

// started is a run of the program app beside the server web, which ran before. The command was executed 0.25 s after the
// first sample. app makes its first calls of connect between the samples at 2 and 3 s, and is steady from 4 s on.
func started() *run.Run {
	none := math.NaN()
	series := func(kind run.Kind, name, workload, label, value string, values ...float64) *run.Series {
		s := &run.Series{Name: name, Labels: map[string]string{}, Kind: kind, Values: values}
		if workload != "" {
			s.Labels["workload"] = workload
		}
		if label != "" {
			s.Labels[label] = value
		}
		return s
	}
	r := &run.Run{
		Meta: run.Meta{Command: []string{"app"}, Watch: []string{"comm=web"}, Interval: 1},
		Series: []*run.Series{
			series(run.Counter, "teescope_syscalls_total", "app", "syscall", "connect", 7, 7, 7, 9, 9, 9, 9),
			series(run.Counter, "teescope_syscalls_total", "app", "syscall", "read", 0, 100, 200, 300, 400, 410, 420),
			series(run.Counter, "teescope_syscalls_total", "web", "syscall", "accept4", 5, 6, 7, 8, 9, 10, 11),
			series(run.Gauge, "teescope_processes", "web", "", "", 1, 1, 1, 1, 1, 1, 1),
			series(run.Gauge, "teescope_processes", "app", "", "", none, 1, 1, 1, 1, 1, 1),
		},
		Phases: []run.Phase{
			{Name: run.Whole, Repetition: 1, From: startAt(0), To: startAt(6)},
			{Name: run.Exec, Repetition: 1, From: startAt(0.25), To: startAt(6)},
			{Name: run.Start, Repetition: 1, From: startAt(0), To: startAt(4)},
			{Name: run.Steady, Repetition: 1, From: startAt(4), To: startAt(6)},
		},
		Outcomes: []run.Outcome{{Repetition: 1, Name: "operations", Unit: "operations", Value: 60}},
		End:      &run.End{Reason: "done", Status: []int{0}},
	}
	for i := range 7 {
		r.Times = append(r.Times, startAt(float64(i)))
	}
	return r
}

// withEnclave adds an enclave of app, which is created 1.5 s after the first sample and initialized in 0.125 s.
func withEnclave(r *run.Run) *run.Run {
	none, created := math.NaN(), float64(startAt(1.5).UnixMilli())/1e3
	r.Series = append(r.Series,
		&run.Series{Name: "sgx_workload_enclaves_created_total", Labels: map[string]string{"workload": "app"}, Kind: run.Counter, Values: []float64{0, 0, 1, 1, 1, 1, 1}},
		&run.Series{Name: "sgx_enclaves_created_total", Kind: run.Counter, Values: []float64{3, 3, 4, 4, 4, 4, 4}},
		&run.Series{Name: "sgx_enclave_start_seconds_count", Kind: run.Counter, Values: []float64{3, 3, 4, 4, 4, 4, 4}},
		&run.Series{Name: "sgx_enclave_start_seconds_sum", Kind: run.Counter, Values: []float64{5, 5, 5.125, 5.125, 5.125, 5.125, 5.125}},
		&run.Series{Name: "sgx_enclave_start_time_seconds", Labels: map[string]string{"enclave": "4"}, Kind: run.Gauge, Values: []float64{none, none, created, created, created, created, none}},
		&run.Series{Name: "sgx_enclave_start_time_seconds", Labels: map[string]string{"enclave": "1"}, Kind: run.Gauge, Values: []float64{1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9}},
	)
	return r
}

func milestonesOf(r *run.Run, workloads ...string) map[string]float64 {
	found := map[string]float64{}
	for _, s := range Extract(r, "file", workloads).Startups {
		for _, m := range s.Milestones {
			found[m.Name] = m.After
		}
	}
	return found
}

func TestStartups(t *testing.T) {
	plain := map[string]float64{"startup_first_connect": 3, "startup_steady": 4}
	with := func(more map[string]float64) map[string]float64 {
		for k, v := range plain {
			if _, there := more[k]; !there {
				more[k] = v
			}
		}
		return more
	}
	for name, c := range map[string]struct {
		run       *run.Run
		workloads []string
		want      map[string]float64
	}{
		"without SGX, enclaves are absent": {run: started(), want: plain},
		"the driver's time is exact":       {run: withEnclave(started()), want: with(map[string]float64{"startup_enclave_created": 1.25, "startup_enclave_initialized": 1.375})},
		"another enclave of the machine": {run: func() *run.Run {
			r := withEnclave(started())
			r.Series[6].Values[6] = 5
			return r
		}(), want: with(map[string]float64{"startup_enclave_created": 1.25})},
		"without the driver's time": {run: func() *run.Run {
			r := withEnclave(started())
			r.Series = r.Series[:6]
			return r
		}(), want: with(map[string]float64{"startup_enclave_created": 2})},
		"the user named the server": {run: started(), workloads: []string{"web"}, want: map[string]float64{"startup_first_accept": 1, "startup_steady": 4}},
		"the user chose the start": {run: func() *run.Run {
			r := started()
			r.Meta.Conditions = []run.Condition{{Name: run.SteadyAfter, Value: "4s", Kind: "note"}}
			return r
		}(), want: map[string]float64{"startup_first_connect": 3}},
		"no steady state": {run: func() *run.Run {
			r := started()
			r.Phases = r.Phases[:2]
			return r
		}(), want: map[string]float64{"startup_first_connect": 3}},
		"programs that ran already": {run: func() *run.Run {
			r := withEnclave(started())
			r.Meta.Command = nil
			return r
		}(), want: map[string]float64{}},
		"a file without the phase exec": {run: func() *run.Run {
			r := withEnclave(started())
			r.Phases = []run.Phase{r.Phases[0]}
			return r
		}(), want: map[string]float64{"startup_first_connect": 3, "startup_enclave_created": 1.5, "startup_enclave_initialized": 1.625}},
	} {
		got := milestonesOf(c.run, c.workloads...)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		for what, want := range c.want {
			if v, there := got[what]; !there || math.Abs(v-want) > 1e-6 {
				t.Errorf("%s: %s is %v, want %v", name, what, got[what], want)
			}
		}
	}
}

// The start has rows of its own. They are not divided by the operations, and those of the steady state do not have it.
func TestStartIsApart(t *testing.T) {
	before, after := withEnclave(started()), withEnclave(started())
	leaf := func(name string, atStart, later float64) *run.Series {
		return &run.Series{
			Name: enclsSeries, Kind: run.Counter, Unit: "instructions", Labels: map[string]string{"leaf": name, "result": "ok"},
			Values: []float64{0, atStart / 2, atStart, atStart, atStart, atStart + later/2, atStart + later},
		}
	}
	before.Series = append(before.Series, leaf("ecreate", 1, 0), leaf("eadd", 5000, 0), leaf("eldu", 0, 40))
	after.Series = append(after.Series, leaf("ecreate", 2, 0), leaf("eadd", 9000, 0), leaf("eldu", 0, 80))
	after.Series[1].Values = []float64{0, 1000, 2000, 3000, 4000, 4010, 4020} // ten times as many calls in the start
	table, err := Compare(Set{Groups: []*Group{
		{Name: "before", Records: []*Record{Extract(before, "before", []string{"app"})}},
		{Name: "after", Records: []*Record{Extract(after, "after", []string{"app"})}},
	}}, Options{PerOp: 1})
	if err != nil || table.Phase != run.Steady {
		t.Fatal(err)
	}
	want := map[string][2]float64{
		"startup_syscalls": {402, 4002}, "syscalls_per_op": {1, 1}, "startup_steady": {4, 4},
		"startup_sgx_encls{ecreate}": {1, 2}, "startup_sgx_encls{eadd}": {5000, 9000}, "sgx_encls_per_op{eldu}": {40. / 20, 80. / 20}, "startup_enclave_created": {1.25, 1.25},
	}
	for _, row := range table.Rows {
		if w, there := want[row.Metric.ID()]; there {
			if a, b := row.Cells[0].Median.Value, row.Cells[1].Median.Value; math.Abs(a-w[0])+math.Abs(b-w[1]) > 1e-6 {
				t.Errorf("%s is %v and %v, want %v", row.Metric.ID(), a, b, w)
			}
			delete(want, row.Metric.ID())
		}
		if start := len(row.Metric.Name) > 7 && row.Metric.Name[:7] == "startup"; start != (row.Metric.Area == Start) {
			t.Errorf("%s is in the area %s", row.Metric.ID(), row.Metric.Area)
		}
	}
	if len(want) > 0 {
		t.Errorf("no rows %v", want)
	}
}
