// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"regexp"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/promql"
)

var (
	promqlBlock  = regexp.MustCompile("(?ms)^```promql\n(.*?)^```")
	promqlRemark = regexp.MustCompile(`(^|\s)#.*`)
)

// queries returns the queries of a PromQL block. A query ends with its line, unless brackets are open or the next line is
// indented or begins with a closing bracket.
func queries(block string) []string {
	var all []string
	open := false
	for line := range strings.Lines(block) {
		line = strings.TrimRight(promqlRemark.ReplaceAllString(strings.TrimRight(line, "\n"), ""), " ")
		if line == "" {
			continue
		}
		if open || strings.HasPrefix(line, " ") || strings.HasPrefix(line, ")") {
			all[len(all)-1] += "\n" + line
		} else {
			all = append(all, line)
		}
		last := all[len(all)-1]
		open = strings.Count(last, "(") > strings.Count(last, ")")
	}
	return all
}

// TestQueriesOfDocumentsParse finds queries that a reader cannot paste, for example because their lines were wrapped.
func TestQueriesOfDocumentsParse(t *testing.T) {
	seen := 0
	for _, file := range documents(t) {
		for _, block := range promqlBlock.FindAllStringSubmatch(read(t, file), -1) {
			for _, query := range queries(block[1]) {
				seen++
				if err := promql.Check(query); err != nil {
					t.Errorf("%s: %s: %v", file, query, err)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("found %d queries: has their format changed?", seen)
	}
}
