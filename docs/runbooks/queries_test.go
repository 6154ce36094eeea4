// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/promql"
)

var (
	queryBlock   = regexp.MustCompile("(?s)\n```promql\n(.*?)\n```")
	queryComment = regexp.MustCompile(`(^|\s)#[^"]*$`)
)

// queries splits a block into the longest runs of lines that are queries. A line that is in none is left.
func queries(block string) (all, left []string) {
	var lines []string
	for line := range strings.SplitSeq(block, "\n") {
		if line = queryComment.ReplaceAllString(line, ""); strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
next:
	for len(lines) > 0 {
		for n := len(lines); n > 0; n-- {
			if expr := strings.Join(lines[:n], "\n"); promql.Check(expr) == nil {
				all, lines = append(all, expr), lines[n:]
				continue next
			}
		}
		left, lines = append(left, lines[0]), lines[1:]
	}
	return all, left
}

func TestQueriesAreSplit(t *testing.T) {
	all, left := queries("up   # a comment\nsum by (a) (b{c=\"#1\"})\n  / on (a) d\nx y\n# words")
	if len(all) != 2 || len(left) != 1 || left[0] != "x y" {
		t.Errorf("%q, %q", all, left)
	}
}

// TestQueriesOfDocumentsAreValid parses the examples of PromQL in all documents.
func TestQueriesOfDocumentsAreValid(t *testing.T) {
	list, err := exec.Command("git", "-c", "safe.directory=*", "-C", "../..", "ls-files", "*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for file := range strings.FieldsSeq(string(list)) {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range queryBlock.FindAllStringSubmatch(string(text), -1) {
			all, left := queries(block[1])
			seen += len(all)
			for _, line := range left {
				t.Errorf("%s: not PromQL: %s", file, line)
			}
		}
	}
	if seen < 50 {
		t.Errorf("found %d queries", seen)
	}
}
