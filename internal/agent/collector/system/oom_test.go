// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// memoryGroup creates a group with a limit of 32 MiB in either version of the hierarchy.
func memoryGroup(t *testing.T) (dir, counts string) {
	t.Helper()
	for _, h := range []struct{ parent, limit, counts string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"},
		{"/sys/fs/cgroup", "memory.max", "memory.events"},
	} {
		dir := filepath.Join(h.parent, unique("oom"))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		if os.WriteFile(filepath.Join(dir, h.limit), []byte("33554432"), 0o644) == nil {
			return dir, filepath.Join(dir, h.counts)
		}
	}
	t.Skip("not checked: no memory controller can be used here")
	return "", ""
}

// The kernel kills a process at the limit of its group, and the group is removed at once. So a reader of the group's files
// sees neither. The group's own count, read just before, is the true value.
func TestOOMKillOfAnEndedGroup(t *testing.T) {
	c := start(t, Options{})
	name := unique("hungry")
	path := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("cp", "/usr/bin/tail", path).CombinedOutput(); err != nil {
		t.Fatalf("copying tail: %v, %s", err, out)
	}
	for n := 1; n <= 2; n++ {
		dir, counts := memoryGroup(t)
		cmd := exec.Command("sh", "-c", `read line; exec "$0" /dev/zero`, path) // it keeps an endless line in memory
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, cmd.Process.Pid), 0o644); err != nil {
			_ = cmd.Process.Kill()
			t.Fatal(err)
		}
		fmt.Fprintln(in)
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Fatalf("the program ended with %v, want it to be killed", err)
		}
		text, err := os.ReadFile(counts)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^oom_kill 1$`).Match(text) {
			t.Fatalf("the group counted %s, want one kill", text)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		samples := scrape(t, c)
		if got := sum(samples, "teescope_oom_kills_total", "workload", name); got != float64(n) {
			t.Errorf("%v kills of %s, want %d", got, name, n)
		}
	}
}
