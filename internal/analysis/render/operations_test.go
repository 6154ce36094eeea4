// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/estimate"
)

// counted returns a result with operations of each kind.
func counted() engine.Result {
	r := found()
	now := analysis.Evidence{Name: "operations", Value: 31_000, Unit: "1/s", Low: ptr(30_600), High: ptr(31_400), N: 60, Query: "sum(rate(teescope:operations_total[5m]))"}
	f := &r.Findings[0]
	f.Throughput, f.Gain = &now, f.Gain.Times(31_000)
	f.Evidence = slices.Clone(f.Evidence)
	f.Evidence[0].PerOperation = &analysis.PerOperation{Value: 11.9, Unit: "1", Low: ptr(11.7), High: ptr(12.1), N: 60}
	r.Operations = []analysis.Operations{
		{Workload: "cron", Counter: "jobs_total", Target: "cron at h:1", State: "missing", Because: "no series of the target has this name and these labels", Window: 300},
		{Workload: "job", Counter: "jobs_total", State: "counted", Because: "no operation within the window", PerSecond: &analysis.Evidence{Name: "operations", Unit: "1/s", N: 60, Query: "x"}, Window: 300},
		{
			Workload: "redis-server", Instance: "node1:9750", Counter: "redis_commands_processed_total", Guessed: true, State: "counted", PerSecond: &now, Window: 300,
			Latency: []analysis.Evidence{{Name: "p50", Value: 0.0002, Unit: "seconds", N: 9_300_000, Query: "y"}, {Name: "p99", Value: 0.0011, Unit: "seconds", N: 9_300_000, Query: "y"}},
			Costs: []analysis.Evidence{
				{Name: "system calls", Value: 14, Unit: "1", Low: ptr(13.9), High: ptr(14.1), N: 60, Query: "z"},
				{Name: "CPU time", Value: 31e-6, Unit: "seconds", N: 60, Query: "z"},
				{Name: "disk", Value: 4096, Unit: "bytes", N: 60, Query: "z"},
				{Name: "nan", Value: math.NaN()},
			},
			Missing: []string{"enclave exits", "network"},
		},
	}
	return r
}

func TestOperations(t *testing.T) {
	r := New("127.0.0.1:9750", counted(), 1, nil)
	var text, markdown bytes.Buffer
	if err := r.Text(&text, false); err != nil {
		t.Fatal(err)
	}
	if err := r.Markdown(&markdown); err != nil {
		t.Fatal(err)
	}
	golden(t, "operations.txt", text.String())
	golden(t, "operations.md", markdown.String())
}

func TestHostileOperations(t *testing.T) {
	evil := hostile().Findings[0].Workload
	r := hostile()
	r.Operations = make([]analysis.Operations, mostOperations+1)
	for i := range r.Operations {
		r.Operations[i] = analysis.Operations{Workload: evil, Instance: evil, Counter: evil, Because: evil, Missing: []string{evil}}
	}
	var text, markdown bytes.Buffer
	report := New("x", r, 0, nil)
	if err := report.Text(&text, false); err != nil {
		t.Fatal(err)
	}
	if err := report.Markdown(&markdown); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), markdown.String()} {
		if strings.Contains(out, "\x1b") || len(out) > 200_000 || !strings.Contains(out, "1 more workload") {
			t.Errorf("%d bytes, %.200q", len(out), out)
		}
	}
	if strings.Contains(markdown.String(), "<script>") {
		t.Error("it has an element")
	}
}

// TestGainsInOperations: 0 to a third is at most, a wide range is at least, and the ends are not invented.
func TestGainsInOperations(t *testing.T) {
	for want, g := range map[string][2]float64{
		"100 operations/s to 200 operations/s more": {0.1, 0.2}, "up to 200 operations/s more": {0, 0.2}, "at least 100 operations/s more": {0.1, 0.9}, "about 100 operations/s more": {0.1, 0.1},
	} {
		f := analysis.Finding{Throughput: &analysis.Evidence{Value: 1000}, Gain: (&estimate.Gain{Low: g[0], High: g[1], Limit: "a thread"}).Times(1000)}
		if got := inOperations(f); got != fmt.Sprintf(" It does 1k operations/s now, so that is %s.", want) {
			t.Errorf("%v: %q", g, got)
		}
	}
	if got := inOperations(analysis.Finding{Gain: &estimate.Gain{Low: 1, High: 2}}); got != "" {
		t.Errorf("without a count: %q", got)
	}
}
