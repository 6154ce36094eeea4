// SPDX-License-Identifier: Apache-2.0

// Package goldentest compares texts with golden files, which hold the expected output of a test.
//
// It does not define the flag that updates them.
package goldentest

import (
	"os"
	"path/filepath"
	"testing"
)

// Check compares text with a file. With update it writes the file first.
func Check(t *testing.T, file, got string, update bool) {
	t.Helper()
	if update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the text differs from %s (-update writes it again):\n%s", file, got)
	}
}
