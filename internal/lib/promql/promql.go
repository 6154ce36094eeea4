// SPDX-License-Identifier: Apache-2.0

// Package promql reads and rewrites PromQL with Prometheus' own parser.
//
// It does not evaluate a query or depend on a metric.
package promql

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// A Matcher selects the series whose label has a value.
type Matcher struct{ Label, Value string }

func parse(expr string) (parser.Expr, error) {
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return nil, fmt.Errorf("parsing the query %s: %w", expr, err)
	}
	return tree, nil
}

// Check returns why a query cannot be parsed, or nil.
func Check(expr string) error {
	_, err := parse(expr)
	return err
}

// Narrow adds matchers to the selectors of a query. It skips metrics for which of returns false. For joined vectors
// (group_left, group_right), a matcher goes to the side that the result's label comes from. It goes to both sides when
// they are joined by that label.
func Narrow(expr string, only []Matcher, of func(metric string) bool) (string, error) {
	if len(only) == 0 {
		return expr, nil
	}
	tree, err := parse(expr)
	if err != nil {
		return "", err
	}
	var found []insertion
	narrow(tree, only, of, &found)
	for i := range found {
		found[i] = inSelector(expr, found[i])
	}
	narrowed := apply(expr, found)
	if _, err := parse(narrowed); err != nil { // a comment between a name and its braces
		return "", err
	}
	return narrowed, nil
}

// An insertion is a text to insert between two positions of a query. The rest of the query stays as written.
type insertion struct {
	from, to int
	text     string
}

// inSelector moves an insertion from the start of a selector to the place for its matchers.
func inSelector(expr string, e insertion) insertion {
	at := e.from
	for at < len(expr) && (expr[at] == '_' || expr[at] == ':' || expr[at] >= '0' && expr[at] <= '9' || expr[at]|0x20 >= 'a' && expr[at]|0x20 <= 'z') {
		at++ // the name
	}
	brace := at + len(expr[at:]) - len(strings.TrimLeft(expr[at:], " \t\r\n"))
	if brace < len(expr) && expr[brace] == '{' {
		return insertion{from: brace + 1, to: brace + 1, text: e.text + ","}
	}
	return insertion{from: at, to: at, text: "{" + e.text + "}"}
}

func apply(expr string, edits []insertion) string {
	slices.SortFunc(edits, func(a, b insertion) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	last := 0
	for _, e := range edits {
		b.WriteString(expr[last:e.from])
		b.WriteString(e.text)
		last = e.to
	}
	return b.String() + expr[last:]
}

// matchers formats matchers as text.
func matchers(only []Matcher) string {
	texts := make([]string, 0, len(only))
	for _, m := range only {
		texts = append(texts, (&labels.Matcher{Type: labels.MatchEqual, Name: m.Label, Value: m.Value}).String())
	}
	return strings.Join(texts, ",")
}

func narrow(node parser.Node, only []Matcher, of func(string) bool, found *[]insertion) {
	switch n := node.(type) {
	case *parser.VectorSelector:
		if len(only) > 0 && of(n.Name) {
			*found = append(*found, insertion{text: matchers(only), from: int(n.PosRange.Start)})
		}
	case *parser.BinaryExpr:
		left, right := sides(n.VectorMatching, only)
		narrow(n.LHS, left, of, found)
		narrow(n.RHS, right, of, found)
	default:
		for child := range parser.ChildrenIter(node) {
			narrow(child, only, of, found)
		}
	}
}

// sides returns the matchers for each side of a binary expression.
func sides(m *parser.VectorMatching, only []Matcher) (left, right []Matcher) {
	if m == nil || m.Card != parser.CardManyToOne && m.Card != parser.CardOneToMany {
		return only, only
	}
	var many, one []Matcher
	for _, o := range only {
		joined := slices.Contains(m.MatchingLabels, o.Label) == m.On
		included := slices.Contains(m.Include, o.Label)
		if joined || !included {
			many = append(many, o)
		}
		if joined || included {
			one = append(one, o)
		}
	}
	if m.Card == parser.CardOneToMany {
		return one, many
	}
	return many, one
}

// Sum reduces the labels that the outermost sum of a query keeps to the given ones. A query of another form stays
// unchanged.
func Sum(expr string, keep ...string) string {
	tree, err := parse(expr)
	if err != nil {
		return expr
	}
	sum, ok := tree.(*parser.AggregateExpr)
	if !ok || sum.Op != parser.SUM || sum.Without {
		return expr
	}
	sum.Grouping = slices.DeleteFunc(sum.Grouping, func(label string) bool { return !slices.Contains(keep, label) })
	return sum.String()
}

// Newest returns an expression that is 1 for one series of a selector for each combination of these labels: the one with the newest
// sample. A join needs one series. For some minutes there are two, after what a label names has changed, or after an agent was killed
// and started again.
func Newest(selector string, by ...string) string {
	return "(topk by (" + strings.Join(by, ", ") + ") (1, timestamp(" + selector + ")) > bool 0)"
}

// Metrics returns the metric names in the selectors of a query. It returns none for a query that cannot be parsed.
func Metrics(expr string) []string {
	var names []string
	inspect(expr, func(node parser.Node) {
		if s, ok := node.(*parser.VectorSelector); ok && s.Name != "" && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	})
	return names
}

// GroupsBy reports whether an aggregation in the query keeps a label.
func GroupsBy(expr, label string) bool {
	found := false
	inspect(expr, func(node parser.Node) {
		a, ok := node.(*parser.AggregateExpr)
		found = found || ok && !a.Without && slices.Contains(a.Grouping, label)
	})
	return found
}

// Rename replaces the calls of one function by calls of another.
func Rename(expr, from, to string) (string, error) {
	tree, err := parse(expr)
	if err != nil {
		return "", err
	}
	var found []insertion
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		if call, ok := node.(*parser.Call); ok && call.Func.Name == from {
			start := int(call.PosRange.Start)
			found = append(found, insertion{from: start, to: start + len(from), text: to})
		}
		return nil
	})
	return apply(expr, found), nil
}

// WithoutNative removes the functions of native histograms from a query, if a database refused it because it does not know them.
// message is the error of the database. VictoriaMetrics is such a database. It stores no native histograms, so the argument of
// the function has no samples, and neither has the result.
func WithoutNative(expr, message string) (string, bool) {
	portable := expr
	for _, name := range []string{"histogram_count", "histogram_sum", "histogram_avg"} {
		if text, err := Rename(portable, name, ""); err == nil {
			portable = text
		}
	}
	unknown := strings.Contains(message, "unknown func") || strings.Contains(message, "unsupported func") // VictoriaMetrics 1.79 and 1.150
	return portable, portable != expr && unknown && strings.Contains(message, "histogram_")
}

// Complete has parameters of a request with which a database of several machines returns an error if some of them do not answer:
// those of VictoriaMetrics' cluster and of Thanos. By default both leave out what these machines have, so a sum is too small and a
// workload seems to have ended. Most other databases ignore the parameters: see [RefusesComplete].
func Complete() map[string]string {
	return map[string]string{"deny_partial_response": "1", "partial_response": "false"}
}

// RefusesComplete reports whether an error with the status 400 is about the parameters of [Complete]. Google's managed Prometheus refuses
// each parameter that it does not know.
func RefusesComplete(message string) bool {
	return strings.Contains(message, "Unknown name") && strings.Contains(message, "partial_response")
}

// nameLabel is the label that holds a metric's name.
const nameLabel = "__name__"

// Selector parses a selector of the series of one metric, such as http_requests_total{code=~"2.."}. The matchers include
// that of the name.
func Selector(s string) (name string, all []*labels.Matcher, err error) {
	all, err = parser.NewParser(parser.Options{}).ParseMetricSelector(s)
	if err != nil {
		return "", nil, fmt.Errorf("%q is not a metric or a PromQL selector such as http_requests_total{code=~\"2..\"}", s)
	}
	for _, m := range all {
		if m.Name == nameLabel && m.Type == labels.MatchEqual && m.Value != "" {
			return m.Value, all, nil
		}
	}
	return "", nil, fmt.Errorf("%q names no metric: use for example http_requests_total{code=~\"2..\"}", s)
}

// EachScrape returns a query whose rates over a range are rates between two consecutive scrapes instead. It reports
// whether the query has such a rate.
func EachScrape(expr, over, twoScrapes string) (string, bool) {
	var found []insertion
	over = "[" + over + "]"
	inspect(expr, func(node parser.Node) {
		call, ok := node.(*parser.Call)
		if !ok || call.Func.Name != "rate" {
			return
		}
		start, end := int(call.PosRange.Start), int(call.Args[0].PositionRange().End)
		if from := end - len(over); from > start && expr[from:end] == over {
			found = append(found, insertion{from: start, to: start, text: "i"}, insertion{from: from, to: end, text: "[" + twoScrapes + "]"})
		}
	})
	return apply(expr, found), len(found) > 0
}

// Ranges gives all range selectors of a query the same range, a duration such as "1m". Ranges of subqueries stay. A query that
// cannot be parsed stays unchanged.
func Ranges(expr, duration string) string {
	var found []insertion
	inspect(expr, func(node parser.Node) {
		if m, ok := node.(*parser.MatrixSelector); ok {
			after := int(m.VectorSelector.PositionRange().End)
			from := after + strings.IndexByte(expr[after:], '[')
			found = append(found, insertion{from: from, to: from + strings.IndexByte(expr[from:], ']') + 1, text: "[" + duration + "]"})
		}
	})
	return apply(expr, found)
}

func inspect(expr string, visit func(parser.Node)) {
	tree, err := parse(expr)
	if err != nil {
		return
	}
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		if node != nil {
			visit(node)
		}
		return nil
	})
}
