// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

func TestReturnsAreNotProbedWhereThatBreaksPrograms(t *testing.T) {
	for _, tt := range []struct {
		flags, release string
		refused        bool
	}{
		{"fpu shstk user_shstk", "6.8.0-60-generic\n", true},
		{"fpu shstk user_shstk", "6.10.14\n", true},
		{"fpu shstk user_shstk", "6.11.0\n", false},
		{"fpu shstk user_shstk", "7.0.0\n", false},
		{"fpu shstk user_shstk", "strange\n", true},
		{"fpu", "6.1.0-52-amd64\n", false},
	} {
		proc := t.TempDir()
		if err := os.MkdirAll(filepath.Join(proc, "sys/kernel"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"cpuinfo": "processor\t: 0\nflags\t\t: " + tt.flags + "\n", "sys/kernel/osrelease": tt.release} {
			if err := os.WriteFile(filepath.Join(proc, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if reason := refuseReturns(hostfs.At(proc)); (reason != "") != tt.refused {
			t.Errorf("%s on %s: %q", tt.flags, tt.release, reason)
		}
	}
}
