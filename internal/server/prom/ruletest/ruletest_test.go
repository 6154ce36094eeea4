// SPDX-License-Identifier: Apache-2.0

package ruletest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The verdict on every file must be that of the real promtool. The file name contains the verdict.
func TestVerdictsAreThoseOfPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is not installed: run tools/setup.sh")
	}
	for kind, want := range map[string]bool{"good": true, "bad": false} {
		files, err := filepath.Glob("testdata/" + kind + "*.yaml")
		if err != nil || len(files) < 4 {
			t.Fatalf("%v in testdata (%v)", files, err)
		}
		for _, file := range files {
			out, err := exec.Command(promtool, "test", "rules", file).CombinedOutput()
			r := Run(t.Context(), file)
			if r.Failed() == want || (err == nil) != want {
				t.Errorf("%s: passed is %t here (%v), and promtool says %v:\n%s", file, !r.Failed(), r.Problems, err, out)
			}
		}
	}
}

// A failure is reported with its line, the expected and the actual result.
func TestProblems(t *testing.T) {
	for file, want := range map[string]string{
		"bad_value.yaml":       `testdata/bad_value.yaml:21: test "calls": total:rate at 4m: expected {__name__="total:rate", job="a"} 21; got {__name__="total:rate", job="a"} 20`,
		"bad_annotation.yaml":  `testdata/bad_annotation.yaml:15: test "calls": alert High at 5m30s: expected {alertname="High", job="a", severity="warning"} {summary="a at 21", url="http://p/s"}; got {alertname="High", job="a", severity="warning"} {summary="a at 20", url="http://p/s"}`,
		"bad_not_empty.yaml":   `testdata/bad_not_empty.yaml:33: test "calls": requests_total{job="b"} at 6m: expected nothing else; got {__name__="requests_total", job="b"} 300`,
		"bad_order_twice.yaml": `testdata/bad_order_twice.yaml: group_eval_order names the group "first" twice`,
		"bad_key.yaml":         `testdata/bad_key.yaml:12: field alert_rules_test not found in type group`,
		"bad_rules.yaml":       `testdata/broken.rules:5: rule "A" of group "x": could not parse expression:`,
		"bad_eval.yaml":        `testdata/bad_eval.yaml: test "calls": rule "a:b" of group "x" cannot be evaluated at 0s: found duplicate series`,
		"good_empty.yaml":      `testdata/good_empty.yaml: warning: nothing is tested: add alert_rule_test or promql_expr_test`,
		"none.yaml":            `testdata/none.yaml: no such file or directory; correct the path`,
	} {
		r := Run(t.Context(), filepath.Join("testdata", file))
		if len(r.Problems) != 1 || !strings.HasPrefix(r.Problems[0].String(), want) {
			t.Errorf("%s:\n got  %v\n want %s", file, r.Problems, want)
		}
	}
	r := Run(t.Context(), "testdata/good.yaml")
	if len(r.Problems) > 0 || r.Tests != 6 {
		t.Errorf("good.yaml: %d tests, %v", r.Tests, r.Problems)
	}
}

// The library makes all samples of a series before it looks at any, so the process would end.
func TestTooManySamples(t *testing.T) {
	name := filepath.Join(t.TempDir(), "many.yaml")
	for _, values := range []string{"1+1x100000000", "_x99999999999999999999", strings.Repeat("1x999999 ", 3)} {
		text := "rule_files: []\ntests: [{interval: 1m, input_series: [{series: up, values: '" + values + "'}]}]\n"
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := Run(t.Context(), name)
		if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].String(), "of the series up: the input series of a test may have 2000000 samples") {
			t.Errorf("%s: %v", values, r.Problems)
		}
	}
}

// With the option, neighbouring floating-point numbers are equal. Times may start at another time than 1970.
func TestNewerKeys(t *testing.T) {
	r := Run(t.Context(), "testdata/newer.yaml") // Debian's promtool does not know these keys
	if len(r.Problems) > 0 || r.Tests != 2 {
		t.Errorf("%d tests, %v", r.Tests, r.Problems)
	}
}
