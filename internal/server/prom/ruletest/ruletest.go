// SPDX-License-Identifier: Apache-2.0

// Package ruletest runs unit tests of rules in promtool's format.
//
// promtool's own implementation cannot be imported. This package follows it (cmd/promtool/unittest.go of Prometheus
// v0.315.0) on the same storage, engine and rule groups, so that the verdicts are the same. It does not print.
package ruletest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/server/prom/rulefile"
)

// Report is the result of one test file.
type Report struct {
	Tests    int // number of tests that were run
	Problems []rulefile.Problem
}

// Failed reports whether a test failed or could not be run.
func (r Report) Failed() bool {
	for _, p := range r.Problems {
		if !p.Warning {
			return true
		}
	}
	return false
}

// file is the test file's format. Keys and defaults are those of promtool.
type file struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	GroupEvalOrder     []string       `yaml:"group_eval_order"`
	Tests              []group        `yaml:"tests"`
	FuzzyCompare       bool           `yaml:"fuzzy_compare"`

	rules rulefile.Loader
	order map[string]int // index of each group in the order of evaluation
	name  string
}

// group is a set of input series and the results that are expected of them.
type group struct {
	Interval        model.Duration    `yaml:"interval"`
	InputSeries     []series          `yaml:"input_series"`
	AlertRuleTests  []alertCase       `yaml:"alert_rule_test"`
	PromqlExprTests []exprCase        `yaml:"promql_expr_test"`
	ExternalLabels  map[string]string `yaml:"external_labels"`
	ExternalURL     string            `yaml:"external_url"`
	TestGroupName   string            `yaml:"name"`
	StartTimestamp  startTime         `yaml:"start_timestamp"`
}

type series struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type alertCase struct {
	EvalTime  model.Duration  `yaml:"eval_time"`
	Alertname string          `yaml:"alertname"`
	ExpAlerts []expectedAlert `yaml:"exp_alerts"`
	line      int
}

type expectedAlert struct {
	ExpLabels      map[string]string `yaml:"exp_labels"`
	ExpAnnotations map[string]string `yaml:"exp_annotations"`
}

type exprCase struct {
	Expr       string           `yaml:"expr"`
	EvalTime   model.Duration   `yaml:"eval_time"`
	ExpSamples []expectedSample `yaml:"exp_samples"`
	line       int
}

type expectedSample struct {
	Labels    string  `yaml:"labels"`
	Value     float64 `yaml:"value"`
	Histogram string  `yaml:"histogram"` // when given, the value is ignored
}

// startTime is a time in seconds since 1970 or in RFC 3339.
type startTime struct{ time.Time }

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *startTime) UnmarshalYAML(n *yaml.Node) error {
	if s, err := strconv.ParseFloat(n.Value, 64); err == nil {
		whole, part := math.Modf(s)
		t.Time = time.Unix(int64(whole), int64(math.Round(part*1000)*1e6)).UTC()
		return nil
	}
	parsed, err := time.Parse(time.RFC3339Nano, n.Value)
	if err != nil {
		return fmt.Errorf("line %d: start_timestamp %q is neither seconds nor a time such as 2026-01-02T15:04:05Z", n.Line, n.Value)
	}
	t.Time = parsed
	return nil
}

// Run runs the tests of a file.
func Run(ctx context.Context, name string) Report {
	var r Report
	f, problems := read(name)
	r.Problems = problems
	if f == nil {
		return r
	}
	for i := range f.Tests {
		r.Problems = append(r.Problems, f.test(ctx, &f.Tests[i])...)
		r.Tests += len(f.Tests[i].AlertRuleTests) + len(f.Tests[i].PromqlExprTests)
	}
	if r.Tests == 0 && !r.Failed() {
		r.Problems = append(r.Problems, rulefile.Problem{File: name, Warning: true, Text: "nothing is tested: add alert_rule_test or promql_expr_test"})
	}
	return r
}

// maxFile is the maximum size of a test file, in bytes.
const maxFile = 16 << 20

// read reads a test file and the rules that it tests. When it returns no file, the problems give the reason.
func read(name string) (*file, []rulefile.Problem) {
	bad := func(reason string) []rulefile.Problem { return []rulefile.Problem{{File: name, Text: reason}} }
	data, err := inputfile.Read(name, maxFile)
	if err != nil {
		return nil, bad(text.Remedy(errors.Unwrap(err), "").Error())
	}
	f := &file{name: name, order: map[string]int{}}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(f); err != nil && !errors.Is(err, io.EOF) {
		return nil, syntax(name, err)
	}
	f.mark(data)
	if f.EvaluationInterval == 0 {
		f.EvaluationInterval = model.Duration(time.Minute)
	}
	for i, g := range f.GroupEvalOrder {
		if _, twice := f.order[g]; twice {
			return nil, bad(fmt.Sprintf("group_eval_order names the group %q twice", g))
		}
		f.order[g] = i
	}
	var warnings []rulefile.Problem
	for _, pattern := range f.RuleFiles {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(filepath.Dir(name), pattern)
		}
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, bad(fmt.Sprintf("rule_files: %s: %v", pattern, err))
		}
		if len(found) == 0 {
			warnings = append(warnings, rulefile.Problem{File: name, Warning: true, Text: fmt.Sprintf(
				"rule_files: there is no %s (names are relative to this file)", pattern)})
		}
		files, err := rulefile.Read(found, rulefile.DefaultStep)
		var wrong *rulefile.Error
		if errors.As(err, &wrong) {
			return nil, append(warnings, wrong.Problems...)
		}
		f.rules = append(f.rules, files...)
	}
	return f, warnings
}

// mark records the line of each case.
func (f *file) mark(data []byte) {
	var doc struct {
		Tests []struct {
			Alerts []yaml.Node `yaml:"alert_rule_test"`
			Exprs  []yaml.Node `yaml:"promql_expr_test"`
		} `yaml:"tests"`
	}
	if yaml.Unmarshal(data, &doc) != nil {
		return // it was parsed before, so this cannot fail
	}
	for i, t := range doc.Tests {
		for j, n := range t.Alerts {
			f.Tests[i].AlertRuleTests[j].line = n.Line
		}
		for j, n := range t.Exprs {
			f.Tests[i].PromqlExprTests[j].line = n.Line
		}
	}
}

// syntax splits errors of the YAML library into problems.
func syntax(name string, err error) []rulefile.Problem {
	var all []rulefile.Problem
	for text := range strings.SplitSeq(err.Error(), "\n") {
		text = strings.TrimPrefix(strings.TrimSpace(text), "yaml: ")
		if strings.HasSuffix(text, "unmarshal errors:") {
			continue
		}
		p := rulefile.Problem{File: name, Text: strings.ReplaceAll(text, "ruletest.", "")}
		if rest, ok := strings.CutPrefix(p.Text, "line "); ok {
			if number, rest, ok := strings.Cut(rest, ": "); ok {
				if line, err := strconv.Atoi(number); err == nil {
					p.Line, p.Text = line, rest
				}
			}
		}
		all = append(all, p)
	}
	return all
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
