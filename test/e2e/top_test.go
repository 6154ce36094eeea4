// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A screen is a terminal in which a program runs.
type screen struct{ socket string }

// terminal runs a command in a terminal of its own, of 80 columns and 24 lines.
func terminal(t *testing.T, command string) screen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is missing: run tools/setup.sh")
	}
	s := screen{filepath.Join(t.TempDir(), "tmux")}
	run(t, "tmux", "-S", s.socket, "-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", command)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", s.text(t))
		}
		_ = exec.Command("tmux", "-S", s.socket, "kill-server").Run() // it ends with its last program
	})
	return s
}

func (s screen) keys(t *testing.T, keys ...string) {
	t.Helper()
	run(t, "tmux", append([]string{"-S", s.socket, "send-keys"}, keys...)...)
}

func (s screen) text(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("tmux", "-S", s.socket, "capture-pane", "-p").CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return string(out)
}

// shows waits until all of these texts are on the screen.
func (s screen) shows(t *testing.T, parts ...string) {
	t.Helper()
	eventually(t, testLimit, "the screen", func() error {
		text := s.text(t)
		for _, p := range parts {
			if !strings.Contains(text, p) {
				return fmt.Errorf("no %q on it", p)
			}
		}
		return nil
	})
}

// load keeps Redis busy until the test ends.
func load(t *testing.T, name string) {
	t.Helper()
	p := redis(t, copyTo(t, "/usr/bin/redis-server", name))
	benchmark := copyTo(t, "/usr/bin/redis-benchmark", name+"b")
	background(t, "sh", "-c", "exec "+benchmark+" -p "+p+" -t set,get -n 1000000000 -q >/dev/null")
}

// The live view in a real terminal on a real agent sorts, filters, shows details and quits.
func TestTopInATerminal(t *testing.T) {
	load(t, "e2etop")
	a := agent(t)
	s := terminal(t, binary+" top --connect "+a.addr+" --interval 500ms; echo ended with $?; sleep 60")
	s.shows(t, "teescope top  "+a.addr, "by calls ↓", "WORKLOAD", "e2etop ")
	s.keys(t, "m")
	s.shows(t, "by memory ↓")
	s.keys(t, "/", "e2etop", "Enter")
	s.shows(t, "/e2etop: 2 of")
	s.keys(t, "n", "Enter")
	s.shows(t, "SYSTEM CALL", "epoll_wait", "PAGE FAULTS", "esc back")
	s.keys(t, "?")
	s.shows(t, "any key goes back")
	s.keys(t, "x", "Space")
	s.shows(t, "PAUSED at")
	run(t, "tmux", "-S", s.socket, "resize-window", "-x", "140", "-y", "40")
	s.keys(t, "Space", "Escape")
	s.shows(t, "VOLUNTARY/s")
	a.stop(t)
	s.shows(t, "NO ANSWER for", "nothing listens there")
	s.keys(t, "q")
	s.shows(t, "ended with 0")
}

// The table for scripts has the numbers of the exposition.
func TestTopOnce(t *testing.T) {
	load(t, "e2eonce")
	a := agent(t)
	before := a.scrape(t)
	var table struct {
		Seconds   float64
		Workloads []struct {
			Workload  string
			PerSecond map[string]float64 `json:"per_second"`
			Syscalls  map[string]float64 `json:"syscalls_per_second"`
		}
	}
	out := run(t, binary, "top", "--connect", a.addr, "--once", "--json", "--filter", "e2eonce", "--sort", "name")
	if err := json.Unmarshal([]byte(out), &table); err != nil || len(table.Workloads) != 2 {
		t.Fatalf("%v:\n%s", err, out)
	}
	after := a.scrape(t)
	w := table.Workloads[0]
	reads := after.sum("teescope_syscalls_total", "workload", "e2eonce", "syscall", "read") -
		before.sum("teescope_syscalls_total", "workload", "e2eonce", "syscall", "read")
	// The interval of the table lies within that of these two scrapes.
	wantBetween(t, "reads in the table", w.Syscalls["read"]*table.Seconds, 1, reads)
	if w.Workload != "e2eonce" || w.PerSecond["calls"] < w.Syscalls["read"] {
		t.Errorf("the workload is %+v", w)
	}
	if text := run(t, binary, "top", "--connect", a.addr, "--once"); !strings.HasPrefix(text, "WORKLOAD") || strings.Contains(text, "\x1b") {
		t.Errorf("the table is:\n%s", text)
	}
}
