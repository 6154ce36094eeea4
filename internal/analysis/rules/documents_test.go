// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// superseders returns, for each rule, the rules that replace its findings, as the sources of this package say.
func superseders(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	sources, names := map[string]string{}, map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^const (\w+) = "([a-z-]+)"$`).FindAllStringSubmatch(string(text), -1) {
			names[m[1]], sources[m[2]] = m[2], string(text)
		}
	}
	by := map[string][]string{}
	for rule, text := range sources {
		for _, m := range regexp.MustCompile(`Supersedes(?::| =) +\[\]string\{([^}]*)\}|append\(\w+\.Supersedes, ([^)]*)\)`).FindAllStringSubmatch(text, -1) {
			for of := range strings.SplitSeq(m[1]+m[2], ", ") {
				if name, known := names[of]; !known {
					t.Errorf("%s replaces %s, which is not the constant of a rule", rule, of)
				} else if !slices.Contains(by[name], rule) {
					by[name] = append(by[name], rule)
				}
			}
		}
	}
	for _, list := range by {
		slices.Sort(list)
	}
	return by
}

// TestDocumentsNameTheRulesThatReplaceOthers compares the table in docs/decisions/diagnosis.md and the sentences in runbooks with the
// rules.
func TestDocumentsNameTheRulesThatReplaceOthers(t *testing.T) {
	want := superseders(t)
	if len(want) < 5 {
		t.Fatalf("found %v: has the form of Supersedes changed?", want)
	}
	rule := regexp.MustCompile(`\b(?:exitless|[a-z]+(?:-[a-z]+)+)\b`)
	said := map[string][]string{}
	text, err := os.ReadFile(top + "docs/decisions/diagnosis.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| reported | instead of |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		for _, of := range rule.FindAllString(cells[2], -1) {
			said[of] = append(said[of], rule.FindAllString(cells[1], -1)...)
			slices.Sort(said[of])
			said[of] = slices.Compact(said[of])
		}
	}
	for of, by := range want {
		if !slices.Equal(said[of], by) {
			t.Errorf("docs/decisions/diagnosis.md says that %v replace %s; these do: %v", said[of], of, by)
		}
	}
	for of := range said {
		if want[of] == nil {
			t.Errorf("docs/decisions/diagnosis.md says that %v replace %s; no rule does", said[of], of)
		}
	}
	sentence := regexp.MustCompile(`(?s)A more specific finding replaces this one: (.*?)\.\n\n`)
	runbooks, err := filepath.Glob(top + "docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range runbooks {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := sentence.FindSubmatch(text)
		if m == nil {
			continue
		}
		seen++
		var named []string
		for by := range strings.SplitSeq(regexp.MustCompile(`\]\([^)]*\)|[\s\[]`).ReplaceAllString(string(m[1]), ""), ",") {
			named = append(named, by)
		}
		slices.Sort(named)
		if of := strings.TrimSuffix(filepath.Base(file), ".md"); !slices.Equal(named, want[of]) {
			t.Errorf("%s names %v; these replace the finding: %v", file, named, want[of])
		}
	}
	if seen < 2 {
		t.Errorf("%d runbooks name other findings: has the sentence changed?", seen)
	}
}
