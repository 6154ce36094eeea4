// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnreachableDatabase tests when tools/vulncheck fails: for every finding, and never because the database cannot be
// reached. The checker is a script with the status of govulncheck.
func TestUnreachableDatabase(t *testing.T) {
	reachable := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer reachable.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	asked := 0
	breaks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked > 1 {
			http.Error(w, "down", http.StatusBadGateway)
		}
	}))
	defer breaks.Close()
	for _, tt := range []struct {
		name, database string
		status, want   int
		skipped        bool
	}{
		{"nothing found", reachable.URL, 0, 0, false},
		{"found", reachable.URL, 3, 3, false},
		{"the checker fails", reachable.URL, 1, 1, false},
		{"unreachable", gone.URL, 3, 0, true},
		{"unreachable after the start", breaks.URL, 1, 0, true},
	} {
		checker := filepath.Join(t.TempDir(), "govulncheck")
		if err := os.WriteFile(checker, fmt.Appendf(nil, "#!/bin/sh\nexit %d\n", tt.status), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(root, "tools/vulncheck"), checker, "./...")
		cmd.Env = append(os.Environ(), "GOVULNDB="+tt.database)
		out, err := cmd.CombinedOutput()
		status := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			status = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if status != tt.want || strings.HasPrefix(string(out), "not checked: ") != tt.skipped {
			t.Errorf("%s: status %d, want %d, and output %q", tt.name, status, tt.want, out)
		}
	}
}
