// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// upAt waits until the last stored value of a target's up is the given one.
func upAt(t *testing.T, s *teescope, want float64) {
	t.Helper()
	eventually(t, testLimit, fmt.Sprintf("the agent's up to be %v", want), func() error {
		got, err := single(s, `up{job="teescope"}`)
		if err == nil && got != want {
			err = fmt.Errorf("it is %v", got)
		}
		return err
	})
}

// single runs a query with one result.
func single(s *teescope, expr string) (float64, error) {
	all, err := query("http://"+s.addr, expr, time.Now())
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%s has %d results", expr, len(all))
	}
	for _, v := range all {
		return v, err
	}
	return 0, err
}

// signalled sends a signal to a process of teescope.
func signalled(t *testing.T, pid int, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
}

// replaced waits until another process has the role of one that was killed. The other roles keep their processes.
func replaced(t *testing.T, s *teescope, role string, before map[string]int) map[string]int {
	t.Helper()
	var now map[string]int
	eventually(t, testLimit, "another "+role, func() error {
		var err error
		if now, err = s.running(t); err == nil && now[role] == before[role] {
			err = fmt.Errorf("process %d still runs", now[role])
		}
		return err
	})
	for other, pid := range before {
		if other != role && now[other] != pid {
			t.Errorf("when the %s was killed, process %d of the %s was replaced by %d", role, pid, other, now[other])
		}
	}
	return now
}

// A part of up that is killed is started again, as often as it takes, and the other part continues. While the agent stands
// still its machine is marked as down.
func TestAttackOnOnePartOfUp(t *testing.T) {
	t.Parallel()
	s := confined(t, "up", "--data-dir", t.TempDir(), "--interval", "500ms")
	all := s.processes(t)
	for range 2 {
		signalled(t, all["server"], syscall.SIGKILL)
		all = replaced(t, s, "server", all)
		upAt(t, s, 1)
		signalled(t, all["agent"], syscall.SIGSTOP)
		upAt(t, s, 0)
		signalled(t, all["agent"], syscall.SIGKILL)
		all = replaced(t, s, "agent", all)
		upAt(t, s, 1)
	}
	// Samples from before the first end are still there.
	if n, err := single(s, `count_over_time(up{job="teescope"}[5m])`); err != nil || n < 8 {
		t.Errorf("%v samples are stored (%v)", n, err)
	}
	eventually(t, testLimit, "the new parts to be confined", func() error { return allConfined(s.scrape(t)) })
	for _, role := range []string{"agent", "server"} {
		want := map[string]string{"agent": watchers, "server": servers}[role]
		for _, status := range threads(t, all[role]) {
			if err := confinedAs(status, want); err != nil {
				t.Errorf("the new %s: %v", role, err)
			}
		}
	}
}

// A server that is killed is started again behind the same unix socket, in a directory where only root may make one. At
// the end the socket stays, because up is not root any more, and the next start replaces it.
func TestAttackOnTheServerOfASocket(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "t.sock")
	answers := func() error {
		status, body, err := fresh("unix", path, "/metrics", "any.name", "", "")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", status, body)
		}
		return err
	}
	args := []string{"up", "--listen", "unix:" + path, "--data-dir", t.TempDir()}
	for range 2 {
		s := &teescope{process: background(t, binary, args...)}
		s.name = "teescope up"
		eventually(t, startWithin, "the server to answer", answers)
		// Before that up is still root, and could replace the socket.
		eventually(t, testLimit, "the supervisor to be confined", func() error {
			for _, status := range threads(t, s.cmd.Process.Pid) {
				if !strings.Contains(status, "Uid:\t65521\t") {
					return errors.New(status)
				}
			}
			return nil
		})
		all := s.processes(t)
		signalled(t, all["server"], syscall.SIGKILL)
		replaced(t, s, "server", all)
		eventually(t, testLimit, "the new server to answer", answers)
		says(t, refused(t, 0, "agent", "--listen", "unix:"+path), "another process is listening there")
		s.end()
		if err := answers(); err == nil {
			t.Error("the socket answers after the end")
		}
	}
}

// The parts end with their supervisor, however it ends, and at once: another one can start.
func TestAttackOnTheSupervisor(t *testing.T) {
	t.Parallel()
	args := []string{"--data-dir", t.TempDir()}
	s := confined(t, "up", args...)
	all := s.processes(t)
	signalled(t, all["up"], syscall.SIGKILL)
	_ = s.ended(t, testLimit) // with the signal's status
	second := start(t, "up", args...)
	for role, pid := range all {
		eventually(t, testLimit, "the "+role+" to end", func() error {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d/mem", pid)); err == nil && !zombie(pid) {
				return fmt.Errorf("process %d still runs", pid)
			}
			return nil
		})
	}
	// A service manager sends its signal to all processes. Each ends in order, although the supervisor sends one too.
	eventually(t, testLimit, "the parts to be confined", func() error { return allConfined(second.scrape(t)) })
	all = second.processes(t)
	for _, role := range []string{"up", "server", "agent"} {
		// A part may have ended already, because the supervisor asked it to.
		if err := syscall.Kill(all[role], syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
	if err := second.ended(t, testLimit); err != nil {
		t.Errorf("after SIGTERM to all processes: %v", err)
	}
}

// zombie reports whether a process has ended and its parent has not read its status yet.
func zombie(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err != nil || len(line) == 0
}
