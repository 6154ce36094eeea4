// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/server/prom"
)

// everyMinute returns a case of straight lines as a scrape every minute sees it. It returns false for other cases.
func (c testCase) everyMinute() (testCase, bool) {
	every := int(time.Minute / time.Duration(c.Interval))
	if every <= 1 || c.Window < duration(5*time.Minute) {
		return c, false
	}
	straight := true
	c = c.change(func(s series) (string, bool) {
		parts := steady.FindStringSubmatch(s.Values)
		if parts == nil {
			straight = false
			return s.Values, true
		}
		step, _ := strconv.ParseFloat(strings.TrimPrefix(parts[2], "+"), 64)
		n, _ := strconv.Atoi(parts[3])
		straight = straight && n >= every
		return fmt.Sprintf("%s+%sx%d", parts[1], strconv.FormatFloat(step*float64(every), 'f', -1, 64), n/every), true
	})
	c.Interval = duration(time.Minute)
	return c, straight
}

// resampled returns the source of any case as a scrape every minute sees it. The last scrape is this long before the end.
func (c testCase) resampled(t *testing.T, before time.Duration) *prom.Source {
	t.Helper()
	whole, err := c.source(host)
	if err != nil {
		t.Fatal(err)
	}
	last := c.end().Add(-before)
	first := last.Add(-last.Sub(begin).Truncate(time.Minute))
	all, err := whole.Range(t.Context(), `{__name__=~".+"}`, first, last, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	db := prom.NewStore()
	for _, s := range all {
		var times []time.Time
		for _, p := range s.Points {
			times = append(times, p.Time)
		}
		if err := db.AddSeries(s.Labels, times, query.Values(s.Points)); err != nil {
			t.Fatal(err)
		}
	}
	slow, err := db.Source()
	if err != nil {
		t.Fatal(err)
	}
	return slow
}

// TestAScrapeEveryMinuteOfCurves is [TestAScrapeEveryMinute] for rules whose causes have a beginning: an hour with few cache
// misses, and the start of an enclave.
func TestAScrapeEveryMinuteOfCurves(t *testing.T) {
	asked := 0
	for _, c := range positives(t) {
		if c.rule != rules.LLCMisses && c.rule != rules.SlowStart {
			continue
		}
		for _, before := range []time.Duration{0, 25 * time.Second, 55 * time.Second} {
			asked++
			r, err := engine.Evaluate(t.Context(), c.resampled(t, before), rules.All(), c.options())
			if err != nil {
				t.Fatal(err)
			}
			spoilt := fmt.Sprintf("with a scrape every minute, the last one %s ago", before)
			c.onlyRight(t, spoilt, r, c.whole(t))
			if !slices.ContainsFunc(r.Findings, func(f analysis.Finding) bool { return f.Rule == c.Want.Rule }) {
				t.Errorf("%s, %s: %s was not found: %+v", c.file, spoilt, c.Want.Rule, r.Problems[:min(3, len(r.Problems))])
			}
		}
	}
	if asked < 6 {
		t.Errorf("only %d cases", asked)
	}
}

// TestAScrapeEveryMinute: no rule goes silent, and none finds something else, if there are five samples in the window.
func TestAScrapeEveryMinute(t *testing.T) {
	asked := make(map[string]int)
	for _, c := range positives(t) {
		slow, ok := c.everyMinute()
		if !ok {
			continue
		}
		asked[c.rule]++
		r, err := slow.evaluate(rules.All())
		if err != nil {
			t.Fatal(err)
		}
		c.onlyRight(t, "with a scrape every minute", r, c.whole(t))
		if !slices.ContainsFunc(r.Findings, func(f analysis.Finding) bool { return f.Rule == c.Want.Rule }) {
			t.Errorf("%s, with a scrape every minute: %s was not found: %+v", c.file, c.Want.Rule, r.Problems[:min(3, len(r.Problems))])
		}
	}
	// The first two have the test above. The cases of the third have a scrape every minute anyway.
	curved := []string{rules.LLCMisses, rules.SlowStart, rules.GrowthToLimit}
	for _, r := range rules.All() {
		if asked[r.Name] == 0 && !slices.Contains(curved, r.Name) && !testing.Short() {
			t.Errorf("rule %s has no case of straight lines", r.Name)
		}
	}
}
