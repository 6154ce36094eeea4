// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/promql"
)

// EvidenceOCALL names the cost of an OCALL that was measured on the machine: the middle of the range.
const EvidenceOCALL = "ocall_cost"

// evidence returns one figure of a rule's signals: "name", or "name{label=value}". It returns nil when there is no
// sample.
func (s scene) evidence(rule Rule, w Workload, name string) (*analysis.Evidence, error) {
	base, label, value := name, "", ""
	if b, rest, found := strings.Cut(name, "{"); found {
		base = b
		label, value, found = strings.Cut(strings.TrimSuffix(rest, "}"), "=")
		if !found || !strings.HasSuffix(rest, "}") {
			return nil, fmt.Errorf("evidence %q: the format is name{label=value}", name)
		}
	}
	if name == EvidenceOCALL {
		return s.evidenceOCALL(w)
	}
	at := slices.IndexFunc(rule.Signals, func(one Signal) bool { return one.Name == base })
	if at < 0 {
		return nil, fmt.Errorf("evidence %q: there is no signal %q", name, base)
	}
	signal := rule.Signals[at]
	expr := s.expr(signal.Query)
	shown := analysis.Evidence{Name: name, Unit: signal.Unit, N: s.there[query.Target{Workload: w.Name, Instance: w.Instance}].samples}
	var only []promql.Matcher
	measured := false
	for _, v := range w.values[base] {
		if label != "" && v.Labels[label] != value {
			continue
		}
		shown.Value += v.Value
		if !measured {
			only = s.matchers(expr, v.Labels)
		}
		measured = true
	}
	if !measured {
		return nil, nil
	}
	if math.IsInf(shown.Value, 0) {
		return nil, fmt.Errorf("evidence %q is infinite", name)
	}
	shown.Low, shown.High = s.interval(expr, query.Target{Workload: w.Name, Instance: w.Instance}, shown.Value)
	if label != "" {
		only = append(only, promql.Matcher{Label: label, Value: value})
	} else {
		expr = s.memo.sum(expr)
	}
	text, err := s.memo.narrow(expr, only, "targets", ofTargets)
	if err != nil {
		return nil, fmt.Errorf("evidence %q: %w", name, err)
	}
	shown.Query = text
	return &shown, nil
}

// evidenceOCALL returns nil when the cost was not measured.
func (s scene) evidenceOCALL(w Workload) (*analysis.Evidence, error) {
	measured, ok := w.OCALL.(cost.Seconds)
	if !ok {
		return nil, nil
	}
	var only []promql.Matcher
	expr := "avg by (instance) (teescope_enclave_crossing_seconds)"
	if s.several || s.costs.Measured() > 1 {
		only = []promql.Matcher{{Label: "instance", Value: w.Instance}}
	}
	expr, err := s.memo.narrow(expr, only, "targets", ofTargets)
	return &analysis.Evidence{Name: EvidenceOCALL, Unit: "seconds", Value: (measured.Low + measured.High) / 2, Query: expr}, err
}

// matchers returns the matchers that select the samples of the same workload and machine. The machine is named only if
// there are several.
func (s scene) matchers(query string, labels map[string]string) []promql.Matcher {
	var only []promql.Matcher
	if workload := labels["workload"]; workload != "" {
		only = append(only, promql.Matcher{Label: "workload", Value: workload})
	}
	instance := labels["instance"]
	if s.several && instance != "" {
		return append(only, promql.Matcher{Label: "instance", Value: instance})
	}
	for p := range s.answers[query].by {
		if instance != "" && p.Instance != instance {
			return append(only, promql.Matcher{Label: "instance", Value: instance})
		}
	}
	return only
}

// ofTargets reports whether a metric has the labels workload or instance. Those of the agent and of node exporters do.
func ofTargets(metric string) bool {
	for _, prefix := range []string{"teescope_", "sgx_", "container_", "node_"} {
		if strings.HasPrefix(metric, prefix) {
			return true
		}
	}
	return false
}
