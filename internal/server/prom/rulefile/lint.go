// SPDX-License-Identifier: Apache-2.0

package rulefile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/teescope/teescope/internal/lib/text"
)

// BasisAnnotation names what a threshold is based on, and SourceAnnotation where it comes from.
const (
	BasisAnnotation  = "teescope_basis"
	SourceAnnotation = "teescope_source"
)

// bases lists the valid values of BasisAnnotation.
func bases() []string { return []string{"measured", "documented", "proposed"} }

// own lists the prefixes of teescope's metrics. Lint cannot know whether other metrics exist.
func own() []string { return []string{"teescope_", "sgx_"} }

// Lint finds rules that are valid but probably not intended: duplicates, an unknown basis, unknown metric names. Known
// are the metrics that teescope has, with the suffixes of histograms.
func Lint(files []*File, known []string) []Problem {
	recorded := map[string]bool{}
	for _, f := range files {
		for r := range f.each() {
			recorded[r.Record] = true
		}
	}
	var problems []Problem
	for _, f := range files {
		seen := map[string]int{}
		for r, line := range f.each() {
			warn := func(format string, args ...any) {
				problems = append(problems, Problem{
					File: f.Name, Line: line, Rule: fmt.Sprintf("%q", r.Alert+r.Record), Text: fmt.Sprintf(format, args...), Warning: true,
				})
			}
			key := r.Alert + r.Record + labels.FromMap(r.Labels).String()
			if first, twice := seen[key]; twice {
				warn("has the same name and labels as the rule on line %d; rename one or change a label", first)
			}
			seen[key] = line
			if basis, ok := r.Annotations[BasisAnnotation]; ok && !slices.Contains(bases(), basis) {
				warn("%s is %q, which is not one of %s", BasisAnnotation, basis, strings.Join(bases(), ", "))
			}
			for _, name := range metrics(r.Expr) {
				if len(known) > 0 && !recorded[name] && unknown(name, known) {
					warn("no metric of teescope has the name %s%s", name, suggestion(name, known))
				}
			}
		}
	}
	return problems
}

// each iterates over the rules of a file and their lines.
func (f *File) each() func(yield func(rulefmt.Rule, int) bool) {
	return func(yield func(rulefmt.Rule, int) bool) {
		if f.Groups == nil {
			return
		}
		for _, g := range f.Groups.Groups {
			for i, r := range g.Rules {
				if !yield(r, f.Line(g.Name, i+1)) {
					return
				}
			}
		}
	}
}

// metrics lists the names of metrics that an expression reads.
func metrics(expr string) []string {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return nil
	}
	var names []string
	parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok && v.Name != "" && !slices.Contains(names, v.Name) {
			names = append(names, v.Name)
		}
		return nil
	})
	return names
}

// probed begins the names of the metrics of a user's own probes, which a file on each machine names.
const probed = "teescope_user_"

func unknown(name string, known []string) bool {
	if strings.HasPrefix(name, probed) {
		return false
	}
	ours := slices.ContainsFunc(own(), func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	return ours && !strings.Contains(name, ":") && !slices.Contains(known, name)
}

func suggestion(name string, known []string) string {
	if near := text.Nearest(name, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
