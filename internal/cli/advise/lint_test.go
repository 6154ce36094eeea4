// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis"
)

// Manifests of the shape of Gramine's own examples raise no alarm, with EDMM and without.
func TestExamplesRaiseNoAlarm(t *testing.T) {
	names, err := filepath.Glob("testdata/examples/*.manifest.template")
	if err != nil || len(names) < 11 {
		t.Fatalf("%d examples, %v", len(names), err)
	}
	for _, define := range [][]string{nil, {"env.EDMM=0", "log_level=error"}, {"env.EDMM=1", "log_level=error"}} {
		lint, err := LintFiles(names, Files{Define: define}, analysis.Low)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range lint.Problems {
			t.Errorf("with %v: %s:%d: %s", define, p.File, p.Line, p.Message)
		}
	}
}

// Names of files are foreign: they reach no terminal as they are, and make a URI of SARIF.
func TestFileNamesOfProblems(t *testing.T) {
	l := Lint{Problems: []Problem{{File: "a b\x1b[2J#c.manifest", Line: 3, Rule: "few-threads", Severity: analysis.High, Message: "m"}}}
	var text, sarif strings.Builder
	if err := l.Text(&text); err != nil {
		t.Fatal(err)
	}
	if err := l.SARIF(&sarif, "1"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "\x1b") || !strings.HasSuffix(text.String(), ":3: error: m [few-threads]\n") {
		t.Errorf("%q", text.String())
	}
	if want := `"uri": "a%20b%1B%5B2J%23c.manifest"`; !strings.Contains(sarif.String(), want) {
		t.Errorf("no %s in\n%s", want, sarif.String())
	}
	for name, want := range map[string]string{"/x/y.manifest": "file:///x/y.manifest", "./x:y.manifest": "./x:y.manifest"} {
		if got := fileURI(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
