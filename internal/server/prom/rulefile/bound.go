// SPDX-License-Identifier: Apache-2.0

package rulefile

import (
	"fmt"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/teescope/teescope/internal/server/prom/bound"
)

// DefaultStep is the step of a subquery that names none, where no server is known: the default time between two scrapes.
const DefaultStep = 5 * time.Second

// unparsable finds queries that must not be parsed, because parsing would take too much memory.
func (f *File) unparsable() []Problem {
	var problems []Problem
	var walk func(n *yaml.Node, depth int)
	walk = func(n *yaml.Node, depth int) {
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "expr" {
				if err := bound.Text(c.Value); err != nil {
					problems = append(problems, Problem{File: f.Name, Line: c.Line, Text: err.Error()})
				}
			}
			if depth < 8 { // an expression is at depth 6
				walk(c, depth+1)
			}
		}
	}
	walk(&f.doc, 0)
	return problems
}

// costly finds queries that a server would refuse to evaluate.
func (f *File) costly(step time.Duration) []Problem {
	var problems []Problem
	p := parser.NewParser(parser.Options{})
	now := time.Now()
	for r, line := range f.each() {
		expr, err := p.ParseExpr(r.Expr)
		if err == nil {
			expr, err = promql.PreprocessExpr(expr, now, now, 0)
		}
		if err == nil {
			_, err = bound.Query(&parser.EvalStmt{Expr: expr, Start: now, End: now}, bound.Limits{Step: step})
		}
		if err != nil {
			problems = append(problems, Problem{File: f.Name, Line: line, Rule: fmt.Sprintf("%q", r.Alert+r.Record), Text: err.Error()})
		}
	}
	return problems
}
