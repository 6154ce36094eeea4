// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/rules"
)

// Each case has a small heap of its own. To collect it often took 40 % of the CPU time of these tests.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// loadAll reads every case.
func loadAll(t *testing.T) []testCase {
	t.Helper()
	files, err := filepath.Glob("data/*")
	if err != nil {
		t.Fatal(err)
	}
	var all []testCase
	for _, file := range files {
		read, err := load(file)
		if err != nil {
			t.Error(err)
			continue
		}
		all = append(all, read...)
	}
	return all
}

// varied returns the cases that a test repeats with a change: all of them, and with -short the first one of each rule.
// TestCases runs every case in any way.
func varied(t *testing.T) []testCase {
	t.Helper()
	all, seen := loadAll(t), make(map[string]bool)
	if !testing.Short() {
		return all
	}
	return slices.DeleteFunc(all, func(c testCase) bool {
		first := c.kind == positive && !seen[c.rule]
		seen[c.rule] = seen[c.rule] || first
		return !first
	})
}

// some returns the elements of a table that a slow test runs: all of them, and with -short the first of each n.
func some[T any](all []T, n int) (chosen []T) {
	if !testing.Short() {
		return all
	}
	for i := 0; i < len(all); i += n {
		chosen = append(chosen, all[i])
	}
	return chosen
}

// TestCases runs every case and prints the score of each rule.
func TestCases(t *testing.T) {
	all := rules.All()
	tally := make(table)
	for _, c := range loadAll(t) {
		t.Run(strings.TrimSuffix(c.file, ".yaml"), func(t *testing.T) {
			r, err := c.evaluate(all)
			if err != nil {
				t.Fatal(err)
			}
			o := c.compare(r)
			tally.count(c, o)
			for _, w := range o.wrong {
				t.Error(w)
			}
		})
	}
	t.Logf("precision and recall over all cases\n%s", tally)
}

func TestEveryRuleHasCases(t *testing.T) {
	have := make(map[string]map[kind]bool)
	for _, r := range rules.All() {
		have[r.Name] = make(map[kind]bool)
	}
	for _, c := range loadAll(t) {
		if have[c.rule] == nil {
			t.Errorf("%s: there is no rule %s", c.file, c.rule)
			continue
		}
		have[c.rule][c.kind] = true
		for _, named := range append(append([]string{c.Want.Rule}, c.Also...), c.Not...) {
			if named != "" && have[named] == nil {
				t.Errorf("%s: there is no rule %s", c.file, named)
			}
		}
	}
	for rule, kinds := range have {
		for _, k := range []kind{positive, near, negative} {
			if !kinds[k] {
				t.Errorf("rule %s has no %s case: write test/cases/data/%s--%s-NAME.yaml", rule, k, rule, k)
			}
		}
	}
}

// score counts the right and wrong results of a rule.
type score struct {
	right  int // positive cases with a finding
	missed int // positive cases without a finding
	wrong  int // cases with a false finding
	quiet  int // near and negative cases without a finding
}

// table is a score for each rule.
type table map[string]score

// count adds the result of a case. A confusion counts twice: one rule missed its cause, and another one was wrong.
func (t table) count(c testCase, o outcome) {
	s := t[c.rule]
	switch {
	case c.kind == positive && o.found:
		s.right++
	case c.kind == positive:
		s.missed++
	case !slices.Contains(o.falsely, c.rule):
		s.quiet++
	}
	t[c.rule] = s
	slices.Sort(o.falsely)
	for _, rule := range slices.Compact(o.falsely) {
		s := t[rule]
		s.wrong++
		t[rule] = s
	}
}

// String returns the table; its last line is the total.
func (t table) String() string {
	var b strings.Builder
	line := func(name string, s score) {
		fmt.Fprintf(&b, "%-28s %9s %7s  %5d %6d %5d %5d\n", name,
			ratio(s.right, s.right+s.wrong), ratio(s.right, s.right+s.missed), s.right, s.missed, s.wrong, s.quiet)
	}
	fmt.Fprintf(&b, "%-28s %9s %7s  %5s %6s %5s %5s\n", "rule", "precision", "recall", "right", "missed", "wrong", "quiet")
	var names []string
	var total score
	for name, s := range t {
		names = append(names, name)
		total = score{total.right + s.right, total.missed + s.missed, total.wrong + s.wrong, total.quiet + s.quiet}
	}
	slices.Sort(names)
	for _, name := range names {
		line(name, t[name])
	}
	line("all", total)
	return b.String()
}

// ratio returns "~" for a division by zero.
func ratio(part, whole int) string {
	if whole == 0 {
		return "~"
	}
	return fmt.Sprintf("%.2f", float64(part)/float64(whole))
}

// TestRulesKeepMachinesApart runs every case on two machines. Each must have the same findings as alone.
func TestRulesKeepMachinesApart(t *testing.T) {
	for _, c := range varied(t) {
		if slices.ContainsFunc(c.Input, func(s series) bool { return strings.Contains(s.Series, "instance=") }) {
			continue // it has its own machines
		}
		alone, err := c.evaluate(rules.All())
		if err != nil {
			t.Fatal(err)
		}
		db, err := c.source(host, "other:9750")
		if err != nil {
			t.Fatal(err)
		}
		both, err := engine.Evaluate(t.Context(), db, rules.All(), c.options())
		if err != nil {
			t.Fatal(err)
		}
		for _, instance := range []string{host, "other:9750"} {
			got, want := said(both, instance), said(alone, host)
			if !slices.Equal(got, want) {
				t.Errorf("%s: on one machine\n\t%s\nand on %s, one of two,\n\t%s\ndoes a query drop the label instance?",
					c.file, strings.Join(want, "\n\t"), instance, strings.Join(got, "\n\t"))
			}
		}
	}
}

// said returns the findings of a machine without its name.
func said(r engine.Result, instance string) []string {
	var all []string
	for _, f := range r.Findings {
		if f.Instance == instance {
			all = append(all, strings.ReplaceAll(fmt.Sprintf("%s at %q: %s, gain %s", f.Rule, f.Workload, f.Cause, gain(f)), instance, host))
		}
	}
	return all
}
