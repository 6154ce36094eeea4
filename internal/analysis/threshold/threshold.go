// SPDX-License-Identifier: Apache-2.0

// Package threshold reads a user's replacements for thresholds of rules.
//
// It does not depend on a rule, or on the file of the text.
package threshold

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/silence"
	"github.com/teescope/teescope/internal/lib/text"
)

const example = "use for example lock-contention.calls=5000 workload=~redis-.*"

// Parse reads RULE.NAME=VALUE and matchers for the workload and the machine, separated by blanks. A value that contains a
// blank is written as a regular expression with \s.
func Parse(s string, rules []engine.Rule) (engine.Override, error) {
	fields := strings.Fields(s)
	if len(fields) == 0 {
		return engine.Override{}, fmt.Errorf("has no value: %s", example)
	}
	name, number, found := strings.Cut(fields[0], "=")
	rule, name, dotted := strings.Cut(name, ".")
	if !found || !dotted {
		return engine.Override{}, fmt.Errorf("%q is not RULE.NAME=VALUE: %s", fields[0], example)
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(value, 0) || math.IsNaN(value) || value <= 0 {
		return engine.Override{}, fmt.Errorf("%q is not a number above 0: %s", number, example)
	}
	if err := exists(rule, name, rules); err != nil {
		return engine.Override{}, err
	}
	var matchers []silence.Matcher
	for _, field := range fields[1:] {
		m, err := silence.ParseMatcher(field)
		if err != nil {
			return engine.Override{}, err
		}
		if m.Name == silence.Rule {
			return engine.Override{}, fmt.Errorf("%q: the rule is named before the dot: %s", field, example)
		}
		matchers = append(matchers, m)
	}
	applies := func(workload, instance string) bool {
		values := map[string]string{silence.Workload: workload, silence.Instance: instance}
		return !slices.ContainsFunc(matchers, func(m silence.Matcher) bool { return !m.Matches(values[m.Name]) })
	}
	return engine.Override{Rule: rule, Name: name, Value: value, Applies: applies}, nil
}

// exists returns an error for a rule or a threshold that does not exist.
func exists(rule, name string, rules []engine.Rule) error {
	var names []string
	for _, r := range rules {
		if r.Name != rule {
			names = append(names, r.Name)
			continue
		}
		var thresholds []string
		for _, t := range r.Thresholds {
			thresholds = append(thresholds, t.Name)
		}
		if slices.Contains(thresholds, name) {
			return nil
		}
		if len(thresholds) == 0 {
			return fmt.Errorf("rule %s has no threshold that can be set", rule)
		}
		return fmt.Errorf("rule %s has no threshold %q: it has %s", rule, name, strings.Join(thresholds, ", "))
	}
	if near := text.Nearest(rule, names); near != "" {
		return fmt.Errorf("there is no rule %q; did you mean %s?", rule, near)
	}
	return fmt.Errorf("there is no rule %q", rule)
}

// ParseAll reads several overrides, of which the last one that applies counts.
func ParseAll(texts []string, rules []engine.Rule) ([]engine.Override, error) {
	var all []engine.Override
	for _, s := range texts {
		one, err := Parse(s, rules)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}
