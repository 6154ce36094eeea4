// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"fmt"
	"io"
	"strings"

	"github.com/teescope/teescope/internal/lib/jsonapi"
)

// Programs that read problem matchers.
const (
	gitHub = "github"
	vsCode = "vscode"
)

// Matchers lists the names that [WriteMatcher] knows.
func Matchers() []string { return []string{gitHub, vsCode} }

// lineOf matches a line of [Lint.Text] of these levels. Its groups are file, line, level, message and rule. It is written in
// the part of the syntax that Go, .NET and JavaScript share.
func lineOf(levels ...string) string {
	return `^(.+?):(\d+): (` + strings.Join(levels, "|") + `): (.*) \[([a-z]+(?:-[a-z]+)*)\]$`
}

// The parts of a problem matcher. The numbers are groups of the expression.
type (
	pattern struct {
		Expression string `json:"regexp"`
		File       int    `json:"file"`
		Line       int    `json:"line"`
		Severity   int    `json:"severity,omitempty"` // 0: that of the matcher
		Message    int    `json:"message"`
		Code       int    `json:"code"`
	}
	// githubMatcher is one of GitHub Actions: actions/toolkit, docs/problem-matchers.md.
	githubMatcher struct {
		Owner    string    `json:"owner"`
		Severity string    `json:"severity,omitempty"`
		Pattern  []pattern `json:"pattern"`
	}
	githubFile struct {
		Matchers []githubMatcher `json:"problemMatcher"`
	}
	// vscodeMatcher is one of tasks.json of Visual Studio Code: code.visualstudio.com/docs/debugtest/tasks.
	vscodeMatcher struct {
		Owner    string   `json:"owner"`
		Source   string   `json:"source"`
		Location []string `json:"fileLocation"`
		Pattern  pattern  `json:"pattern"`
	}
)

// WriteMatcher writes the problem matcher for the lines of [Lint.Text], as the named program reads it. GitHub has no level
// "note", so notes have a matcher of their own, with the level "notice".
func WriteMatcher(w io.Writer, program string) error {
	const owner = "teescope-lint"
	all := pattern{Expression: lineOf("error", "warning"), File: 1, Line: 2, Severity: 3, Message: 4, Code: 5}
	switch program {
	case gitHub:
		notes := all
		notes.Expression, notes.Severity = lineOf("note"), 0
		return jsonapi.Print(w, githubFile{[]githubMatcher{{Owner: owner, Pattern: []pattern{all}}, {Owner: owner + "-notes", Severity: "notice", Pattern: []pattern{notes}}}})
	case vsCode:
		all.Expression = lineOf("error", "warning", "note")
		return jsonapi.Print(w, vscodeMatcher{owner, "teescope lint", []string{"autoDetect", "${workspaceFolder}"}, all})
	}
	return fmt.Errorf("there is no problem matcher for %q: use one of %s", program, strings.Join(Matchers(), ", "))
}
