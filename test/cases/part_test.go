// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/lib/promql"
)

// signals returns the distinct queries of all rules and of the limits, over this window.
func signals(window time.Duration) (all []string) {
	list := slices.Clone(rules.Limits().Signals)
	for _, r := range rules.All() {
		list = append(list, r.Signals...)
	}
	for _, s := range list {
		text := strings.NewReplacer("$window", query.Duration(window), "$whole", query.Duration(window)).Replace(s.Query)
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// texts returns samples of a workload, or without one, as comparable texts.
func texts(samples []query.Sample, workload string) (all []string) {
	for _, s := range samples {
		if of := s.Labels["workload"]; of == "" || of == workload {
			all = append(all, fmt.Sprint(s.Labels, s.Value))
		}
	}
	slices.Sort(all)
	return all
}

// TestQueriesOfAPartAgree asks each query of a rule with a matcher of one workload, and compares the samples of this workload.
func TestQueriesOfAPartAgree(t *testing.T) {
	apart := 0
	for _, c := range some(loadAll(t), 8) {
		source, err := c.source(host)
		if err != nil {
			t.Fatal(err)
		}
		names, err := source.Metrics(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range signals(time.Duration(c.Window)) {
			whole, err := source.Instant(t.Context(), text, c.end())
			if err != nil {
				t.Fatal(err)
			}
			q, err := promql.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if q.Silent(func(metric string) bool { return slices.Contains(names, metric) }) && len(whole) > 0 {
				t.Errorf("%s: %s has samples and is silent", c.file, text)
			}
			workloads := make(map[string]bool)
			for _, s := range whole {
				workloads[s.Labels["workload"]] = true
			}
			if !q.Apart("workload") {
				continue
			}
			for w := range workloads {
				one, err := promql.Narrow(text, []promql.Matcher{{Label: "workload", Value: "\xff"}}, func(string) bool { return true })
				if err != nil {
					t.Fatal(err)
				}
				part, err := source.Instant(t.Context(), strings.ReplaceAll(one, `workload="\xff"`, "workload=~"+strconv.Quote(regexp.QuoteMeta(w)+"|")), c.end())
				if err != nil {
					t.Fatal(err)
				}
				apart++
				if got, want := texts(part, w), texts(whole, w); !slices.Equal(got, want) {
					t.Errorf("%s, workload %q: %s\nhas   %v\nwant %v", c.file, w, one, got, want)
				}
			}
		}
	}
	if apart < 100 {
		t.Errorf("only %d queries were asked of one workload", apart)
	}
}

// blindfold is a source that does not list its metrics.
type blindfold struct{ query.Source }

// TestSilentQueriesChangeNothing evaluates cases without knowing which metrics exist.
func TestSilentQueriesChangeNothing(t *testing.T) {
	for _, c := range some(loadAll(t), 4) {
		source, err := c.source(host)
		if err != nil {
			t.Fatal(err)
		}
		var results [2]string
		for i, of := range []query.Source{source, blindfold{source}} {
			o := c.options()
			o.Limiter = rules.Limits()
			r, err := engine.Evaluate(t.Context(), of, rules.All(), o)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal([]any{r, r.Limits})
			if err != nil {
				t.Fatal(err)
			}
			results[i] = string(text)
		}
		if results[0] != results[1] {
			t.Errorf("%s: the result is\n%s\nand without a list of metrics\n%s", c.file, results[0], results[1])
		}
	}
}
