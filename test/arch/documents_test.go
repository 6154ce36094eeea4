// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"os/exec"
	"path/filepath"
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
	git := exec.Command("git", "ls-files", "-z", "--", "*.md")
	git.Dir = root
	out, err := git.Output()
	if err != nil {
		t.Skipf("git ls-files: %v (not a clone)", err)
	}
	var files []string
	for file := range strings.SplitSeq(string(out), "\x00") {
		if file == "" || strings.Contains(file, "/testdata/") || slices.Contains(generatedDocuments, file) {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, file)); err == nil { // not deleted and not yet committed
			files = append(files, file)
		}
	}
	return files
}

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)
