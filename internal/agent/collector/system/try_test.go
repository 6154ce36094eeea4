// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/agent/probe"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
)

// Try reports what Init does, and nothing stays loaded.
func TestTrySaysHowTheProbesAttach(t *testing.T) {
	privilegetest.Alone(t)
	o := Options{
		MaxWorkloads: 8, SyscallTime: true, Proc: "/proc", Cgroup: "/sys/fs/cgroup",
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	before := bpfFiles(t)
	trials, err := Try(o)
	if err != nil {
		t.Fatal(err)
	}
	if after := bpfFiles(t); after != before {
		t.Errorf("%d BPF files are open, %d were before", after, before)
	}
	tried := map[string]probe.Trial{}
	for _, trial := range trials {
		tried[trial.Probe] = trial
		if len(trial.Ways) == 0 {
			t.Errorf("%s has no mechanism", trial.Probe)
		}
		if trial.Required && !trial.Attached() {
			t.Errorf("%s is required but does not attach: %s", trial.Probe, trial.Reason)
		}
		if !trial.Attached() && trial.Reason == "" {
			t.Errorf("%s is not attached and has no reason", trial.Probe)
		}
	}
	if !tried["tasks"].Attached() {
		t.Error("the pass over the tasks did not run")
	}
	c := New(o)
	if err := c.Init(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	for _, s := range c.kernel.status {
		if got := tried[s.Probe].Status; got != s {
			t.Errorf("tried %+v, attached %+v", got, s)
		}
	}
}

// bpfFiles counts the BPF programs, maps and links that this process holds.
func bpfFiles(t *testing.T) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && (strings.Contains(target, "bpf") || strings.Contains(target, "perf")) {
			n++
		}
	}
	return n
}
