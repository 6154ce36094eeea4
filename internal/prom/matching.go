// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Matching adds the matcher label=~regex to every selector of a query.
func Matching(expr, label, regex string) (string, error) {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return "", err
	}
	m, err := labels.NewMatcher(labels.MatchRegexp, label, regex)
	if err != nil {
		return "", fmt.Errorf("the matcher of %s: %w", label, err)
	}
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			s.LabelMatchers = append(s.LabelMatchers, m)
		}
		return nil
	})
	return parsed.String(), nil
}
