// SPDX-License-Identifier: Apache-2.0

// Package metrictest holds an exposition to its golden file and to Prometheus' linter. It is for tests only.
package metrictest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Golden compares an exposition with a file, which it writes first when update is set, and lints it.
func Golden(t *testing.T, file string, got []byte, update bool, known ...string) {
	t.Helper()
	if update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the exposition differs from %s (-update writes it again):\n%s", file, got)
	}
	Lint(t, got, known...)
}

// Lint has promtool say what it thinks of an exposition, where it is installed. Complaints that contain
// one of the known texts are about names that another exporter gave.
func Lint(t *testing.T, exposition []byte, known ...string) {
	t.Helper()
	if len(exposition) == 0 {
		return
	}
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Log("promtool is not installed: the exposition is not linted here")
		return
	}
	cmd := exec.Command("promtool", "check", "metrics")
	cmd.Stdin = bytes.NewReader(exposition)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || len(out) == 0) {
		t.Fatalf("running promtool: %v", err)
	}
next:
	for complaint := range strings.Lines(string(out)) {
		for _, k := range known {
			if strings.Contains(complaint, k) {
				continue next
			}
		}
		t.Errorf("promtool: %s", complaint)
	}
}
