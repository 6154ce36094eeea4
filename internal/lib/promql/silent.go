// SPDX-License-Identifier: Apache-2.0

package promql

import (
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// A Query is a parsed query. It is safe for concurrent use.
type Query struct{ tree parser.Expr }

// Parse parses a query.
func Parse(expr string) (Query, error) {
	tree, err := parse(expr)
	return Query{tree}, err
}

// Silent reports whether the answer has no samples because metrics have no series. A query that may have samples is not
// silent.
func (q Query) Silent(has func(metric string) bool) bool { return silent(q.tree, has) }

// inner returns the expression of which another one is the range, the sign, or the parentheses.
func inner(node parser.Expr) parser.Expr {
	for {
		switch n := node.(type) {
		case *parser.MatrixSelector:
			node = n.VectorSelector
		case *parser.SubqueryExpr:
			node = n.Expr
		case *parser.ParenExpr:
			node = n.Expr
		case *parser.UnaryExpr:
			node = n.Expr
		default:
			return node
		}
	}
}

// answering are functions that return samples without samples.
var answering = []string{"absent", "absent_over_time", "scalar", "vector"}

func silent(node parser.Expr, has func(string) bool) bool {
	switch n := inner(node).(type) {
	case *parser.VectorSelector:
		return n.Name != "" && !has(n.Name)
	case *parser.AggregateExpr:
		return silent(n.Expr, has)
	case *parser.Call:
		return !slices.Contains(answering, n.Func.Name) && slices.ContainsFunc(n.Args, func(arg parser.Expr) bool { return silent(arg, has) })
	case *parser.BinaryExpr:
		left, right := silent(n.LHS, has), silent(n.RHS, has)
		switch m := n.VectorMatching; {
		case n.Op == parser.LOR:
			return left && right
		case n.Op == parser.LUNLESS:
			return left
		case m != nil && (m.FillValues.LHS != nil || m.FillValues.RHS != nil):
			return left && right
		}
		return left || right
	}
	return false
}

// Apart reports whether each sample of the answer depends only on series with its own value of a label, and on series
// without this label. So a query with a matcher of the label, as [Narrow] adds it, returns the same samples of this value.
func (q Query) Apart(label string) bool { return apart(q.tree, label) }

func apart(node parser.Expr, label string) bool {
	switch n := inner(node).(type) {
	case *parser.VectorSelector, *parser.NumberLiteral, *parser.StringLiteral:
		return true
	case *parser.AggregateExpr:
		return !n.Without && n.Op != parser.COUNT_VALUES && slices.Contains(n.Grouping, label) && apart(n.Expr, label)
	case *parser.Call:
		switch n.Func.Name {
		case "absent", "absent_over_time", "scalar", "label_replace", "label_join", "info":
			return false
		}
		return !slices.ContainsFunc(n.Args, func(arg parser.Expr) bool { return !apart(arg, label) })
	case *parser.BinaryExpr:
		return apartSides(n, label)
	}
	return false
}

// apartSides reports whether a binary operation keeps values of the label apart. The side of the one in a match of many to
// one has no matcher of a label that does not join the sides and is not included.
func apartSides(n *parser.BinaryExpr, label string) bool {
	m := n.VectorMatching
	if m == nil { // one side is a number
		return apart(n.LHS, label) && apart(n.RHS, label)
	}
	only := []Matcher{{Label: label}}
	left, right := sides(m, only)
	joined := slices.Contains(m.MatchingLabels, label) == m.On
	if m.Card != parser.CardManyToOne && m.Card != parser.CardOneToMany && !joined {
		return false
	}
	return (len(left) == 0 || apart(n.LHS, label)) && (len(right) == 0 || apart(n.RHS, label))
}
