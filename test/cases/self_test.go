// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"os"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/estimate"
)

// loud is a rule that finds forks.
func loud(name string, from float64, severity analysis.Severity) engine.Rule {
	return engine.Rule{
		Name: name, Title: "forks", Sources: []string{"this test"},
		Signals: []engine.Signal{{
			Name: "forks", Unit: "1/s", Query: `sum by (workload, instance) (rate(teescope_forks_total[$window]))`,
		}},
		Judge: func(w engine.Workload) *engine.Verdict {
			v, ok := w.Value(engine.Signal{Name: "forks"})
			if !ok || v < from {
				return nil
			}
			return &engine.Verdict{
				Cause: "it forks", Severity: severity, Evidence: []string{"forks"}, Advice: []string{"do not"},
				Gain: estimate.Amdahl("x", 0.1, 0.5, "none"),
			}
		},
	}
}

const forks = `
about: a program that forks
source: made by hand
input_series:
  - series: 'teescope_processes{workload="sh"}'
    values: '1x60'
  - series: 'teescope_forks_total{workload="sh"}'
    values: '0+50x60'
`

// TestTheTestsCanFail: each kind of wrong case produces its own complaint.
func TestTheTestsCanFail(t *testing.T) {
	for name, c := range map[string]struct {
		want  string // appended to the series
		kind  kind
		rules []engine.Rule
		wrong string // a part of the only complaint; empty means none
	}{
		"right":         {"want: {rule: forks, workload: sh, severity: high, cause: forks, gain: {contains: 0.5, at_least: 0.1, at_most: 1}}", positive, []engine.Rule{loud("forks", 5, "")}, ""},
		"missed":        {"want: {rule: forks}", positive, []engine.Rule{loud("forks", 50, "")}, "forks has not been found"},
		"elsewhere":     {"want: {rule: forks, workload: bash}", positive, []engine.Rule{loud("forks", 5, analysis.Info)}, "forks has not been found"},
		"not so bad":    {"want: {rule: forks, severity: low}", positive, []engine.Rule{loud("forks", 5, "")}, "severity high, not low"},
		"other words":   {"want: {rule: forks, cause: exec}", positive, []engine.Rule{loud("forks", 5, "")}, `does not say "exec"`},
		"not contained": {"want: {rule: forks, gain: {contains: 2}}", positive, []engine.Rule{loud("forks", 5, "")}, "does not contain 2"},
		"too little":    {"want: {rule: forks, gain: {at_least: 0.2}}", positive, []engine.Rule{loud("forks", 5, "")}, "begins below 0.2"},
		"too much":      {"want: {rule: forks, gain: {at_most: 0.9}}", positive, []engine.Rule{loud("forks", 5, "")}, "ends above 0.9"},
		"confused":      {"want: {rule: forks}", positive, []engine.Rule{loud("forks", 5, ""), loud("execs", 5, "")}, "execs at \"sh\", which is not there"},
		"both right":    {"want: {rule: forks}\nalso: [execs]", positive, []engine.Rule{loud("forks", 5, ""), loud("execs", 5, "")}, ""},
		"false":         {"want: none", near, []engine.Rule{loud("forks", 5, "")}, "forks at \"sh\", which is not there"},
		"only info":     {"want: none", near, []engine.Rule{loud("forks", 5, analysis.Info)}, ""},
		"not even info": {"want: none\nnot: [forks]", near, []engine.Rule{loud("forks", 5, analysis.Info)}, "which is not there"},
		"quiet":         {"want: none", near, []engine.Rule{loud("forks", 50, "")}, ""},
		"did not look":  {"want: none", near, []engine.Rule{loud("execs", 50, "")}, "forks has not looked"},
		"broken":        {"want: none", negative, []engine.Rule{loud("forks", 5, "grave")}, "there is no severity"},
	} {
		parsed, err := parse([]byte(forks + c.want))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		parsed.rule, parsed.kind = "forks", c.kind
		r, err := parsed.evaluate(c.rules)
		if err != nil {
			t.Fatal(err)
		}
		o := parsed.compare(r)
		if got := strings.Join(o.wrong, "; "); len(o.wrong) > 1 || (got == "") != (c.wrong == "") || !strings.Contains(got, c.wrong) {
			t.Errorf("%s: complains %q, want %q", name, got, c.wrong)
		}
	}
}

func TestCasesThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		forks:                                      "it needs want",
		forks + "want: all":                        `want must be "none" or a finding`,
		forks + "want: {rul: forks}":               `no key "rul"`,
		forks + "want: none\nwindov: 5m":           "windov",
		forks + "want: none\nwindow: five":         `duration "five"`,
		forks + "want: none\nwindow: -5m":          "must be positive",
		forks + "want: none\n---\n" + forks:        "one case in a file",
		"about: a\nwant: none\ninput_series: []":   "about and source",
		"about: a\nsource: b\nwant: none":          "input_series",
		strings.ReplaceAll(forks, "about:", "ab:"): "field ab not found",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nerror %v, want %q in it", text, err, want)
		}
	}
}

func TestTheTable(t *testing.T) {
	tally := make(table)
	a := testCase{rule: "a", kind: positive}
	tally.count(a, outcome{found: true})
	tally.count(a, outcome{found: false, falsely: []string{"b", "b"}}) // one rule instead of another
	tally.count(testCase{rule: "b", kind: near}, outcome{})
	tally.count(testCase{rule: "b", kind: negative}, outcome{falsely: []string{"b"}})
	got := strings.Join(strings.Fields(tally.String()), " ")
	const want = "rule precision recall right missed wrong quiet a 1.00 0.50 1 1 0 0 b 0.00 ~ 0 0 2 1 all 0.33 0.50 1 1 2 1"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAFileHasOneCaseOrSeveral(t *testing.T) {
	text, err := os.ReadFile("data/process-churn.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all, err := cases("process-churn.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[kind]bool)
	for _, c := range all {
		kinds[c.kind] = c.rule == "process-churn"
	}
	if !kinds[positive] || !kinds[near] || !kinds[negative] {
		t.Errorf("%d cases: %v", len(all), kinds)
	}
	if _, err := cases("process-churn.yaml", []byte("--- # neither-kind\nabout: x\n")); err == nil {
		t.Error("a case without a kind must be an error")
	}
}
