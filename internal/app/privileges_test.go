// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/collector/sandbox"
	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/lib/waittest"
	"github.com/teescope/teescope/internal/server/prom"
)

// Dropped privileges cannot be regained. So each test runs in its own process, which gets a directory.
func inChild(t *testing.T, f func(t *testing.T, dir string)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: there is nothing to drop")
	}
	if os.Getenv("APP_CHILD") == t.Name() {
		f(t, os.Getenv("APP_DIR"))
		return
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tsdb"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "APP_CHILD="+t.Name(), "APP_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// confining counts the mechanisms that confine the process.
func confining(t *testing.T, c *sandbox.Collector) (n int) {
	t.Helper()
	err := c.Collect(t.Context(), func(m prometheus.Metric) {
		var pb dto.Metric
		if err := m.Write(&pb); err != nil {
			t.Fatal(err)
		}
		n += int(pb.GetGauge().GetValue())
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAgentRefusesToSeeSomeProcessesOnly(t *testing.T) {
	if privilege.Check("teescope") != nil {
		t.Skip("not root: the capabilities are missing first")
	}
	proc := t.TempDir()
	if err := os.MkdirAll(filepath.Join(proc, "self/ns"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := Options{Binary: "teescope", Config: &config.Config{}}
	if err := mayWatch(o, proc); err != nil {
		t.Errorf("without PID namespaces: %v", err)
	}
	link := filepath.Join(proc, "self/ns/pid")
	if err := os.Symlink("pid:[4026532301]", link); err != nil {
		t.Fatal(err)
	}
	if err := mayWatch(o, proc); err == nil || !strings.Contains(err.Error(), "(pid:[4026532301])") || !strings.Contains(err.Error(), "--pid-namespace any") {
		t.Errorf("in a container: %v", err)
	}
	o.Config.AnyPIDNamespace = true
	if err := mayWatch(o, proc); err != nil {
		t.Errorf("in a container, allowed: %v", err)
	}
}

func TestPrivilegeDropperWaitsForItsTime(t *testing.T) {
	inChild(t, func(t *testing.T, dir string) {
		var log bytes.Buffer
		when := make(chan struct{})
		d := &privilegeDropper{capabilities: nothing, account: serviceUser, role: privilege.Server, when: when, dataDir: dir, sandbox: sandbox.New(), done: make(chan struct{}), log: slog.New(slog.NewTextHandler(&log, nil))}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- d.Run(ctx) }()
		time.Sleep(50 * time.Millisecond)
		if !privilege.Held("CAP_SYS_ADMIN") || confining(t, d.sandbox) != 0 {
			t.Error("dropped before it was time")
		}
		close(when)
		waittest.Until(t, "all mechanisms to confine the process", func() bool { return confining(t, d.sandbox) >= 4 })
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v", err)
		}
		if privilege.Held("CAP_SYS_ADMIN") || !privilege.Held("CAP_DAC_READ_SEARCH") {
			t.Error("the capabilities are not those of a server")
		}
		if got := privilege.Own(); got != serviceUser {
			t.Errorf("the process is %+v, want %+v", got, serviceUser)
		}
		for _, mechanism := range []string{"landlock", "seccomp", "user"} {
			if !strings.Contains(log.String(), `"process confined" mechanism=`+mechanism) {
				t.Errorf("the log does not say that %s confines:\n%s", mechanism, log.String())
			}
		}
	})
}

func TestPrivilegeDropperEndsBeforeItsTime(t *testing.T) {
	inChild(t, func(t *testing.T, _ string) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d := &privilegeDropper{capabilities: nothing, account: serviceUser, when: make(chan struct{}), sandbox: sandbox.New(), log: slog.New(slog.DiscardHandler)}
		if err := d.Run(ctx); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if !privilege.Held("CAP_SYS_ADMIN") {
			t.Error("dropped although the program ends")
		}
	})
}

// Root can write to the directory of another user at first, but not after it has dropped its privileges.
func TestPrivilegeDropperRefusesAForeignDirectory(t *testing.T) {
	inChild(t, func(t *testing.T, dir string) {
		if err := os.Chown(filepath.Join(dir, "tsdb"), 65534, 65534); err != nil {
			t.Fatal(err)
		}
		now := make(chan struct{})
		close(now)
		d := &privilegeDropper{capabilities: nothing, account: serviceUser, role: privilege.Server, when: now, dataDir: dir, sandbox: sandbox.New(), done: make(chan struct{}), log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		err := d.Run(ctx)
		var refused *prom.NotWritableError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "after dropping privileges") {
			t.Errorf("Run() = %v, want a NotWritableError", err)
		}
	})
}

// A process that can open no more files for a moment continues.
func TestPrivilegeDropperWaitsForFiles(t *testing.T) {
	inChild(t, func(t *testing.T, dir string) {
		var was unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
		d := &privilegeDropper{dataDir: dir, log: slog.New(slog.DiscardHandler)}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		err := prom.CheckWritable(dir)
		if !errors.Is(err, unix.EMFILE) {
			t.Fatalf("with a limit of one file: %v", err)
		}
		if text := err.Error(); !strings.Contains(text, "raise the limit of open files") || strings.Contains(text, "may not write") {
			t.Errorf("the error does not say what to do: %v", err)
		}
		done := make(chan error)
		go func() { done <- d.mayWrite(t.Context()) }()
		select {
		case err := <-done:
			t.Fatalf("it gave up: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// serviceUser is the user that the process becomes.
var serviceUser = privilege.Account{UID: 65521, GID: 65521}

func nothing() []string { return nil }
