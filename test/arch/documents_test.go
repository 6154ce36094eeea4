// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// generatedDocuments are written by programs, from the help texts of metrics and commands.
var generatedDocuments = []string{"docs/user/metrics.md", "docs/user/cli.md"}

// documents lists the Markdown files that git tracks and that people wrote.
func documents(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(walk(t), func(file string) bool {
		return path.Ext(file) != ".md" || strings.Contains(file, "/testdata/") || slices.Contains(generatedDocuments, file)
	})
}

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// TestBrowserTestsAreExplained compares the files of test/browser with the table in docs/dev/testing.md.
func TestBrowserTestsAreExplained(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "docs/dev/testing.md"), "\n## test/browser\n")
	section, _, _ = strings.Cut(section, "\n## ")
	seen := 0
	for _, file := range walk(t) {
		name, found := strings.CutSuffix(strings.TrimPrefix(file, "test/browser/"), ".test.ts")
		if !found || !strings.HasPrefix(file, "test/browser/") {
			continue
		}
		seen++
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("docs/dev/testing.md does not say what %s tests", file)
		}
	}
	if seen < 5 {
		t.Errorf("found %d files of browser tests", seen)
	}
}

// members are sources with types that are written as JSON, and the documents that describe each member.
var members = []struct{ source, document string }{
	{"internal/run/run.go", "docs/user/run-file.md"},
	{"internal/run/record.go", "docs/user/run-file.md"},
	{"internal/agent/threads/threads.go", "docs/user/top.md"},
	{"internal/agent/tee/sgx/boundary/transition/transition.go", "docs/user/top.md"},
	{"internal/agent/tee/sgx/boundary/transition/pairs.go", "docs/user/top.md"},
	{"internal/cli/check/check.go", "docs/user/troubleshooting.md"},
}

// TestMembersOfJSONAreDescribed finds members that programs of users can read and that no document describes.
func TestMembersOfJSONAreDescribed(t *testing.T) {
	tag := regexp.MustCompile("json:\"([a-zA-Z_0-9]+)")
	seen := 0
	for _, of := range members {
		text := read(t, of.document)
		for _, m := range tag.FindAllStringSubmatch(read(t, of.source), -1) {
			seen++
			if !regexp.MustCompile("[`.\"]" + m[1] + "(\\[\\])?[`\"]").MatchString(text) {
				t.Errorf("%s does not describe the member %s of %s", of.document, m[1], of.source)
			}
		}
	}
	if seen < 60 {
		t.Errorf("found %d members: has their format changed?", seen)
	}
}

// TestRuleFilesAreDescribed compares the shipped rule files with the table of docs/user/rules.md.
func TestRuleFilesAreDescribed(t *testing.T) {
	text, seen := read(t, "docs/user/rules.md"), 0
	for _, file := range walk(t) {
		if path.Dir(file) != "rules" || path.Ext(file) != ".yaml" {
			continue
		}
		seen++
		if !strings.Contains(text, "\n| `"+path.Base(file)+"` |") {
			t.Errorf("docs/user/rules.md does not describe %s", file)
		}
	}
	if seen < 5 {
		t.Errorf("found %d rule files", seen)
	}
}

// ofThePage are documents in which words in italics are those of the page.
var ofThePage = []string{
	"docs/user/control.md", "docs/user/fleet.md", "docs/user/getting-started.md", "docs/user/page.md", "docs/user/profile.md", "docs/user/report.md",
}

// madeOfParts are phrases of the page with a number that the sources do not have as one text.
var madeOfParts = []string{"Measure for 10 min"}

// TestWordsOfThePageAreThoseOfDocuments finds names of views, panels and buttons that the page does not have any more.
func TestWordsOfThePageAreThoseOfDocuments(t *testing.T) {
	var page strings.Builder
	for _, file := range walk(t) {
		if strings.HasPrefix(file, "web/src/") && strings.Contains(path.Ext(file), ".ts") && !strings.Contains(file, ".test.") {
			page.WriteString(read(t, file))
		}
	}
	sources, seen, parts := page.String(), 0, exceptionsOf(madeOfParts)
	italics := regexp.MustCompile(`[^*]\*([A-Za-z][^*\n]+)\*[^*]`)
	for _, file := range ofThePage {
		for _, m := range italics.FindAllStringSubmatch(codeSpan.ReplaceAllString(fence.ReplaceAllString(read(t, file), ""), ""), -1) {
			seen++
			if !strings.Contains(sources, m[1]) && !parts.has(m[1]) {
				t.Errorf("%s names *%s*, which the page does not have", file, m[1])
			}
		}
	}
	if seen < 40 {
		t.Errorf("found %d phrases of the page: has their format changed?", seen)
	}
	parts.unused(t)
}
