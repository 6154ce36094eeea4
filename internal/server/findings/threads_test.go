// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
)

const own = "node1:9750"

// answer returns what an agent answers: two workers, a main thread, and a thread that starts again under another start time.
func answer(at time.Time, worker, main, restarted float64) []byte {
	return fmt.Appendf(nil, `{"workload": "db", "time": %q, "list": [
		{"pid": 7, "tid": 8, "name": "worker", "started_seconds": 1, "cpu_seconds": %g, "voluntary_switches": 100, "run_queue_wait_seconds": 0.5},
		{"pid": 7, "tid": 9, "name": "worker", "started_seconds": 1, "cpu_seconds": %g, "voluntary_switches": 100},
		{"pid": 7, "tid": 7, "name": "main", "started_seconds": 0, "cpu_seconds": %g, "voluntary_switches": 5},
		{"pid": 7, "tid": 10, "name": "again", "started_seconds": %g, "cpu_seconds": %g, "voluntary_switches": 5}]}`,
		at.Format(time.RFC3339Nano), worker, worker, main, restarted, 50*restarted)
}

func findingOf(rule, workload, instance string) analysis.Finding {
	return analysis.Finding{ID: analysis.ID(rule, workload, instance), Rule: rule, Workload: workload, Instance: instance}
}

// TestThreadsOfAFinding: within 60 s each of two workers uses 30 s of CPU time and the main thread 6 s. The thread that has
// started again is omitted, because its figures of before are not known.
func TestThreadsOfAFinding(t *testing.T) {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	answers := [][]byte{answer(begin, 100, 10, 1), answer(begin.Add(time.Minute), 130, 16, 2)}
	var asked []string
	n := newThreadNames(Options{
		Instance: own,
		Rules:    []engine.Rule{{Name: "cpu", Threads: analysis.ThreadCPU}, {Name: "queue", Threads: analysis.ThreadQueue}, {Name: "none"}},
		Threads: func(_ context.Context, workload string) ([]byte, error) {
			asked = append(asked, workload)
			if workload != "db" {
				return nil, errors.New("no workload has the name")
			}
			return answers[min(len(asked)-1, 1)], nil
		},
	})
	result := engine.Result{Findings: []analysis.Finding{
		findingOf("cpu", "db", own), findingOf("queue", "db", own), findingOf("none", "other", own), findingOf("cpu", "db", "node2:9750"), findingOf("cpu", "", own),
	}}
	n.look(t.Context(), result)
	if len(n.found) != 0 {
		t.Errorf("after one answer: %+v", n.found)
	}
	n.look(t.Context(), result)
	open := n.named(slices.Clone(result.Findings))
	want := []analysis.Threads{
		{Name: "worker", Count: 2, Figure: analysis.ThreadCPU, Value: 1, Unit: "cores"},
		{Name: "main", Count: 1, Figure: analysis.ThreadCPU, Value: 0.1, Unit: "cores"},
	}
	if !slices.Equal(open[0].Threads, want) {
		t.Errorf("got %+v, want %+v", open[0].Threads, want)
	}
	for _, f := range open[1:] { // no thread waited, the rule is not about threads, another machine, a whole machine
		if f.Threads != nil {
			t.Errorf("%s at %s on %s: %+v", f.Rule, f.Workload, f.Instance, f.Threads)
		}
	}
	if !slices.Equal(asked, []string{"db", "db"}) {
		t.Errorf("asked for %q: each workload once in a look", asked)
	}
}

// TestThreadsOfAHostileProgram: what a program can choose is bounded, and answers that make no sense are ignored.
func TestThreadsOfAHostileProgram(t *testing.T) {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	many := func(at time.Time, cpu float64) (l threadList) {
		l.Time = at
		for i := range 1000 {
			v := cpu * float64(i)
			l.List = append(l.List, threadSeen{PID: 1, TID: i, Name: fmt.Sprintf("%d%s", i, strings.Repeat("é", 1000)), CPU: &v})
		}
		return l
	}
	for what, c := range map[string]struct {
		now  time.Time
		want int
	}{
		"names without end": {begin.Add(time.Minute), maxListedThreads},
		"at the same time":  {begin, 0},
		"before":            {begin.Add(-time.Minute), 0},
		"much later":        {begin.Add(time.Hour), 0},
	} {
		top := busiestThreads(many(begin, 1), many(c.now, 2), analysis.ThreadCPU)
		if len(top) != c.want {
			t.Errorf("%s: %d names", what, len(top))
		}
		for _, one := range top {
			if len(one.Name) > maxThreadName {
				t.Errorf("%s: a name of %d bytes", what, len(one.Name))
			}
		}
	}
	large, err := json.Marshal(map[string]any{"time": begin, "list": make([]threadSeen, 5000)})
	if err != nil {
		t.Fatal(err)
	}
	answerOf := func(threads, listed int) string {
		body, err := json.Marshal(map[string]any{"time": begin, "threads": threads, "list": make([]threadSeen, listed)})
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	for answer, want := range map[string]int{"": 0, "null": 0, "[1]": 0, `{"list": 3}`: 0, string(large): 0, answerOf(257, 256): 0, answerOf(256, 250): 250, answerOf(1000, 256): 0} {
		n := newThreadNames(Options{Threads: func(context.Context, string) ([]byte, error) { return []byte(answer), nil }})
		if l := n.read(t.Context(), "w"); len(l.List) != want {
			t.Errorf("%.20q: %d threads are read, want %d", answer, len(l.List), want)
		}
	}
	reads := 0
	n := newThreadNames(Options{Instance: own, Rules: []engine.Rule{{Name: "cpu", Threads: analysis.ThreadCPU}},
		Threads: func(context.Context, string) ([]byte, error) { reads++; return nil, nil }})
	var r engine.Result
	for i := range 3 * maxThreadWorkloads {
		r.Findings = append(r.Findings, findingOf("cpu", fmt.Sprint("w", i), own))
	}
	if n.look(t.Context(), r); reads != maxThreadWorkloads {
		t.Errorf("%d workloads are read in a look", reads)
	}
}
