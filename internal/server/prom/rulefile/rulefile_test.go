// SPDX-License-Identifier: Apache-2.0

package rulefile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// known lists some existing metrics.
var known = []string{"teescope_syscalls_total", "teescope_threads"}

// said maps every file to its expected problems.
func said() map[string][]string {
	return map[string][]string{
		"good.yaml": nil,
		"warned.yaml": {
			`testdata/warned.yaml:6: warning: rule "Twice": has the same name and labels as the rule on line 4; rename one or change a label`,
			`testdata/warned.yaml:8: warning: rule "Basis": teescope_basis is "guessed", which is not one of measured, documented, proposed`,
			`testdata/warned.yaml:8: warning: rule "Basis": no metric of teescope has the name teescope_sycalls_total; did you mean teescope_syscalls_total?`,
		},
		"bad.yaml": {
			`testdata/bad.yaml:5: rule "Unparsable" of group "one": could not parse expression: 1:17: parse error: unclosed left parenthesis (positions are LINE:COLUMN within the expression)`,
			`testdata/bad.yaml:6: rule 2 of group "one": one of 'record' or 'alert' must be set (give the rule a name: "alert: NAME" to alert, "record: NAME" to store the result)`,
			`testdata/bad.yaml:7: rule "NoExpression" of group "one": field 'expr' must be set in rule (write the PromQL that is evaluated, for example "expr: up == 0")`,
			`testdata/bad.yaml:8: rule "a{b}" of group "one": braces present in the recording rule name; should it be in expr?: a{b}`,
			`testdata/bad.yaml:8: rule "a{b}" of group "one": invalid field 'for' in recording rule`,
			`testdata/bad.yaml:11: rule "Template" of group "one": annotation "summary": template: __alert_Template:1: unclosed action`,
			`testdata/bad.yaml:15: groupname: "one" is repeated in the same file (rename one of them, or move its rules to the other)`,
		},
		"unknown.yaml": {
			`testdata/unknown.yaml:5: unknown key "exprs"; did you mean "expr"?`,
			`testdata/unknown.yaml:6: unknown key "annotatons"; did you mean "annotations"?`,
		},
		"duration.yaml": {`testdata/duration.yaml:6: not a valid duration string: "soon" (use for example 30s, 5m or 1h30m)`},
		"syntax.yaml":   {`testdata/syntax.yaml:3: did not find expected node content`},
		"missing.yaml":  {`testdata/missing.yaml: no such file or directory; correct the path`},
	}
}

// check lists all problems of a file.
func check(t *testing.T, name string) (lines []string, good bool) {
	t.Helper()
	names, err := Find([]string{filepath.Join("testdata", name)})
	if err != nil {
		t.Fatal(err)
	}
	files, err := Read(names, DefaultStep)
	var wrong *Error
	if err != nil && !errors.As(err, &wrong) {
		t.Fatal(err)
	}
	if wrong != nil {
		for _, p := range wrong.Problems {
			lines = append(lines, p.String())
		}
	}
	for _, p := range Lint(files, known) {
		lines = append(lines, p.String())
	}
	return lines, wrong == nil
}

func TestProblems(t *testing.T) {
	for name, want := range said() {
		got, _ := check(t, name)
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s:\n got  %s\n want %s", name, strings.Join(got, "\n      "), strings.Join(want, "\n      "))
		}
	}
}

// The verdict must be that of the real promtool.
func TestVerdictsAreThoseOfPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is not installed: run tools/setup.sh")
	}
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v in testdata (%v)", files, err)
	}
	for _, file := range files {
		out, err := exec.Command(promtool, "check", "rules", file).CombinedOutput()
		if _, good := check(t, filepath.Base(file)); good != (err == nil) {
			t.Errorf("%s: good is %t here; promtool says %v:\n%s", file, good, err, out)
		}
	}
}

// A missing file that is named without a wildcard is an error of Read, so Unmatched does not list it.
func TestUnmatched(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "*.yml")
	if got := Unmatched([]string{filepath.Join(dir, "*.yaml"), none, filepath.Join(dir, "away.yaml")}); len(got) != 1 || got[0] != none {
		t.Errorf("Unmatched() = %q, want %q", got, none)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "b.yaml", "c.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Find([]string{dir + "/*.yaml", dir + "/b.yaml", dir + "/no*", dir + "/away.yaml"})
	want := []string{dir + "/a.yaml", dir + "/away.yaml", dir + "/b.yaml"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Find() = %q, %v; want %q", got, err, want)
	}
	if _, err := Find([]string{"[a"}); err == nil {
		t.Error("an invalid pattern gives no error")
	}
}

func TestReadIsBounded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(name, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read([]string{name}, DefaultStep); err == nil || !strings.Contains(err.Error(), "larger than 4 MiB") {
		t.Errorf("Read() = %v", err)
	}
}
