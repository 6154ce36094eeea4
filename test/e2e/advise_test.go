// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// liveAdvice is a part of what "teescope advise --live --json" writes.
type liveAdvice struct {
	Advice []struct {
		Rule, Severity string
		Seen           []struct {
			What  string
			Value float64
		}
		Diff string
	}
	Live struct {
		Runtime, Workload string
		Processes         []struct{ PID, Threads, Files int }
		CPUs              int
	}
	Warnings []string
}

// of returns the first figure of the advice of a rule.
func (l liveAdvice) of(rule string) (float64, bool) {
	for _, a := range l.Advice {
		if a.Rule == rule {
			return a.Seen[0].Value, true
		}
	}
	return 0, false
}

// The advisor finds running programs of Gramine, reads the manifest that each uses, and compares it with the threads and open
// files that /proc has. The program runs as "threads", which starts as many threads as the number before its first argument says.
func TestAdviseLive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := prog(t, "threads", "e2eadvise")
	for name, content := range map[string]string{
		"full.manifest.sgx": "sgx.max_threads = 9\nsys.fds.limit = 3\n", "free.manifest.sgx": "sgx.max_threads = 12\n", "direct.manifest": "sgx.max_threads = 9\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		pal, runtime string
		full         bool
	}{
		"full": {"8/sgx/libpal.so", "gramine-sgx", true}, "free": {"8/sgx/libpal.so", "gramine-sgx", false}, "direct": {"8/direct/libpal.so", "gramine-direct", true},
	} {
		p := held(t, program, tt.pal, "init", filepath.Join(dir, name))
		eventually(t, testLimit, "the threads", func() error {
			if got := strings.TrimSpace(p.log.String()); got != "9" {
				return fmt.Errorf("it said %q", got)
			}
			return nil
		})
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(binary, "advise", "--pid", strconv.Itoa(p.cmd.Process.Pid), "--server", "http://127.0.0.1:1", "--json").Output()
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Fatalf("%s: %s", name, failed.Stderr)
		}
		var got liveAdvice
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		if len(got.Live.Processes) != 1 || got.Live.Runtime != tt.runtime || got.Live.Processes[0].Threads != 9 || got.Live.Processes[0].Files != len(files) || got.Live.CPUs == 0 || got.Live.Workload == "" {
			t.Errorf("%s with %d files: %+v", name, len(files), got.Live)
		}
		if n, found := got.of("thread-slots"); found != tt.full || found && n != 9 {
			t.Errorf("%s: thread-slots is %v with %v threads", name, found, n)
		}
		if n, found := got.of("open-files"); found != (name == "full") || found && n != float64(len(files)) {
			t.Errorf("%s: open-files is %v with %v files", name, found, n)
		}
		if all := strings.Join(got.Warnings, "\n"); !strings.Contains(all, "nothing measured is judged") {
			t.Errorf("%s: without a server, the warnings are %q", name, all)
		}
	}
}
