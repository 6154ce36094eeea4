// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis"
)

// matched is what a problem matcher finds in a line.
type matched struct{ file, line, severity, message, code string }

// match applies a pattern as GitHub and Visual Studio Code do: the numbers are groups.
func match(t *testing.T, p pattern, fixed, line string) (m matched, found bool) {
	t.Helper()
	groups := regexp.MustCompile(p.Expression).FindStringSubmatch(line)
	if groups == nil {
		return m, false
	}
	m = matched{groups[p.File], groups[p.Line], fixed, groups[p.Message], groups[p.Code]}
	if p.Severity > 0 {
		m.severity = groups[p.Severity]
	}
	return m, true
}

// Each line of the text is matched once by the matcher that is written for a program, with the file, the line and the level that
// the program knows.
func TestMatchersMatchTheText(t *testing.T) {
	l := Lint{Problems: []Problem{
		{File: "app.manifest", Line: 3, Rule: "few-threads", Severity: analysis.High, Message: "a (b: 2)", Do: []string{"c [d]", "e"}},
		{File: "dir with space/a:7: error: b.manifest", Line: 12, Rule: "malloc-arenas", Severity: analysis.Low, Message: "m"},
		{File: "/x/app.manifest.template", Line: 1, Rule: "eventfd", Severity: analysis.Info, Message: "n"},
	}}
	want := []matched{
		{"app.manifest", "3", "error", "a (b: 2): c [d]; e", "few-threads"},
		{}, // a name that looks like a line of its own is taken for one
		{"/x/app.manifest.template", "1", "note", "n", "eventfd"},
	}
	var text, github, vscode strings.Builder
	if err := l.Text(&text); err != nil {
		t.Fatal(err)
	}
	if err := WriteMatcher(&github, gitHub); err != nil {
		t.Fatal(err)
	}
	if err := WriteMatcher(&vscode, vsCode); err != nil {
		t.Fatal(err)
	}
	var ours githubFile
	var theirs vscodeMatcher
	if err := json.Unmarshal([]byte(github.String()), &ours); err != nil || len(ours.Matchers) != 2 || ours.Matchers[0].Owner == ours.Matchers[1].Owner {
		t.Fatalf("%v: %s", err, github.String())
	}
	if err := json.Unmarshal([]byte(vscode.String()), &theirs); err != nil || theirs.Location[0] != "autoDetect" {
		t.Fatalf("%v: %s", err, vscode.String())
	}
	for i, line := range strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n") {
		var all []matched
		for _, m := range ours.Matchers {
			if got, found := match(t, m.Pattern[0], m.Severity, line); found {
				all = append(all, got)
			}
		}
		editor, found := match(t, theirs.Pattern, "", line)
		if len(all) != 1 || !found {
			t.Errorf("%q: %+v, %v", line, all, found)
			continue
		}
		if want[i] == (matched{}) {
			continue
		}
		if editor != want[i] {
			t.Errorf("%q: %+v", line, editor)
		}
		if want[i].severity == "note" {
			want[i].severity = "notice"
		}
		if all[0] != want[i] {
			t.Errorf("%q: %+v", line, all[0])
		}
	}
	if _, found := match(t, ours.Matchers[0].Pattern[0], "", "teescope: warning: app.manifest:2: it is skipped"); found {
		t.Error("a warning of teescope is matched")
	}
	if err := WriteMatcher(&text, "bad"); err == nil || !strings.Contains(err.Error(), "github, vscode") {
		t.Error(err)
	}
}
