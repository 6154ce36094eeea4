// SPDX-License-Identifier: Apache-2.0

// Package executabletest opens ELF files for tests.
package executabletest

import (
	"os"
	"testing"

	"github.com/teescope/teescope/internal/agent/executable"
)

// Open opens a file until the end of the test, and reads its headers.
func Open(t *testing.T, name string) (*os.File, *executable.Program) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	program, err := executable.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, program
}
