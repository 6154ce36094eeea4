// SPDX-License-Identifier: Apache-2.0

package promql

import "testing"

func TestSilent(t *testing.T) {
	for expr, want := range map[string]bool{
		`a`: false, `none`: true, `none{x="y"}`: true, `{__name__=~"none"}`: false, `{x="y"}`: false,
		`-none`: true, `(none)`: true, `1`: false, `time()`: false, `"text"`: false,
		`rate(none[5m])`: true, `rate(a[5m])`: false, `max_over_time(rate(none[5m])[1h:1m] offset 1h)`: true,
		`sum by (x) (none)`: true, `count(none)`: true, `topk(2, none)`: true, `quantile(scalar(none), a)`: false,
		`absent(none)`: false, `absent_over_time(none[5m])`: false, `vector(1)`: false, `scalar(none)`: false, `vector(scalar(none))`: false,
		`histogram_quantile(0.9, none)`: true, `clamp_min(a, scalar(none))`: false, `label_replace(none, "x", "$1", "y", "(.*)")`: true,
		`none + 1`: true, `1 - none > 2`: true, `a * none`: true, `none / on (x) group_left (y) a`: true, `a / b`: false,
		`a or none`: false, `none or a`: false, `none or none2`: true, `a and none`: true, `none unless a`: true, `a unless none`: false,
		`none or vector(0)`: false, `count(none) or vector(0)`: false, `a > scalar(none)`: false,
	} {
		q, err := Parse(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if got := q.Silent(func(metric string) bool { return metric == "a" || metric == "b" }); got != want {
			t.Errorf("%s is silent: %v", expr, got)
		}
	}
	if (Query{}).Silent(func(string) bool { return false }) || (Query{}).Apart("workload") {
		t.Error("a query that cannot be parsed has no samples")
	}
}

func TestApart(t *testing.T) {
	for expr, want := range map[string]bool{
		`a`: true, `{__name__=~"a.+"}`: true, `rate(a[5m])`: true, `-(a)`: true, `a > 1`: true, `time() - a`: true,
		`sum by (workload) (a)`: true, `sum by (instance) (a)`: false, `sum(a)`: false, `sum without (x) (a)`: false,
		`sum by (workload) (sum by (instance) (a))`: false, `sum by (workload) (sum by (workload, x) (a))`: true,
		`topk by (workload) (1, a)`: true, `topk(1, a)`: false, `count_values by (workload) ("x", a)`: false,
		`a * b`: true, `a * on (x) b`: false, `a * on (x, workload) b`: true, `a * ignoring (workload) b`: false, `a * ignoring (x) b`: true,
		`a * on (x) group_left (workload) b`: true, `a * on (x) group_left sum by (x) (b)`: true, `sum by (x) (a) * on (x) group_left b`: false,
		`a * on (x) group_left (workload) sum by (x) (b)`: false, `sum by (x) (a) * on (x) group_right b`: true,
		`a or b`: true, `a unless on (x) b`: false, `a unless b`: true, `a and on (workload) b`: true,
		`label_replace(a, "x", "$1", "y", "(.*)")`: false, `absent(a)`: false, `clamp_min(a, scalar(b))`: false,
		`histogram_quantile(0.9, sum by (workload, le) (a))`: true, `histogram_quantile(0.9, sum by (le) (a))`: false,
		`max_over_time(sum by (workload) (a)[1h:1m])`: true, `1`: true,
	} {
		q, err := Parse(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if got := q.Apart("workload"); got != want {
			t.Errorf("%s keeps workloads apart: %v", expr, got)
		}
	}
}
