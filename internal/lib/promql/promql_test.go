// SPDX-License-Identifier: Apache-2.0

package promql

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func ours(metric string) bool { return !strings.HasPrefix(metric, "other_") }

func TestNarrow(t *testing.T) {
	workload, call := Matcher{"workload", "w"}, Matcher{"syscall", `"\`}
	for _, c := range []struct {
		expr string
		only []Matcher
		want string
	}{
		{`a`, nil, `a`},
		{`rate(a[5m])`, []Matcher{workload, call}, `rate(a{workload="w",syscall="\"\\"}[5m])`},
		{`a{x!~"1|2}"} / other_b`, []Matcher{workload}, `a{workload="w",x!~"1|2}"} / other_b`},
		{`rate(a[5m] offset 1h) > 0`, []Matcher{workload}, `rate(a{workload="w"}[5m] offset 1h) > 0`},
		{
			`sum by (workload, instance) (a * on (instance, id) group_left (workload) b)`, []Matcher{workload, {"instance", "i"}, {"le", "1"}},
			`sum by (workload, instance) (a{instance="i",le="1"} * on (instance, id) group_left (workload) b{workload="w",instance="i"})`,
		},
		{`a * on (x) group_right (y) b`, []Matcher{{"x", "1"}, {"y", "2"}, {"z", "3"}}, `a{x="1",y="2"} * on (x) group_right (y) b{x="1",z="3"}`},
		{`{__name__=~"a.+"}`, []Matcher{workload}, `{workload="w",__name__=~"a.+"}`},
	} {
		if got, err := Narrow(c.expr, c.only, ours); err != nil || got != c.want {
			t.Errorf("%s, %v:\n%s\nwant\n%s (%v)", c.expr, c.only, got, c.want, err)
		}
	}
	if _, err := Narrow(`sum(`, []Matcher{workload}, ours); err == nil {
		t.Error("half a query is accepted")
	}
}

func TestSum(t *testing.T) {
	for expr, want := range map[string]string{
		`sum by (workload, instance, syscall) (rate(a[5m]))`: `sum by (workload, instance) (rate(a[5m]))`,
		`max by (workload, syscall) (a)`:                     `max by (workload, syscall) (a)`,
		`sum by (x) (a) / sum by (x) (b)`:                    `sum by (x) (a) / sum by (x) (b)`,
		`sum(`:                                               `sum(`,
	} {
		if got := Sum(expr, "workload", "instance"); got != want {
			t.Errorf("%s: %s, want %s", expr, got, want)
		}
	}
}

func TestWhatAQueryIsOf(t *testing.T) {
	if got := Metrics(`rate(a[5m]) / on (x) a + max by (instance) (b{c="a_d"})`); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("metrics %v", got)
	}
	if !GroupsBy(`max(sum by (instance, x) (a))`, "instance") || GroupsBy(`sum by (x) (a{instance="by (instance)"})`, "instance") {
		t.Error("GroupsBy")
	}
	for expr, want := range map[string]string{
		`sum by (workload) (rate(a[5m]))`:                `a`,
		`sum by (workload, x) ((rate(a[5m])))`:           `a`,
		`sum by (workload) (rate(a{x="y"}[5m]))`:         `a`,
		`sum by (workload) (rate(a[5m] offset 5m))`:      ``,
		`sum by (workload) (rate(a[5m] @ 7))`:            ``,
		`sum by (workload) (rate(a[5m] @ end()))`:        ``,
		`max by (workload) (rate(a[5m]))`:                ``,
		`sum by (workload) (rate(a[5m])) / scalar(b)`:    ``,
		`sum by (workload) (increase(a[5m]))`:            ``,
		`sum by (workload) (rate(sum(a)[5m:1m]))`:        ``,
		`sum by (workload) (`:                            ``,
		`sum without (workload) (rate(a[5m]))`:           ``,
		`sum by (workload) (rate({__name__="a"}[5m]))`:   ``,
		`sum by (workload) (rate(a[5m])) and on () up{}`: ``,
	} {
		r, ok := RatesOf(expr)
		if ok != (want != "") || ok && (r.Metric != want || r.Over != 5*time.Minute) {
			t.Errorf("%s: %+v, %v", expr, r, ok)
		}
	}
	if got, err := Rename(`sum by (le) (rate(a_rate[5m]))`, "rate", "increase"); err != nil || got != `sum by (le) (increase(a_rate[5m]))` {
		t.Errorf("renamed: %s (%v)", got, err)
	}
}

// FuzzNarrow: a narrowed query can be parsed, one of each scrape too, and a selector has a name.
func FuzzNarrow(f *testing.F) {
	f.Add(`sum by (workload, instance) (a * on (instance, id) group_left (workload) b)`, "w")
	f.Add(`rate(a{x!~"1|2}"}[5m] offset 1h) > bool 0 or vector(1)`, "\xff\"\\")
	f.Fuzz(func(t *testing.T, expr, value string) {
		got, err := Narrow(expr, []Matcher{{"workload", value}}, ours)
		if err != nil {
			return
		}
		if _, err := parse(got); err != nil {
			t.Errorf("%s is narrowed to %s: %v", expr, got, err)
		}
		if each, ok := EachScrape(expr, "5m", "12500ms"); ok {
			if _, err := parse(each); err != nil {
				t.Errorf("%s of each scrape is %s: %v", expr, each, err)
			}
		}
		if name, _, err := Selector(value); err == nil && name == "" {
			t.Errorf("%q selects no metric", value)
		}
	})
}

func TestSelector(t *testing.T) {
	for text, want := range map[string]string{
		"a_total": "a_total", `a:b{c=~"d"}`: "a:b", `{__name__="x y",a!="b"}`: "x y",
		"": "", "{}": "", `{a="b"}`: "", `{__name__=~"a.*"}`: "", "a[5m]": "", "rate(a[5m])": "", "a offset 5m": "", "a @ 1": "", "a + b": "", "a{": "",
	} {
		name, all, err := Selector(text)
		if name != want || (err == nil) != (want != "") || want != "" && len(all) == 0 {
			t.Errorf("Selector(%q) = %q, %v, %v", text, name, all, err)
		}
	}
}

func TestRanges(t *testing.T) {
	for text, want := range map[string]string{
		`sum(rate(x{a="[1m]"}[1m]))/rate(y [ 1h30m ] offset 5m)`: `sum(rate(x{a="[1m]"}[90s]))/rate(y [90s] offset 5m)`,
		`max_over_time(rate({__name__="x]"}[5m] @ 7)[1h:1m])`:    `max_over_time(rate({__name__="x]"}[90s] @ 7)[1h:1m])`,
		"x":             "x",
		"rate(x[5m]) +": "rate(x[5m]) +",
	} {
		if got := Ranges(text, "90s"); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}

func TestEachScrape(t *testing.T) {
	got, ok := EachScrape(`sum by (a) (rate(x{rate="rate([5m])"}[5m])) / rate(y[5m])`, "5m", "12500ms")
	if want := `sum by (a) (irate(x{rate="rate([5m])"}[12500ms])) / irate(y[12500ms])`; got != want || !ok {
		t.Errorf("%s", got)
	}
	for _, text := range []string{"x", "avg_over_time(x[5m])", "("} {
		if got, ok := EachScrape(text, "5m", "10s"); ok {
			t.Errorf("%q: %s has no rate", text, got)
		}
	}
}

// The value of the join is 1, and the newest series depends on those with other values of a label that does not join.
func TestNewest(t *testing.T) {
	newest := Newest(`info{x="1"}`, "instance", "id")
	if want := `(topk by (instance, id) (1, timestamp(info{x="1"})) > bool 0)`; newest != want {
		t.Errorf("Newest() = %s, want %s", newest, want)
	}
	q, err := Parse("rate(a[1m]) * on (instance, id) group_left (workload) " + newest)
	if err != nil {
		t.Fatal(err)
	}
	if !q.Apart("instance") || q.Apart("workload") {
		t.Errorf("instances are apart: %v, workloads: %v", q.Apart("instance"), q.Apart("workload"))
	}
}
