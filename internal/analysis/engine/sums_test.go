// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"math"
	"testing"

	"github.com/teescope/teescope/internal/analysis/query"
)

// TestCoarserRatesAreAddedUp: of three queries about the same series, only the finest one is sent, unless its answer cannot be used.
func TestCoarserRatesAreAddedUp(t *testing.T) {
	const all = `sum by (workload, instance, syscall) (rate(teescope_syscalls_total[$window]))`
	const reads = `sum by (workload, instance) (rate(teescope_syscalls_total{syscall=~"p?read"}[$window]))`
	const machine = `sum by (instance) (rate(teescope_syscalls_total[$window]))`
	parts := []query.Sample{sample("w", 60, "syscall", "read"), sample("w", 5, "syscall", "pread"), sample("w", 40, "syscall", "write"), sample("v", 7, "syscall", "write")}
	rule := above("rule", reads, 50, 0.5)
	rule.Signals = append(rule.Signals, Signal{Name: "all", Query: all}, Signal{Name: "machine", Query: machine})
	judge := rule.Judge
	var seen []float64
	rule.Judge = func(w Workload) *Verdict {
		if w.Name == "w" {
			own, _ := w.Value(rule.Signals[0])
			of, _ := w.Value(rule.Signals[2])
			seen = []float64{own, of}
		}
		return judge(w)
	}
	for what, c := range map[string]struct {
		all  []query.Sample
		err  error
		sent int // of each other query
		want []float64
	}{
		"usable":     {parts, nil, 0, []float64{65, 112}},
		"failed":     {nil, errors.New("too slow"), 1, nil}, // the rule needs it too
		"not finite": {append(parts[:3:3], sample("v", math.Inf(1), "syscall", "write")), nil, 1, []float64{1, 2}},
	} {
		seen = nil
		f := &fake{answers: map[string][]query.Sample{
			fiveMinutes(all): c.all, fiveMinutes(reads): {sample("w", 1)}, fiveMinutes(machine): {sample("", 2)},
		}, errs: map[string]error{fiveMinutes(all): c.err}}
		r := evaluate(t, f, []Rule{rule}, Options{})
		if len(seen) != len(c.want) || len(seen) > 0 && (seen[0] != c.want[0] || seen[1] != c.want[1]) {
			t.Errorf("%s: the rule sees %v, want %v; problems %s", what, seen, c.want, problems(r))
		}
		if f.asked[fiveMinutes(all)] != 1 || f.asked[fiveMinutes(reads)] != c.sent || f.asked[fiveMinutes(machine)] != c.sent {
			t.Errorf("%s: sent %v", what, f.asked)
		}
	}
}
