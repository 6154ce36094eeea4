// SPDX-License-Identifier: Apache-2.0

package promql

import (
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Rates is a query of the form "sum by (...) (rate(metric[range]))". The selector may have matchers.
type Rates struct {
	Metric   string
	Over     time.Duration
	by       []string
	matchers []*labels.Matcher
}

// RatesOf returns a query as rates, and whether it has that form.
func RatesOf(expr string) (r Rates, ok bool) {
	tree, err := parse(expr)
	if err != nil {
		return Rates{}, false
	}
	sum, ok := tree.(*parser.AggregateExpr)
	if !ok || sum.Op != parser.SUM || sum.Without {
		return Rates{}, false
	}
	inner := sum.Expr
	for p, isParen := inner.(*parser.ParenExpr); isParen; p, isParen = inner.(*parser.ParenExpr) {
		inner = p.Expr
	}
	call, ok := inner.(*parser.Call)
	if !ok || call.Func.Name != "rate" {
		return Rates{}, false
	}
	matrix, ok := call.Args[0].(*parser.MatrixSelector)
	if !ok {
		return Rates{}, false
	}
	s, ok := matrix.VectorSelector.(*parser.VectorSelector)
	if !ok || s.Name == "" || s.OriginalOffset != 0 || s.Timestamp != nil || s.StartOrEnd != 0 {
		return Rates{}, false
	}
	return Rates{Metric: s.Name, Over: matrix.Range, by: sum.Grouping, matchers: s.LabelMatchers}, true
}

// Covers reports whether the samples of r are parts of all samples of another query, so that sums
// of them give the other answer: see [Rates.Part]. r keeps all labels by which the other one selects or groups, and selects at least the same series.
func (r Rates) Covers(other Rates) bool {
	if r.Metric != other.Metric || r.Over != other.Over {
		return false
	}
	for _, m := range r.matchers {
		if !slices.ContainsFunc(other.matchers, func(o *labels.Matcher) bool { return same(m, o) }) {
			return false
		}
	}
	for _, m := range other.matchers {
		if !slices.Contains(r.by, m.Name) && !slices.ContainsFunc(r.matchers, func(o *labels.Matcher) bool { return same(m, o) }) {
			return false
		}
	}
	return !slices.ContainsFunc(other.by, func(label string) bool { return !slices.Contains(r.by, label) })
}

func same(a, b *labels.Matcher) bool {
	return a.Type == b.Type && a.Name == b.Name && a.Value == b.Value
}

// Part appends what distinguishes the sample of r to which a sample of another query belongs, if that query covers r. It returns
// false if the sample belongs to none.
func (r Rates) Part(of Rates, labels map[string]string, key []byte) ([]byte, bool) {
	for _, m := range r.matchers {
		if m.Name != nameLabel && slices.Contains(of.by, m.Name) && !m.Matches(labels[m.Name]) {
			return key, false
		}
	}
	for _, label := range r.by {
		key = append(append(key, labels[label]...), 0xff) // no value has it, because it is not UTF-8
	}
	return key, true
}

// Labels returns the labels of the sample of r to which such a sample belongs.
func (r Rates) Labels(labels map[string]string) map[string]string {
	kept := make(map[string]string, len(r.by))
	for _, label := range r.by {
		if value, has := labels[label]; has {
			kept[label] = value
		}
	}
	return kept
}
