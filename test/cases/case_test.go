// SPDX-License-Identifier: Apache-2.0

// Package cases tests the diagnosis. Each file in data holds the series of a machine and the expected findings.
//
// Every case runs through PromQL and all rules at once, so that findings of other rules show too. It does not run real
// programs: test/e2e and test/sgx do that.
package cases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/server/prom"
)

// kind is the purpose of a case.
type kind string

const (
	positive kind = "positive" // the rule must find its cause
	near     kind = "near"     // the rule has data, but its cause is absent
	negative kind = "negative" // nothing resembles the cause
)

// series is one series in the notation of promtool's unit tests.
type series struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

// testCase is one case.
type testCase struct {
	About    string   `yaml:"about"`
	Source   string   `yaml:"source"`
	Interval duration `yaml:"interval"`
	Window   duration `yaml:"window"`
	At       duration `yaml:"at"`
	Input    []series `yaml:"input_series"`
	Want     want     `yaml:"want"`
	Also     []string `yaml:"also"` // rules that may find their cause too
	// WithoutSGX are the environments without enclaves (none, tdx, sev) in which the cause of the rule exists too, in one case
	// of the rule.
	WithoutSGX []string `yaml:"without_sgx"`
	// Limit is what limits a workload, in the cases of limits.
	Limit *limitWanted `yaml:"limit"`
	Not   []string     `yaml:"not"` // rules that must not find anything, not even info

	file string
	rule string
	kind kind
}

// want is the expected finding. Without a rule, no finding above info is allowed.
type want struct {
	Rule     string            `yaml:"rule"`
	Workload *string           `yaml:"workload"`
	Severity analysis.Severity `yaml:"severity"`
	Cause    string            `yaml:"cause"` // a substring
	Gain     *interval         `yaml:"gain"`
	Saving   *interval         `yaml:"saving"` // in cores
}

// interval is what a case expects of an estimate.
type interval struct {
	None     bool     `yaml:"none"` // there is no estimate: nothing limits the throughput
	Contains *float64 `yaml:"contains"`
	AtLeast  *float64 `yaml:"at_least"` // the lower end
	AtMost   *float64 `yaml:"at_most"`  // the upper end
}

// UnmarshalYAML implements yaml.Unmarshaler: "none" or a finding.
func (w *want) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		if node.Value != "none" {
			return fmt.Errorf("line %d: want must be \"none\" or a finding", node.Line)
		}
		return nil
	}
	for i := 0; i < len(node.Content); i += 2 { // Decode of a node does not refuse unknown keys
		if key := node.Content[i].Value; !slices.Contains([]string{"rule", "workload", "severity", "cause", "gain", "saving"}, key) {
			return fmt.Errorf("line %d: want has no key %q", node.Content[i].Line, key)
		}
	}
	type plain want
	return node.Decode((*plain)(w))
}

// duration is "5m".
type duration time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *duration) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := time.ParseDuration(node.Value)
	if err == nil && parsed <= 0 {
		err = errors.New("it must be positive")
	}
	if err != nil {
		return fmt.Errorf("line %d: duration %q: %w", node.Line, node.Value, err)
	}
	*d = duration(parsed)
	return nil
}

var fileName = regexp.MustCompile(`^([a-z0-9-]+?)--(positive|near|negative)-([a-z0-9-]+)\.yaml$`)

// load reads the cases of a file.
func load(file string) ([]testCase, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return cases(filepath.Base(file), text)
}

// separator begins a case in a file of several.
var separator = regexp.MustCompile(`(?m)^--- # (\S+)\n`)

// parts returns the names and texts of the cases of a file of several.
func parts(text []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		begins := separator.FindAllSubmatchIndex(text, -1)
		for i, at := range begins {
			end := len(text)
			if i+1 < len(begins) {
				end = begins[i+1][0]
			}
			if !yield(string(text[at[2]:at[3]]), text[at[1]:end]) {
				return
			}
		}
	}
}

// partsOf returns the names and texts of the cases of files of several.
func partsOf(t *testing.T, pattern string) iter.Seq2[string, []byte] {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal("no files", pattern, err)
	}
	return func(yield func(string, []byte) bool) {
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for name, part := range parts(text) {
				if !yield(name, part) {
					return
				}
			}
		}
	}
}

// cases returns the cases of a file. RULE--KIND-NAME.yaml has one case. RULE.yaml has several: each begins with the
// line "--- # KIND-NAME".
func cases(name string, text []byte) ([]testCase, error) {
	if !separator.Match(text) {
		c, err := one(name, text)
		return []testCase{c}, err
	}
	var all []testCase
	for part, text := range parts(text) {
		c, err := one(strings.TrimSuffix(name, ".yaml")+"--"+part+".yaml", text)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// one reads a case whose name states the rule and the kind.
func one(name string, text []byte) (testCase, error) {
	parts := fileName.FindStringSubmatch(name)
	if parts == nil {
		return testCase{}, fmt.Errorf("%s: the name must be RULE--positive-NAME.yaml, RULE--near-NAME.yaml or RULE--negative-NAME.yaml", name)
	}
	c, err := parse(text)
	if err != nil {
		return testCase{}, fmt.Errorf("%s: %w", name, err)
	}
	c.file, c.rule, c.kind = name, parts[1], kind(parts[2])
	if (c.Want.Rule == c.rule) != (c.kind == positive) {
		return testCase{}, fmt.Errorf("%s: exactly the positive cases must expect their own rule", name)
	}
	return c, nil
}

// decode reads a text that is one document of YAML without unknown keys.
func decode(text []byte, into any) error {
	in := yaml.NewDecoder(bytes.NewReader(text))
	in.KnownFields(true)
	if err := in.Decode(into); err != nil {
		return err
	}
	if err := in.Decode(new(any)); !errors.Is(err, io.EOF) {
		return errors.New("there is one case in a file")
	}
	return nil
}

func parse(text []byte) (testCase, error) {
	c := testCase{Interval: duration(5 * time.Second), Window: duration(5 * time.Minute)}
	if err := decode(text, &c); err != nil {
		return testCase{}, err
	}
	if c.At == 0 {
		c.At = c.Window
	}
	var want struct{ Want yaml.Node }
	if err := yaml.Unmarshal(text, &want); err != nil {
		return testCase{}, err
	}
	switch {
	case c.About == "" || c.Source == "":
		return testCase{}, errors.New("it needs about and source: what it shows, and where its figures come from")
	case len(c.Input) == 0:
		return testCase{}, errors.New("it needs input_series")
	case want.Want.IsZero():
		return testCase{}, errors.New("it needs want: none or a finding")
	}
	return c, nil
}

// begin is the time of a case's first sample.
var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (c testCase) end() time.Time { return begin.Add(time.Duration(c.At)) }

func (c testCase) options() engine.Options {
	return engine.Options{Window: time.Duration(c.Window), At: c.end()}
}

// store returns the series of a case on machines with these names.
func (c testCase) store(instances ...string) (*prom.Store, error) {
	db := prom.NewStore()
	for _, s := range c.Input {
		for _, instance := range instances {
			if err := db.AddSequence(on(instance, s.Series), s.Values, begin, time.Duration(c.Interval)); err != nil {
				return nil, err
			}
		}
	}
	return db, nil
}

// source returns a source with the series of a case.
func (c testCase) source(instances ...string) (*prom.Source, error) {
	db, err := c.store(instances...)
	if err != nil {
		return nil, err
	}
	return db.Source()
}

// on adds the label instance to a series without one.
func on(instance, series string) string {
	if strings.Contains(series, "instance=") {
		return series
	}
	if name, rest, labelled := strings.Cut(series, "{"); labelled {
		return fmt.Sprintf("%s{instance=%q,%s", name, instance, rest)
	}
	return fmt.Sprintf("%s{instance=%q}", series, instance)
}

const host = "host"

// evaluate runs the rules on a case.
func (c testCase) evaluate(rules []engine.Rule) (engine.Result, error) {
	db, err := c.source(host)
	if err != nil {
		return engine.Result{}, err
	}
	return engine.Evaluate(context.Background(), db, rules, c.options())
}

// outcome is the result of a case: whether its finding exists, other findings, and all errors.
type outcome struct {
	found   bool
	falsely []string // rules with forbidden findings
	wrong   []string
}

// compare compares the findings with the case.
func (c testCase) compare(r engine.Result) outcome {
	var o outcome
	wrong := func(format string, args ...any) { o.wrong = append(o.wrong, fmt.Sprintf(format, args...)) }
	for _, p := range r.Problems {
		if p.Kind == query.Failed || p.Kind == query.Broken {
			wrong("%s: %s (query %q, rules %v)", p.Kind, p.Error, p.Query, p.Rules)
		}
	}
	if c.kind == near && !slices.Contains(r.Checked, c.rule) {
		wrong("rule %s has not looked: a near miss has its signals", c.rule)
	}
	for _, f := range r.Findings {
		if !slices.Contains(r.Checked, f.Rule) {
			wrong("%s has a finding, and is not among the rules that judged: the verdict would be wrong without it", f.Rule)
		}
		switch {
		case f.Rule == c.Want.Rule && (c.Want.Workload == nil || *c.Want.Workload == f.Workload):
			o.found = true
			c.Want.compare(f, wrong)
		case slices.Contains(c.Not, f.Rule), f.Severity != analysis.Info && !slices.Contains(c.Also, f.Rule):
			o.falsely = append(o.falsely, f.Rule)
			wrong("%s at %q, which is not there: %s (%s, gain %s)", f.Rule, f.Workload, f.Cause, f.Severity, gain(f))
		}
	}
	if c.Want.Rule != "" && !o.found {
		wrong("%s has not been found", c.Want.Rule)
	}
	return o
}

func (w want) compare(f analysis.Finding, wrong func(string, ...any)) {
	if w.Severity != "" && f.Severity != w.Severity {
		wrong("%s: severity %s, not %s (gain %s)", f.Rule, f.Severity, w.Severity, gain(f))
	}
	if !strings.Contains(f.Cause, w.Cause) {
		wrong("%s: the cause %q does not say %q", f.Rule, f.Cause, w.Cause)
	}
	if w.Gain != nil {
		w.Gain.compare(f.Rule+": the gain", f.Gain != nil, gain(f), f.Gain, wrong)
	}
	if w.Saving != nil {
		var both *estimate.Gain
		if f.Saving != nil {
			both = &estimate.Gain{Low: f.Saving.Low, High: f.Saving.High}
		}
		w.Saving.compare(f.Rule+": the saving", f.Saving != nil, fmt.Sprintf("%+v", f.Saving), both, wrong)
	}
}

func (i interval) compare(what string, is bool, text string, got *estimate.Gain, wrong func(string, ...any)) {
	switch {
	case i.None != !is:
		wrong("%s is %s, and none expected is %t", what, text, i.None)
	case !is:
	case i.Contains != nil && (got.Low > *i.Contains || *i.Contains > got.High):
		wrong("%s %s does not contain %.3g", what, text, *i.Contains)
	case i.AtLeast != nil && got.Low < *i.AtLeast:
		wrong("%s %s begins below %.3g", what, text, *i.AtLeast)
	case i.AtMost != nil && got.High > *i.AtMost:
		wrong("%s %s ends above %.3g", what, text, *i.AtMost)
	}
}

func gain(f analysis.Finding) string {
	if f.Gain == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.3g to %.3g", f.Gain.Low, f.Gain.High)
}
