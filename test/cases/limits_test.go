// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/rules"
)

// limitWanted is what a case expects to limit a workload.
type limitWanted struct {
	Workload string           `yaml:"workload"`
	Is       engine.LimitKind `yaml:"is"`
	Because  string           `yaml:"because"`  // a part of the sentence
	Evidence string           `yaml:"evidence"` // the first figure; empty means any
	Window   float64          `yaml:"window"`   // in seconds; 0 means any
}

// limitCases reads the cases of the limits. Each begins with the line "--- # NAME".
func limitCases(t *testing.T) []testCase {
	t.Helper()
	var all []testCase
	for name, text := range partsOf(t, "limits/*.yaml") {
		c, err := parse(text)
		if err == nil && c.Limit == nil {
			err = errors.New("it has no limit")
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c.file, c.kind = name, negative
		all = append(all, c)
	}
	return all
}

func (c testCase) limits(t *testing.T, machines ...string) engine.Result {
	t.Helper()
	db, err := c.source(machines...)
	if err != nil {
		t.Fatal(err)
	}
	o := c.options()
	o.Limiter = rules.Limits()
	r, err := engine.Evaluate(t.Context(), db, rules.All(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLimits compares what limits a workload with what each case expects. A finding above info is an error there too.
func TestLimits(t *testing.T) {
	for _, c := range limitCases(t) {
		t.Run(c.file, func(t *testing.T) {
			r := c.limits(t, host)
			for _, w := range c.compare(r).wrong {
				t.Error(w)
			}
			stated := 0
			for _, l := range r.Limits {
				if l.Workload != c.Limit.Workload {
					continue
				}
				stated++
				if l.Limit != c.Limit.Is || !strings.Contains(l.Because, c.Limit.Because) {
					t.Errorf("%s because %q, want %s because %q", l.Limit, l.Because, c.Limit.Is, c.Limit.Because)
				}
				if c.Limit.Window != 0 && l.Window != c.Limit.Window {
					t.Errorf("judged over %v s, not %v s", l.Window, c.Limit.Window)
				}
				if c.Limit.Evidence != "" && (len(l.Evidence) == 0 || l.Evidence[0].Name != c.Limit.Evidence) {
					t.Errorf("the first evidence is not %s: %+v", c.Limit.Evidence, l.Evidence)
				}
			}
			if stated != 1 {
				t.Errorf("%d statements about %s", stated, c.Limit.Workload)
			}
		})
	}
}

// TestLimitsSayWhatTheirQueriesSay runs the query of every figure, also with a second machine.
func TestLimitsSayWhatTheirQueriesSay(t *testing.T) {
	for _, c := range some(limitCases(t), 4) {
		for _, machines := range [][]string{{host}, {host, "other:9750"}} {
			db, err := c.source(machines...)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range c.limits(t, machines...).Limits {
				for _, e := range l.Evidence {
					got, err := db.Instant(t.Context(), e.Query, c.end())
					if err != nil || len(got) != 1 || math.Abs(got[0].Value-e.Value) > 1e-9*math.Abs(e.Value) {
						t.Errorf("%s on %d machines: %s is %v, and %s gives %v (%v)", c.file, len(machines), e.Name, e.Value, e.Query, got, err)
					}
				}
			}
		}
	}
}

// TestLimitsWithoutAMetric: without one of its metrics, a statement becomes unknown or stays. It may become another one only
// where the lost metric was what ruled that out, and those are listed.
func TestLimitsWithoutAMetric(t *testing.T) {
	for _, c := range some(limitCases(t), 4) {
		for _, name := range c.metrics() {
			less := c.change(func(s series) (string, bool) { return s.Values, metric(s) != name })
			for _, l := range less.limits(t, host).Limits {
				if l.Workload == c.Limit.Workload && l.Limit != c.Limit.Is && l.Limit != engine.LimitUnknown && !weaker[[3]string{c.file, name, string(l.Limit)}] {
					t.Errorf("%s without %s: %s because %s", c.file, name, l.Limit, l.Because)
				}
			}
		}
	}
}

// weaker lists case, metric and statement where less is known without the metric and the statement is still true: a busy
// thread is busy in any case. The metrics of a quota come from one file, so that an agent has all of them or none.
var weaker = map[[3]string]bool{
	{"idle-server", "teescope_syscalls_total", "idle"}:                       true,
	{"quota", "container_cpu_cfs_periods_total", "clients"}:                  true,
	{"quota", "container_cpu_cfs_throttled_periods_total", "clients"}:        true,
	{"quota", "teescope_container_info", "clients"}:                          true,
	{"epc-counted", "node_cpu_frequency_max_hertz", "cpu"}:                   true,
	{"epc-counted", "teescope_workload_info", "cpu"}:                         true,
	{"boundary", "teescope_enclave_transitions_total", "cpu"}:                true,
	{"boundary", "teescope_workload_info", "cpu"}:                            true,
	{"exitless-threads-spin", "teescope_enclave_transitions_total", "cpu"}:   true,
	{"exitless-threads-spin", "teescope_syscalls_total", "cpu"}:              true,
	{"exitless-threads-spin", "teescope_workload_info", "cpu"}:               true,
	{"polling", "teescope_context_switches_total", "cpu"}:                    true,
	{"polling", "teescope_syscalls_total", "cpu"}:                            true,
	{"polling", "teescope_workload_info", "cpu"}:                             true,
	{"network-losses", "node_netstat_Tcp_RetransSegs", "clients"}:            true,
	{"network-losses-of-another", "node_netstat_Tcp_RetransSegs", "clients"}: true,
}
