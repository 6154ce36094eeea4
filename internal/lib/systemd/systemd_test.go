// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// manager is the receiving end of a service manager.
func manager(t *testing.T) (socket string, next func() string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenPacket("unixgram", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return socket, func() string {
		t.Helper()
		buffer := make([]byte, 4096)
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		n, _, err := conn.ReadFrom(buffer)
		if err != nil {
			t.Fatal(err)
		}
		return string(buffer[:n])
	}
}

func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestMessages(t *testing.T) {
	socket, next := manager(t)
	confined := make(chan struct{})
	var sick atomic.Bool
	n := New(Options{
		Getenv: environment(map[string]string{socketVariable: socket, watchdogVariable: "30000"}), Confined: confined,
		Healthy: func() error {
			if sick.Load() {
				return errors.New("the database hangs")
			}
			return nil
		},
		Log: slog.New(slog.DiscardHandler),
	})
	if err := n.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- n.Run(ctx) }()
	select {
	case err := <-ended:
		t.Fatalf("Run ended before the process was confined: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(confined)
	for _, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		if got := next(); got != want {
			t.Fatalf("the manager got %q, want %q", got, want)
		}
	}
	sick.Store(true)
	got := next()
	for got == "WATCHDOG=1" { // sent before
		got = next()
	}
	for range 3 {
		if got != "STATUS=not healthy: the database hangs" {
			t.Errorf("a process that is not healthy says %q", got)
		}
		got = next()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := n.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWithoutManager(t *testing.T) {
	n := New(Options{Getenv: environment(nil), Healthy: func() error { panic("asked") }})
	if err := n.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := errors.Join(n.Run(ctx), n.Shutdown(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	socket, _ := manager(t)
	for want, values := range map[string]map[string]string{
		socketVariable:          {socketVariable: "/nowhere/notify"},
		`WATCHDOG_USEC="0"`:     {socketVariable: socket, watchdogVariable: "0"},
		`WATCHDOG_USEC="often"`: {socketVariable: socket, watchdogVariable: "often"},
	} {
		if err := New(Options{Getenv: environment(values)}).Init(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want an error about %s", values, err, want)
		}
	}
}
