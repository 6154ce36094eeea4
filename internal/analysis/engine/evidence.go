// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/query"
)

// EvidenceOCALL names what an OCALL costs on the machine, where somebody has measured it: the middle of the range.
const EvidenceOCALL = "ocall_cost"

// evidence is one number of a rule's signals: "name", or "name{label=value}". It is nil where there is none.
func (s scene) evidence(rule Rule, w Workload, name string) (*analysis.Evidence, error) {
	base, label, value := name, "", ""
	if b, rest, found := strings.Cut(name, "{"); found {
		base = b
		label, value, found = strings.Cut(strings.TrimSuffix(rest, "}"), "=")
		if !found || !strings.HasSuffix(rest, "}") {
			return nil, fmt.Errorf("evidence %q: it is written name{label=value}", name)
		}
	}
	if name == EvidenceOCALL {
		return s.evidenceOCALL(w), nil
	}
	at := slices.IndexFunc(rule.Signals, func(one Signal) bool { return one.Name == base })
	if at < 0 {
		return nil, fmt.Errorf("evidence %q: there is no signal %q", name, base)
	}
	signal := rule.Signals[at]
	expr := s.expr(signal.Query)
	shown := analysis.Evidence{Name: name, Unit: signal.Unit, N: s.there[query.Target{Workload: w.Name, Instance: w.Instance}].samples}
	var only []matcher
	measured := false
	for _, v := range w.values[base] {
		if label != "" && v.Labels[label] != value {
			continue
		}
		shown.Value += v.Value
		if !measured {
			only = s.whose(expr, v.Labels)
		}
		measured = true
	}
	if !measured {
		return nil, nil
	}
	if math.IsInf(shown.Value, 0) {
		return nil, fmt.Errorf("evidence %q is more than a number can hold", name)
	}
	if label != "" {
		only = append(only, matcher{label, value})
	} else {
		shown.Low, shown.High = s.interval(s.Window, signal, query.Target{Workload: w.Name, Instance: w.Instance}, shown.Value)
		expr = summed(expr)
	}
	shown.Query = narrow(expr, only)
	return &shown, nil
}

// evidenceOCALL is nil where nobody has measured it.
func (s scene) evidenceOCALL(w Workload) *analysis.Evidence {
	measured, ok := w.OCALL.(cost.Seconds)
	if !ok {
		return nil
	}
	query := "avg by (instance) (teescope_enclave_crossing_seconds)"
	if len(s.ocalls) > 1 {
		query = narrow(query, []matcher{{"instance", w.Instance}})
	}
	return &analysis.Evidence{Name: EvidenceOCALL, Unit: "seconds", Value: (measured.Low + measured.High) / 2, Query: query}
}

// matcher is a label with a value.
type matcher struct{ label, value string }

// whose are the matchers that leave of an answer what belongs to the same workload and machine. The machine is named
// where there are several.
func (s scene) whose(query string, labels map[string]string) []matcher {
	var only []matcher
	if workload := labels["workload"]; workload != "" {
		only = append(only, matcher{"workload", workload})
	}
	instance := labels["instance"]
	for p := range s.answers[query].by {
		if instance != "" && p.Instance != instance {
			return append(only, matcher{"instance", instance})
		}
	}
	return only
}

var (
	// selectors are the series in a query of a rule: a metric and what is asked of its labels.
	selectors = regexp.MustCompile(`\b(?:teescope|sgx|container|node)_\w+(?:\{[^}]*\})?`)
	// outerSum is a query that is a sum by labels.
	outerSum = regexp.MustCompile(`^sum by \(([a-z_, ]+)\) `)
)

// joined begins what tells the workload of series that have no such label.
const joined = "group_left (workload) "

// narrow asks for the series with these labels alone, as one would write it.
func narrow(query string, only []matcher) string {
	begin := strings.Index(query, joined)
	last := 0
	var b strings.Builder
	for _, at := range selectors.FindAllStringIndex(query, -1) {
		var texts []string
		for _, m := range only {
			// Of two that are joined only the second one has the labels, but both are of a machine.
			if m.label == "instance" || at[0] > begin {
				texts = append(texts, fmt.Sprintf("%s=%q", m.label, m.value))
			}
		}
		b.WriteString(query[last:at[0]])
		b.WriteString(match(query[at[0]:at[1]], texts))
		last = at[1]
	}
	return b.String() + query[last:]
}

// match adds matchers to a selector.
func match(selector string, texts []string) string {
	name, rest, found := strings.Cut(selector, "{")
	switch {
	case len(texts) == 0:
		return selector
	case found:
		return name + "{" + strings.Join(texts, ",") + "," + rest
	}
	return name + "{" + strings.Join(texts, ",") + "}"
}

// summed makes one number of a sum by labels other than workload and machine.
func summed(query string) string {
	parts := outerSum.FindStringSubmatch(query)
	if parts == nil {
		return query
	}
	var kept []string
	for _, label := range strings.Split(parts[1], ", ") {
		if label == "workload" || label == "instance" {
			kept = append(kept, label)
		}
	}
	return "sum by (" + strings.Join(kept, ", ") + ") " + query[len(parts[0]):]
}
