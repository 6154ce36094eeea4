// SPDX-License-Identifier: Apache-2.0

// Package hostfstest writes the files of fake machines for tests.
//
// It does not depend on what is in them.
package hostfstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Tree writes files, by their names below a new directory, and returns that directory.
func Tree(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		Write(t, root, name, text)
	}
	return root
}

// Write writes a file below root and its directories. The text "-> TARGET" makes a symbolic link, and replaces one.
func Write(t testing.TB, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	target, link := strings.CutPrefix(text, "-> ")
	if !link {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	_ = os.Remove(path)
	if err := os.Symlink(strings.TrimSpace(target), path); err != nil {
		t.Fatal(err)
	}
}
