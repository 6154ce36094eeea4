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
	"time"
)

// liveAdvice is a part of what "teescope advise --live --json" writes.
type liveAdvice struct {
	Advice []struct {
		Rule, Severity, Analyze string
		Seen                    []struct {
			What, Source string
			Value        float64
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

// advises requires that the advice about a workload of a server has a rule that rests on a finding of another one. The advice names the
// server as its source, and the figures are those of the finding.
func (s *teescope) advises(t *testing.T, window time.Duration, workload, rule, finding string) {
	t.Helper()
	manifest := filepath.Join(t.TempDir(), workload+".manifest")
	if err := os.WriteFile(manifest, []byte("libos.entrypoint = \"/"+workload+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := "http://" + s.addr
	eventually(t, testLimit, rule+" about "+workload, func() error { // the finding may just be absent in this window
		cmd := exec.Command(binary, "advise", "--manifest", manifest, "--server", server, "--workload", workload, "--window", window.String(), "--json")
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%v: %w", cmd, err)
		}
		var got liveAdvice
		if err := json.Unmarshal(out, &got); err != nil {
			return fmt.Errorf("%v: %w", cmd, err)
		}
		for _, a := range got.Advice {
			if a.Rule == rule && a.Analyze == finding && len(a.Seen) > 0 && a.Seen[0].Source == server+", "+finding && a.Seen[0].Value > 0 {
				return nil
			}
		}
		return fmt.Errorf("the advice is %+v", got.Advice)
	})
}

// The message of an unknown workload, and that of a server which does not run, say what to do.
func TestAdviseWithoutAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, "up", "--data-dir", filepath.Join(t.TempDir(), "data"), "--interval", "1s")
	for _, tt := range []struct{ server, want string }{
		{"http://" + s.addr, "http://" + s.addr + " has no series of the workload \"absent\": teescope top lists the names"},
		{"http://127.0.0.1:1", "nothing listens on 127.0.0.1:1: start one there with \"sudo teescope up\", or name another with --server URL"},
	} {
		if said := refused(t, 0, "advise", "--server", tt.server, "--workload", "absent"); !strings.Contains(said, tt.want) {
			t.Errorf("%q, want %q", said, tt.want)
		}
	}
}
