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
	indented     = regexp.MustCompile(`(?m)^ {4,}(\S.*)$`)
	withRange    = regexp.MustCompile(`\[\d+[smhd](:\w*)?\]`)
	elided       = regexp.MustCompile(`\.\.\.|^curl `)
	metricName   = regexp.MustCompile(`"((?:teescope|sgx|node|container)_\w+)"`)
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

// queriesOf returns the queries of a document: those of PromQL blocks, those of indented lines, and pieces of code with a
// range, as in tables.
func queriesOf(text string) []string {
	var all []string
	for _, block := range promqlBlock.FindAllStringSubmatch(text, -1) {
		all = append(all, queries(block[1])...)
	}
	text = fence.ReplaceAllString(text, "")
	for _, line := range indented.FindAllStringSubmatch(text, -1) {
		all = append(all, queries(line[1])...)
	}
	for _, span := range codeSpan.FindAllString(text, -1) {
		if query := strings.Trim(span, "`"); withRange.MatchString(query) && !elided.MatchString(query) {
			all = append(all, query)
		}
	}
	return all
}

// ofTheProduct matches metrics that an agent or a server of teescope has. Those of the user's probes have names of the user.
var ofTheProduct = regexp.MustCompile(`^(teescope|sgx|node|container)_`)

// TestQueriesOfDocumentsParse finds queries that a reader cannot paste, for example because their lines were wrapped, and those of
// metrics that do not exist.
func TestQueriesOfDocumentsParse(t *testing.T) {
	known, seen := map[string]bool{}, 0
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(read(t, "docs/user/metrics.md"), -1) {
		known[m[1]] = true
	}
	for _, file := range walk(t) { // metrics of the server are not in docs/user/metrics.md
		if strings.HasPrefix(file, "internal/server/") && strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			for _, m := range metricName.FindAllStringSubmatch(read(t, file), -1) {
				known[m[1]] = true
			}
		}
	}
	for _, file := range documents(t) {
		for _, query := range queriesOf(read(t, file)) {
			seen++
			if err := promql.Check(query); err != nil {
				t.Errorf("%s: %s: %v", file, query, err)
				continue
			}
			for _, name := range promql.Metrics(query) {
				base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
				if ofTheProduct.MatchString(name) && !strings.HasPrefix(name, "teescope_user_") && !known[name] && !known[base] {
					t.Errorf("%s: %s: there is no metric %s", file, query, name)
				}
			}
		}
	}
	if seen < 200 {
		t.Errorf("found %d queries: has their format changed?", seen)
	}
}
