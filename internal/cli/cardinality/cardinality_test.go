// SPDX-License-Identifier: Apache-2.0

package cardinality

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
)

// exposed has 18 series: 4 + 6 + 3 + 3 + 2.
const exposed = `# TYPE teescope_syscalls_total counter
teescope_syscalls_total{workload="a",pod="",syscall="read"} 1
teescope_syscalls_total{workload="a",pod="",syscall="write"} 1
teescope_syscalls_total{workload="b",pod="",syscall="read"} 1
teescope_syscalls_total{workload="b",pod="",syscall="futex"} 1
# TYPE teescope_run_queue_latency_seconds histogram
teescope_run_queue_latency_seconds_bucket{workload="a",le="0.001"} 1
teescope_run_queue_latency_seconds_bucket{workload="a",le="0.002"} 1
teescope_run_queue_latency_seconds_bucket{workload="a",le="0.004"} 1
teescope_run_queue_latency_seconds_bucket{workload="a",le="+Inf"} 1
teescope_run_queue_latency_seconds_sum{workload="a"} 1
teescope_run_queue_latency_seconds_count{workload="a"} 1
# TYPE go_gc_duration_seconds summary
go_gc_duration_seconds{quantile="0.5"} 1
go_gc_duration_seconds_sum 1
go_gc_duration_seconds_count 1
# TYPE teescope_workload_setting_info gauge
teescope_workload_setting_info{workload="a",setting="X",value="1"} 1
teescope_workload_setting_info{workload="a",setting="Y",value="1"} 1
teescope_workload_setting_info{workload="b",setting="Y",value="1"} 1
# TYPE teescope_threads gauge
teescope_threads 1
# TYPE up untyped
up 1
`

func find(t *testing.T, c *Count, name string) Metric {
	t.Helper()
	i := slices.IndexFunc(c.Metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		t.Fatalf("no metric %s in %+v", name, c.Metrics)
	}
	return c.Metrics[i]
}

func TestOfText(t *testing.T) {
	c, err := ofText("node:1", []byte(exposed))
	if err != nil {
		t.Fatal(err)
	}
	if c.Series != 18 || c.Workloads != 2 || *c.Stored != 18-5 {
		t.Errorf("%d series of %d workloads, stored %d", c.Series, c.Workloads, *c.Stored)
	}
	for name, want := range map[string]Metric{
		"teescope_syscalls_total":                   {Series: 4, Labels: map[string]int{"workload": 2, "syscall": 3}, Settings: []string{"workloads.max"}},
		"teescope_run_queue_latency_seconds_bucket": {Series: 4, Labels: map[string]int{"workload": 1, "le": 4}, Settings: []string{"workloads.max"}},
		"teescope_run_queue_latency_seconds_count":  {Series: 1, Labels: map[string]int{"workload": 1}, Settings: []string{"workloads.max"}},
		"go_gc_duration_seconds":                    {Series: 1, Labels: map[string]int{"quantile": 1}},
		"teescope_workload_setting_info": {
			Series: 3, Labels: map[string]int{"workload": 2, "setting": 2, "value": 1}, Settings: []string{"workloads.max", "workloads.settings"},
		},
	} {
		got := find(t, c, name)
		if got.Series != want.Series || !maps.Equal(got.Labels, want.Labels) || !slices.Equal(got.Settings, want.Settings) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if want := []Setting{{"workloads.max", "a smaller number", 13, false}, {"workloads.settings", "off", 3, true}}; !slices.Equal(c.Settings, want) {
		t.Errorf("%+v, want %+v", c.Settings, want)
	}
	// 13 series are of 2 workloads, and 5 of none.
	if c.Expect(10); *c.Expected != (Expected{Workloads: 10, Series: 5 + 65, PerWorkload: 6.5}) {
		t.Errorf("%+v", *c.Expected)
	}
	var out strings.Builder
	if err := c.Text(&out, 2); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"node:1: 18 series of 10 metrics.", "about 70: 6 for each workload", "10      in 8 more metrics", "removes up to 3 series"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestNothingIsNoCount(t *testing.T) {
	for _, text := range []string{"", "<html>", "a{\n"} {
		if c, err := ofText("node:1", []byte(text)); err == nil {
			t.Errorf("%q: %+v", text, c)
		}
	}
	c, err := ofText("node:1", []byte("a 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Expect(10); c.Expected != nil || len(c.Settings) != 0 {
		t.Errorf("an estimate without a workload: %+v", c)
	}
}

// answers is a database with fixed answers. A query without an answer is an error.
type answers struct {
	query.Source
	labels []string
	to     map[string][]query.Sample
}

func (a answers) Target() string { return "db" }

func (a answers) LabelNames(_ context.Context, match string, _ time.Time) ([]string, error) {
	if match != `{job="j"}` {
		return nil, fmt.Errorf("asked for %s", match)
	}
	return a.labels, nil
}

func (a answers) Instant(_ context.Context, expr string, _ time.Time) ([]query.Sample, error) {
	got, ok := a.to[expr]
	if !ok {
		return nil, fmt.Errorf("asked for %s", expr)
	}
	return got, nil
}

func one(name string, v float64) query.Sample {
	return query.Sample{Labels: map[string]string{"__name__": name}, Value: v}
}

func TestOfDatabase(t *testing.T) {
	db := answers{labels: []string{"__name__", "instance", "old", "with.dot", "workload"}, to: map[string][]query.Sample{
		`count by (__name__) ({job="j"})`:                                              {one("teescope_threads", 6), one("up", 2)},
		`count(count by (instance) ({job="j",instance!=""}))`:                          {one("", 2)},
		`count by (__name__) (count by (__name__, instance) ({job="j",instance!=""}))`: {one("teescope_threads", 2), one("up", 2), one("new", 1)},
		`count(count by (old) ({job="j",old!=""}))`:                                    nil,
		`count(count by (workload) ({job="j",workload!=""}))`:                          {one("", 4)},
		`count by (__name__) (count by (__name__, workload) ({job="j",workload!=""}))`: {one("teescope_threads", 4)},
		`count(count by (instance, workload) ({job="j",workload!=""}))`:                {one("", 6)},
		`count by (__name__) ({job="none"})`:                                           nil,
	}}
	c, err := ofDatabase(t.Context(), db, "j", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if c.Series != 8 || c.Machines != 2 || c.Workloads != 6 || c.Stored != nil || len(c.Absent) != 1 {
		t.Errorf("%+v", c)
	}
	if got := find(t, c, "teescope_threads"); !maps.Equal(got.Labels, map[string]int{"instance": 2, "workload": 4}) {
		t.Errorf("%+v", got)
	}
	// 6 series of 6 pairs of machine and workload, and 1 of each machine.
	if c.Expect(10); *c.Expected != (Expected{Workloads: 10, Series: 11, PerWorkload: 1}) {
		t.Errorf("%+v", *c.Expected)
	}
	if _, err := ofDatabase(t.Context(), db, "none", time.Now()); err == nil || !strings.Contains(err.Error(), "--job") {
		t.Error(err)
	}
}

// The names of settings and families stand in the documents, which are compared with the program.
func TestNamesExist(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile("../../../docs/user/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	keys, metrics := read("configuration.md"), read("metrics.md")
	for _, l := range loweringSettings() {
		if !strings.Contains(keys, "`"+l.Key+"`") {
			t.Errorf("no key %s", l.Key)
		}
		if l.Key == "probes.file" {
			continue // the user names these
		}
		found := false
		for line := range strings.Lines(metrics) {
			name, heading := strings.CutPrefix(strings.TrimSpace(line), "## ")
			found = found || heading && l.concerns(&Metric{Name: name, Labels: map[string]int{"workload": 1, "pid": 1}})
		}
		if !found {
			t.Errorf("%s lowers no family of metrics.md", l.Key)
		}
	}
	for _, name := range slices.Concat(timed(), settingFamilies(), traced()) {
		if !strings.Contains(metrics, "## "+name+"\n") {
			t.Errorf("no family %s", name)
		}
	}
}
