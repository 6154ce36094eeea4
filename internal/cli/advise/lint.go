// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/rules"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/text"
)

// Problem is one place in a manifest that a rule objects to.
type Problem struct {
	File     string            `json:"file"`
	Line     int               `json:"line"` // 1 if the rule objects to something that the file does not have
	Rule     string            `json:"rule"`
	Severity analysis.Severity `json:"severity"`
	Message  string            `json:"message"`
	Do       []string          `json:"do"`
	Diff     string            `json:"diff,omitempty"` // of the manifest
}

// Lint is the result of checking manifests.
type Lint struct {
	Problems []Problem `json:"problems"` // by file as named, then by line
	Warnings []string  `json:"warnings"` // what was skipped
}

// LintFiles checks manifests by the rules that need nothing else, and facts about a machine if there are some. It omits
// problems below a severity. A file that cannot be read is an error, and the others are still checked.
func LintFiles(names []string, files Files, least analysis.Severity) (*Lint, error) {
	var unread []error
	l := &Lint{Problems: []Problem{}, Warnings: []string{}}
	for _, name := range names {
		if files.Manifest = name; name == "" {
			unread = append(unread, errors.New("a file name is empty"))
			continue
		}
		facts, warnings, err := Load(files)
		if err != nil {
			unread = append(unread, err)
			continue
		}
		l.Warnings = append(l.Warnings, warnings...)
		first := len(l.Problems)
		for _, a := range advise.Evaluate(facts, rules.All()).Advice {
			for _, p := range problems(name, a) {
				if p.Severity.AtLeast(least) {
					l.Problems = append(l.Problems, p)
				}
			}
		}
		slices.SortStableFunc(l.Problems[first:], func(a, b Problem) int { return a.Line - b.Line })
	}
	return l, errors.Join(unread...)
}

// problems returns one problem for each line, where advice lists several things of one kind, and otherwise one.
func problems(file string, a advise.Advice) []Problem {
	p := Problem{
		File: file, Line: 1, Rule: a.Rule, Severity: a.Severity, Do: append([]string{}, a.Do...), Diff: a.Diff,
	}
	tell := func(s advise.Seen) string { return s.What + ": " + shownValue(s) }
	if a.Each {
		all := make([]Problem, 0, len(a.Seen))
		for _, s := range a.Seen {
			each := p
			each.Line, each.Message, each.Severity, each.Do = max(s.Line, 1), a.Title+" ("+tell(s)+")", s.Severity, []string{s.Do}
			all = append(all, each)
		}
		return all
	}
	var seen []string
	for _, s := range a.Seen {
		seen = append(seen, tell(s))
		if p.Line == 1 && s.Line > 0 {
			p.Line = s.Line
		}
	}
	p.Message = a.Title + " (" + strings.Join(seen, ", ") + ")"
	return []Problem{p}
}

// AtLeast counts the problems of a severity or a higher one.
func (l *Lint) AtLeast(s analysis.Severity) int {
	return analysis.CountAtLeast(l.Problems, func(p Problem) analysis.Severity { return p.Severity }, s)
}

// Text writes a line for each problem, FILE:LINE: LEVEL: MESSAGE [RULE], which editors know from compilers.
func (l *Lint) Text(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, p := range l.Problems {
		message := p.Message
		if len(p.Do) > 0 {
			message += ": " + strings.Join(p.Do, "; ")
		}
		fmt.Fprintf(out, "%s:%d: %s: %s [%s]\n", text.Terminal(p.File), p.Line, level(p.Severity), clean(message), p.Rule)
	}
	return out.Flush()
}

// JSON writes the problems as JSON.
func (l *Lint) JSON(w io.Writer) error { return jsonapi.Print(w, l) }

// level is the word for a severity in SARIF and in messages of compilers.
func level(s analysis.Severity) string {
	switch s {
	case analysis.High:
		return "error"
	case analysis.Medium, analysis.Low:
		return "warning"
	default:
		return "note"
	}
}

// The parts of SARIF 2.1.0 (OASIS, sections 3.13 to 3.49) that a linter needs.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string    `json:"id"`
		Short sarifText `json:"shortDescription"`
		Help  sarifText `json:"help"`
	}
	sarifResult struct {
		Rule      string          `json:"ruleId"`
		Index     int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		Line int `json:"startLine"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
)

// SARIF writes the problems in the format for code scanning.
func (l *Lint) SARIF(w io.Writer, version string) error {
	driver := sarifDriver{Name: "teescope lint", Version: version}
	index := make(map[string]int)
	for i, r := range rules.All() {
		index[r.ID] = i
		driver.Rules = append(driver.Rules, sarifRule{r.ID, sarifText{r.Title}, sarifText{
			fmt.Sprintf("Looks at: %s. Threshold: %s (%s). Advice: %s.", r.Signal, r.Threshold, r.Source, r.Advice),
		}})
	}
	results := make([]sarifResult, 0, len(l.Problems))
	for _, p := range l.Problems {
		message := p.Message
		if len(p.Do) > 0 {
			message += ": " + strings.Join(p.Do, "; ")
		}
		results = append(results, sarifResult{
			Rule: p.Rule, Index: index[p.Rule], Level: level(p.Severity), Message: sarifText{clean(message)},
			Locations: []sarifLocation{{sarifPhysical{sarifArtifact{fileURI(p.File)}, sarifRegion{p.Line}}}},
		})
	}
	return jsonapi.Print(w, sarifLog{
		Schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{{sarifTool{driver}, results}},
	})
}

// fileURI is the name of a file as a URI: relative if the name is, as code scanning expects it of files of a repository.
func fileURI(name string) string {
	u := url.URL{Path: filepath.ToSlash(filepath.Clean(name))}
	if filepath.IsAbs(name) {
		u.Scheme = "file"
	}
	return u.String()
}
