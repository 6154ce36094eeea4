// SPDX-License-Identifier: Apache-2.0

// Package metrictest makes and reads expositions, compares them with golden files and runs Prometheus' linter. It is for
// tests only.
package metrictest

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/goldentest"
)

// Golden lints an exposition and compares it with a file. When update is set, it writes the file first.
func Golden(t *testing.T, file string, got []byte, update bool, known ...string) {
	t.Helper()
	goldentest.Check(t, file, string(got), update)
	lint(t, got, known...)
}

// lint runs promtool on an exposition, where it is installed. It ignores complaints that contain one of the known
// texts, because another exporter chose those names.
func lint(t *testing.T, exposition []byte, known ...string) {
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
