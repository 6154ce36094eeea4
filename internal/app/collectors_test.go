// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/agent/collector/container"
)

// An agent in a container that may not read the machine's files says so. It takes no file of its container for one of the machine.
func TestHiddenMachine(t *testing.T) {
	proc := t.TempDir()
	for dir, root := range map[string]string{"1": "254:1 /", "self": "0:57 /"} {
		if err := os.Mkdir(filepath.Join(proc, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, dir, "mountinfo"), []byte("28 1 "+root+" / rw - ext4 disk rw\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/nonexistent", filepath.Join(proc, "1", "root")); err != nil { // stands for the refusal
		t.Fatal(err)
	}
	m := newMachine(proc)
	var log bytes.Buffer
	m.warn(slog.New(slog.NewTextHandler(&log, nil)))
	for _, want := range []string{"level=WARN", "names of pods", "/proc/1/root", "CAP_SYS_PTRACE"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, log.String())
		}
	}
	for _, path := range []string{m.root, m.roots.Dev, m.cgroup, m.at("var/log/pods")} {
		if !strings.HasPrefix(path, filepath.Join(proc, "1", "root")) {
			t.Errorf("%s is a file of the container", path)
		}
	}
	if m.roots.Sys != "/sys" || m.net != filepath.Join(proc, "1") {
		t.Errorf("sys %q, net %q", m.roots.Sys, m.net)
	}
	// teescope_collector_success is 0 for the collector of containers.
	if err := container.New(container.Options{Proc: proc, Sys: m.roots.Sys, Cgroup: m.cgroup}).Collect(t.Context(), nil); err == nil {
		t.Error("the collector of containers does not fail")
	}
	log.Reset()
	newMachine("/proc").warn(slog.New(slog.NewTextHandler(&log, nil)))
	if log.Len() != 0 {
		t.Errorf("outside a container: %s", log.String())
	}
}
