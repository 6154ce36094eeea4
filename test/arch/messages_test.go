// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// tablesOfMessages are tables of documents whose first column has messages that teescope writes: in code spans or emphasised.
var tablesOfMessages = []struct{ document, header string }{
	{"docs/user/troubleshooting.md", "| message | cause and remedy |"},
	{"docs/user/troubleshooting.md", "| reason | what to do |"},
	{"docs/user/probes.md", "| reason | what to do |"},
	{"docs/user/record.md", "| note | meaning |"},
	{"docs/user/kubernetes.md", "| what you see | why | what to do |"},
}

// messagesOfOthers are messages in these tables that teescope passes on.
var messagesOfOthers = []string{
	// Prometheus
	"body size limit exceeded", "sample limit exceeded", "label_limit exceeded", "label_name_length_limit exceeded",
	"label_value_length_limit exceeded", "server returned HTTP status 301", "401 Unauthorized",
	// pflag
	"unknown flag",
	// Go
	"certificate signed by unknown authority", "bad certificate", "context deadline exceeded",
	// the kernel and Kubernetes
	"operation not permitted", "violates PodSecurity",
}

// textOf returns the text of a string expression. What is not known before the program runs is "%s".
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); e.Kind == token.STRING && err == nil {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return textOf(e.X) + textOf(e.Y)
		}
	}
	return "%s"
}

// texts returns the string expressions of the program, one a line.
func texts(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, s := range parse(t) {
		if strings.HasSuffix(s.file, "_test.go") {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			e, is := n.(ast.Expr)
			if !is {
				return true
			}
			text := textOf(e)
			if text == "%s" {
				return true
			}
			all.WriteString(strings.ReplaceAll(text, "\n", " ") + "\n")
			return false
		})
	}
	return all.String()
}

var (
	message = regexp.MustCompile("`([^`]+)`|\\*([^*]+)\\*")
	unknown = regexp.MustCompile(`\bN\b|\b2h0m0s\b`)
)

// TestMessagesInDocumentsAreWritten finds messages in documents that the program does not write. In them N is a number, and
// "..." is any text.
func TestMessagesInDocumentsAreWritten(t *testing.T) {
	all, others := texts(t), exceptionsOf(messagesOfOthers)
	for _, of := range tablesOfMessages {
		found := 0
		for _, table := range strings.Split(read(t, of.document), of.header)[1:] {
			table, _, _ = strings.Cut(table, "\n\n")
			for row := range strings.Lines(table) {
				first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
				for _, m := range message.FindAllStringSubmatch(first, -1) {
					text := m[1] + m[2]
					if strings.HasSuffix(text, "_*") { // metrics that are missing
						continue
					}
					found++
					pattern := unknown.ReplaceAllString(regexp.QuoteMeta(text), `%\w`)
					pattern = strings.ReplaceAll(pattern, regexp.QuoteMeta("..."), `.*`)
					if !others.has(text) && !regexp.MustCompile(pattern).MatchString(all) {
						t.Errorf("%s: teescope writes no message %q", of.document, text)
					}
				}
			}
		}
		if found < 3 {
			t.Errorf("%s: found %d messages below %q", of.document, found, of.header)
		}
	}
	others.unused(t)
}
