// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

func TestNesting(t *testing.T) {
	for _, c := range []struct {
		expr, text, format string // the errors
	}{
		{`sum by (a) (rate(up{b="c"}[5m]))`, "", ""},
		{strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100), "", ""},
		{strings.Repeat("(", 101) + "1" + strings.Repeat(")", 101), "nests brackets 101 deep; the maximum is 100", ""},
		{strings.Repeat("(", 16000), "nests brackets", ""},
		{`label_replace(up, "a", "` + strings.Repeat("(", 101) + `", '` + strings.Repeat("[", 101) + "', `" + strings.Repeat("{", 101) + "`) # " + strings.Repeat("(", 101), "", ""},
		{strings.Repeat("(up) + ", 400) + "1", "", "too long to format"},
		{strings.Repeat("up or ", 999) + "up", "", "too long to format"},
		{strings.Repeat("up or ", 1000) + "up", "1001 operators and functions", ""},
		{strings.Repeat("2 ^ ", 1000) + "2", "the maximum is 1000", ""},
		{strings.Repeat("-", 16000) + "up", "the maximum is 100:", ""},
		{strings.Repeat("-#\n", 5000) + "up", "the maximum is 100:", ""},
		{strings.Repeat("-", 100) + "up", "", ""},
		{strings.Repeat("+-", 8000) + "up", "the maximum is 100:", ""},
		{`sum by (` + strings.Repeat("or,", 2000) + `b) (up)`, "", ""}, // operators in the text are few in the tree
	} {
		check := func(kind string, err error, want string) {
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s of %.40s: %v, want %q", kind, c.expr, err, want)
			}
		}
		err := Text(c.expr)
		check("text", err, c.text)
		if err == nil {
			check("format", Format(c.expr), c.format)
		}
	}
}

// The worst texts that pass take tens of milliseconds to format.
func BenchmarkFormat(b *testing.B) {
	for name, expr := range map[string]string{
		"wide":  strings.Repeat("sum(", 40) + "sum by (" + strings.Repeat("x,", 7000) + "x) (up)" + strings.Repeat(")", 40),
		"long":  strings.Repeat("sum(", 42) + strings.Repeat("a", 15000) + strings.Repeat(")", 42),
		"chain": strings.Repeat("a or ", 180) + "b",
		"power": strings.Repeat("2^", 245) + "2",
		"minus": strings.Repeat("-", 100) + "up",
	} {
		b.Run(name, func(b *testing.B) {
			if err := Format(expr); err != nil {
				b.Fatal(err)
			}
			tree := parsed(b, expr)
			for b.Loop() {
				tree.Pretty(0)
			}
		})
	}
	for name, expr := range map[string]string{"or": strings.Repeat("a or ", 3000) + "b", "power": strings.Repeat("2^", 8000) + "2", "signs": strings.Repeat("2^-", 5000) + "2", "brackets": strings.Repeat("(", 8000) + "1", "minus": strings.Repeat("-", 16000) + "up"} {
		b.Run("refused/"+name, func(b *testing.B) {
			for b.Loop() {
				if Text(expr) == nil {
					b.Fatal("not refused")
				}
			}
		})
	}
}

func parsed(t testing.TB, expr string) parser.Expr {
	t.Helper()
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
