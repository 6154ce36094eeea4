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
	"github.com/teescope/teescope/internal/analysis/rules"
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
	// The cases of these two have a begin: an hour with few cache misses, and the start of an enclave. Those of the third have a
	// scrape every minute anyway.
	curved := []string{rules.LLCMisses, rules.SlowStart, rules.GrowthToLimit}
	for _, r := range rules.All() {
		if asked[r.Name] == 0 && !slices.Contains(curved, r.Name) {
			t.Errorf("rule %s has no case of straight lines", r.Name)
		}
	}
}
