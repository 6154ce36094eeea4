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
