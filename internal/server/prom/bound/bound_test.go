// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

func query(t *testing.T, expr string, span, step time.Duration) (Cost, error) {
	t.Helper()
	if err := Text(expr); err != nil {
		return Cost{}, err
	}
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	end := time.UnixMilli(1_700_000_000_000)
	stmt := &parser.EvalStmt{Start: end.Add(-span), End: end, Interval: step}
	if stmt.Expr, err = promql.PreprocessExpr(tree, stmt.Start, end, step); err != nil {
		t.Fatal(err)
	}
	return Query(stmt, Limits{Step: 5 * time.Second, Kept: 15 * 24 * time.Hour})
}

const day = 24 * time.Hour

func TestQueriesWithTooManySteps(t *testing.T) {
	for _, c := range []struct {
		expr       string
		span, step time.Duration
		want       string // empty if it is allowed
	}{
		{expr: `up`, span: 15 * day, step: 2 * time.Minute},
		{expr: `rate(up[15d])`, span: 15 * day, step: time.Hour},
		{expr: `max_over_time(rate(up[5m])[15d:])`, span: 15 * day, step: time.Hour},
		{expr: `max_over_time(up[30d:5s])`},
		{expr: `max_over_time(up[1d:1s] @ 0)`, span: 15 * day, step: time.Hour}, // evaluated once
		{expr: `up[365d:1ms]`, want: `the subquery [1y:1ms] needs 31536000001 steps`},
		{expr: `up[10d:1ms] offset 1d`, want: `the subquery [10d:1ms] needs`},
		{expr: `sum(max_over_time(up[290y:]))`, want: "steps"},
		{expr: `max_over_time(up[290y:1d])`, span: 200 * 365 * day, step: 365 * day},
		{expr: `max_over_time(up[1d:1s])`, span: 15 * day, step: time.Hour, want: `needs 1382401 steps`},
		{expr: `max_over_time(max_over_time(up[1h:1s])[20d:1h])`, want: `the subquery [1h:1s] needs`},
		{expr: `max_over_time(max_over_time(up[1h:1s])[5d:1h])`},
		{expr: strings.Repeat(`max_over_time(up[3d:1s]) + `, 4) + "1", want: "all subqueries of a query together"},
		{expr: `up[1:0.0001]`, want: "must be at least 1ms"},
		{expr: `up`, step: time.Microsecond, want: "must be at least 1ms"},
		{expr: `quantile_over_time(0.5, up[15d])`, span: 15 * day, step: 2 * time.Minute, want: "use a shorter range, or fewer steps"},
		{expr: `sum_over_time(up[1d])`, span: 15 * day, step: 2 * time.Minute},
		{expr: `quantile_over_time(0.5, up[1h])`, span: 15 * day, step: 2 * time.Minute},
		{expr: `sum_over_time(up[1d:1s])`, span: 2 * day, step: 17 * time.Second, want: "costs as much as reading"},
		{expr: `up{job=~"(a{1000}){2}"}`, want: "never"},
		{expr: `up{job=~"` + strings.Repeat("a", 200) + `"}`},
		{expr: `up{job=~"(abcdefghij){1000}", x!~"` + strings.Repeat("(abcdefghij){1000}", 9) + `"}`, want: "fewer or smaller repetitions"},
		{expr: "up{a=~`" + strings.Repeat("[0-9]{1,3}[.]", 200) + "`}"},
		{expr: `label_replace(up, "a", "$1", "b", "` + strings.Repeat("(abcdefghij){1000}", 10) + `")`, want: "fewer or smaller repetitions"},
	} {
		if c.want == "never" {
			continue // Prometheus does not compile it
		}
		_, err := query(t, c.expr, c.span, c.step)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%.80s: %v", c.expr, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%.80s: %v, want %q", c.expr, err, c.want)
		}
	}
}

func TestLabelsThatFunctionsMake(t *testing.T) {
	nested := func(n int) string {
		return strings.Repeat(`label_join(`, n) + "up" + strings.Repeat(`,"a","-","a","a")`, n)
	}
	for expr, want := range map[string]label{
		`up`:                             {},
		`label_join(up,"a","--","b")`:    {1, 0},
		`label_join(up,"a","-","b","c")`: {2, 1},
		nested(3):                        {8, 7},
		`label_replace(up,"a","x$1$2","b","(.)(.)")`:                                   {2, 5},
		`label_replace(label_replace(up,"a","x","",""),"b","$1","a","(.*)")`:           {1, 4},
		`label_join(up,"a","","b") + on() group_left label_join(up,"c","","b","b")`:    {3, 0},
		`label_join(label_join(up, "a", "", "b", "b") or up, "c", "", "a")`:            {4, 0},
		`sum by (a) (label_join(up,"a","","b"))`:                                       {1, 0},
		`max_over_time(label_join(up,"a","","b","b")[1h:1m])`:                          {2, 0},
		`label_join(label_replace(vector(1),"a","12345678","",""),"b","","a","a","a")`: {3 + 0, 8 + 24},
	} {
		c, err := query(t, expr, 0, 0)
		if err != nil || c.Copies < want.copies || c.Literal < want.literal || c.Copies > want.copies+3 || c.Literal > want.literal {
			t.Errorf("%s: %v copies, %v bytes, %v, want %+v", expr, c.Copies, c.Literal, err, want)
		}
	}
	if _, err := query(t, nested(19), 0, 0); err != nil {
		t.Error(err)
	}
	if _, err := query(t, nested(21), 0, 0); err == nil {
		t.Error("a label of 2^21 others is allowed")
	}
}

// Series and groups need room for all points. Which ones do depends on the place of a selector.
func TestRowsOfSelectors(t *testing.T) {
	for expr, want := range map[string]Selector{
		`up`:                             {},
		`rate(up[1m])`:                   {},
		`up + 1`:                         {Wide: true},
		`abs(up)`:                        {Wide: true},
		`sum(up)`:                        {Grouped: true},
		`sum by (b, a) (rate(up[1m]))`:   {Grouped: true, By: []string{"a", "b"}},
		`sum by (a) (up > 1)`:            {Wide: true, Grouped: true, By: []string{"a"}},
		`sum without (a) (up)`:           {Wide: true},
		`abs(sum by (a) (up))`:           {Grouped: true, By: []string{"a"}},
		`topk(3, up)`:                    {Wide: true},
		`max_over_time((up)[1h:1m])`:     {},
		`max_over_time((up + 1)[1h:1m])`: {Wide: true},
	} {
		c, err := query(t, expr, day, time.Minute)
		if err != nil || len(c.Selectors) != 1 {
			t.Errorf("%s: %+v, %v", expr, c.Selectors, err)
			continue
		}
		got := c.Selectors[0]
		if got.Wide != want.Wide || got.Grouped != want.Grouped || strings.Join(got.By, ",") != strings.Join(want.By, ",") {
			t.Errorf("%s: %+v, want %+v", expr, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	const most, limit = 5_000_000, 512 << 20
	large := Read{Series: 100_000, Rows: 100_000, Labels: 30e6, Longest: 5e6}
	for _, c := range []struct {
		expr       string
		span, step time.Duration
		read       Read
		fits       bool
	}{
		{`{job="a"}`, 0, 0, large, true},
		{`{job="a"} > 1`, 0, 0, large, true},
		{`topk(10, {job="a"})`, 0, 0, large, true},
		{`topk by (a) (10, {job="a"})`, 0, 0, large, true},
		{`topk without () (1e9, {job="a"})`, 0, 0, large, false},
		{`bottomk by (a) (scalar(up), {job="a"})`, 0, 0, large, false},
		{`sum by (a) (rate({job="a"}[1m]))`, 15 * day, 2 * time.Minute, Read{Series: 100_000, Rows: 100}, true},
		{`{job="a"} + 1`, 15 * day, 2 * time.Minute, large, false},
		{`{job="a"} + 1`, 15 * day, 2 * time.Minute, Read{Series: 2000, Rows: 2000}, true},
		{`count_values("v", up)`, 0, 0, Read{Series: 10_000}, true},
		{`count_values("v", up)`, 15 * day, 2 * time.Minute, Read{Series: 10}, false},
		{`count_values("v", vector(time()))`, 15 * day, 2 * time.Minute, Read{}, false},
		{`label_join(up, "a", "", "b", "b")`, 0, 0, large, true},
		{`label_replace(up, "a", "` + strings.Repeat("x", 10_000) + `", "", "")`, 0, 0, large, false},
	} {
		cost, err := query(t, c.expr, c.span, c.step)
		if err != nil {
			t.Fatal(err)
		}
		if got := cost.Bytes(c.read, most); math.IsNaN(got) || got <= limit != c.fits {
			t.Errorf("%.50s: %.0f MiB, want it to fit: %t", c.expr, got/(1<<20), c.fits)
		}
	}
}
