// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/query"
)

// TestEvidenceIsAskedForAsOneWouldType: the query of a figure names the workload, and the machine if there are several.
func TestEvidenceIsAskedForAsOneWouldType(t *testing.T) {
	const (
		calls = `sum by (workload, instance, syscall) (rate(teescope_syscalls_total{syscall!~"a|b"}[$window]))`
		tcs   = `sum by (workload, instance) (sgx_enclave_threads * on (instance, enclave, pid) group_left (workload) sgx_enclave_info)`
		size  = `sum by (instance) (sgx_epc_size_bytes)`
		mean  = `sum by (instance) (rate(sgx_x_seconds_sum[$window])) / sum by (instance) (rate(sgx_x_seconds_count{by="y"}[$window]))`
	)
	other := func(s query.Sample) query.Sample { s.Labels["instance"] = "b"; return s }
	alone := map[string][]query.Sample{
		fiveMinutes(calls): {sample("w", 2, "syscall", "read"), sample("w", 3, "syscall", `"\`)},
		tcs:                {sample("w", 4)}, size: {sample("", 5)}, fiveMinutes(mean): {sample("", 6)},
	}
	two := map[string][]query.Sample{}
	for query, samples := range alone {
		two[query] = append(two[query], samples...)
		for _, s := range samples {
			s.Labels = map[string]string{"workload": s.Labels["workload"], "syscall": s.Labels["syscall"]}
			two[query] = append(two[query], other(s))
		}
	}
	rule := Rule{Name: "r", Title: "t", Signals: []Signal{
		{Name: "calls", Query: calls}, {Name: "tcs", Query: tcs}, {Name: "size", Query: size}, {Name: "mean", Query: mean},
	}, Judge: func(w Workload) *Verdict {
		return &Verdict{Cause: "c", Advice: []string{"a"}, Evidence: []string{"calls{syscall=read}", `calls{syscall="\}`, "calls", "tcs", "size", "mean"}}
	}}
	for name, c := range map[string]struct {
		answers map[string][]query.Sample
		want    []string
	}{
		"one machine": {alone, []string{
			`sum by (workload, instance, syscall) (rate(teescope_syscalls_total{workload="w",syscall="read",syscall!~"a|b"}[5m]))`,
			`sum by (workload, instance, syscall) (rate(teescope_syscalls_total{workload="w",syscall="\"\\",syscall!~"a|b"}[5m]))`,
			`sum by (workload, instance) (rate(teescope_syscalls_total{workload="w",syscall!~"a|b"}[5m]))`,
			`sum by (workload, instance) (sgx_enclave_threads * on (instance, enclave, pid) group_left (workload) sgx_enclave_info{workload="w"})`,
			`sum by (instance) (sgx_epc_size_bytes)`,
			`sum by (instance) (rate(sgx_x_seconds_sum[5m])) / sum by (instance) (rate(sgx_x_seconds_count{by="y"}[5m]))`,
		}},
		"two machines": {two, []string{
			`sum by (workload, instance, syscall) (rate(teescope_syscalls_total{workload="w",instance="a",syscall="read",syscall!~"a|b"}[5m]))`,
			`sum by (workload, instance, syscall) (rate(teescope_syscalls_total{workload="w",instance="a",syscall="\"\\",syscall!~"a|b"}[5m]))`,
			`sum by (workload, instance) (rate(teescope_syscalls_total{workload="w",instance="a",syscall!~"a|b"}[5m]))`,
			`sum by (workload, instance) (sgx_enclave_threads{instance="a"} * on (instance, enclave, pid) group_left (workload) sgx_enclave_info{workload="w",instance="a"})`,
			`sum by (instance) (sgx_epc_size_bytes{instance="a"})`,
			`sum by (instance) (rate(sgx_x_seconds_sum{instance="a"}[5m])) / sum by (instance) (rate(sgx_x_seconds_count{instance="a",by="y"}[5m]))`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := evaluate(t, &fake{answers: c.answers}, []Rule{rule}, Options{Window: 5 * time.Minute})
			if len(r.Findings) == 0 || r.Findings[0].Instance != "a" || len(r.Findings[0].Evidence) != len(c.want) {
				t.Fatalf("%+v", r)
			}
			for i, e := range r.Findings[0].Evidence {
				if e.Query != c.want[i] {
					t.Errorf("%s has the query\n\t%s\nwant\n\t%s", e.Name, e.Query, c.want[i])
				}
			}
		})
	}
}

// TestWhatAnOCALLCostsHere: a cost that was measured on the machine is used, and its source is stated.
func TestWhatAnOCALLCostsHere(t *testing.T) {
	stated := func(instance, bound string, seconds float64) query.Sample {
		return query.Sample{Labels: map[string]string{"instance": instance, "bound": bound}, Time: now, Value: seconds}
	}
	f := &fake{answers: map[string][]query.Sample{
		"q": {sample("w", 5), {Labels: map[string]string{"instance": "b", "workload": "w"}, Value: 5, Time: now},
			{Labels: map[string]string{"instance": "c", "workload": "w"}, Value: 5, Time: now}},
		cost.OCALLQuery: {stated("a", "low", 3e-6), stated("a", "high", 5e-6), stated("b", "low", 2e-6), stated("b", "high", 1e-6)},
	}}
	seen := map[string]cost.Cost{}
	rule := above("r", "q", 1, 0.1)
	judge := rule.Judge
	rule.Judge = func(w Workload) *Verdict {
		seen[w.Instance] = w.OCALL
		v := judge(w)
		v.Evidence = append(v.Evidence, EvidenceOCALL)
		return v
	}
	r := evaluate(t, f, []Rule{rule}, Options{})
	low, high := seen["a"].CPU(1000, cost.UnknownClock)
	if _, measured := seen["a"].(cost.Seconds); !measured || low != 3e-3 || high != 5e-3 || seen["b"] != cost.OCALL || seen["c"] != cost.OCALL {
		t.Errorf("%+v, %v to %v s", seen, low, high)
	}
	for _, found := range r.Findings {
		e := found.Evidence[len(found.Evidence)-1]
		if shown := e.Name == EvidenceOCALL; shown != (found.Instance == "a") || shown && (math.Abs(e.Value-4e-6) > 1e-12 || e.Query != "avg by (instance) (teescope_enclave_crossing_seconds)") {
			t.Errorf("on %s: %+v", found.Instance, e)
		}
	}
	if text := seen["a"].Assumption(); text != "an OCALL costs 3 to 5 us (transitions.cost: measured on this machine)" {
		t.Error(text)
	}
}
