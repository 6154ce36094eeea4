// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// says waits until a program has printed a line.
func (p *process) says(t *testing.T, line string) {
	t.Helper()
	eventually(t, testLimit, p.name+" to print "+line, func() error {
		select {
		case <-p.done:
			t.Fatalf("%s has ended: %v\n%s", p.name, p.err, p.log.String())
		default:
		}
		if !strings.Contains(p.log.String(), line+"\n") {
			return fmt.Errorf("it has printed %q", p.log.String())
		}
		return nil
	})
}

// confined waits until the agent has dropped its privileges. It reads no process before.
func (s *teescope) confined(t *testing.T) {
	t.Helper()
	eventually(t, testLimit, "the agent to be confined", func() error {
		if !strings.Contains(s.log.String(), "process confined") {
			return errors.New("it is not")
		}
		return nil
	})
}

// hanging starts a program of which some reads never end.
func hanging(t *testing.T, mode, as string, more ...string) *process {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Fatal("/dev/fuse is missing: load the module fuse")
	}
	p := background(t, prog(t, "stuck", as), append([]string{mode, t.TempDir()}, more...)...)
	p.says(t, "ready")
	return p
}

// endsSoon stops an agent and checks that it ends long before a service manager kills it, after 90 s.
func (s *teescope) endsSoon(t *testing.T) {
	t.Helper()
	began := time.Now()
	s.stop(t)
	if took := time.Since(began); took > 45*time.Second {
		t.Errorf("%s took %v to end", s.name, took)
	}
}

// Processes of which the command line, the mappings and the program file cannot be read: the agent continues, names other
// programs and ends after SIGTERM. It also starts while they hang.
func TestProcessesThatNeverAnswer(t *testing.T) {
	a := agent(t)
	a.confined(t)
	hanging(t, "lock", "e2ehanglock")
	hanging(t, "exe", "e2ehangexe", "e2ehangprog")
	hanging(t, "map", "e2ehangmap", "libsgx_urts.so")
	eventually(t, testLimit, "a quarantined process", func() error {
		at := a.answers(t)
		if n := at.sum("teescope_processes_quarantined"); n < 1 || at.sum("teescope_proc_reads_stuck") < 1 {
			return fmt.Errorf("%v are", n)
		}
		return nil
	})
	checkGoesOn(t, a, "e2ebystander1", "e2ehanglock", "e2ehangprog")
	b := agent(t)
	b.confined(t)
	checkGoesOn(t, b, "e2ebystander2", "e2ehanglock", "e2ehangprog")
	a.endsSoon(t)
	b.endsSoon(t)
}

// ungrouped moves a process out of all control groups. Only a few processes of each group are read without a result.
func ungrouped(t *testing.T, pid int) {
	t.Helper()
	hierarchies, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(hierarchies, "/sys/fs/cgroup/cgroup.procs") {
		_ = os.WriteFile(file, []byte(strconv.Itoa(pid)), 0) // some belong to no hierarchy
	}
}

// More processes hang than reads may hang. Scrapes still answer, count them and show the other programs, and agent, server
// and up end after SIGTERM.
func TestAllReadersAreStuck(t *testing.T) {
	const readers = 16
	for range readers + 4 {
		ungrouped(t, hanging(t, "lock", "e2eallstuck").cmd.Process.Pid)
	}
	a := agent(t)
	u := start(t, "up", "--data-dir", t.TempDir(), "--interval", "500ms")
	s := start(t, "server", "--data-dir", t.TempDir(), "--interval", "500ms", "--targets", a.addr)
	for _, one := range []*teescope{a, u} {
		eventually(t, testLimit, one.name+" to have no reader left", func() error {
			at := one.answers(t)
			stuck, refused := at.sum("teescope_proc_reads_stuck"), at.sum("teescope_proc_reads_refused_total", "reason", "exhausted")
			if stuck != readers || at.sum("teescope_processes_quarantined") != readers || refused == 0 {
				return fmt.Errorf("%v are stuck, and %v reads were refused", stuck, refused)
			}
			return nil
		})
	}
	checkGoesOn(t, a, "e2ebystander3", "e2eallstuck")
	checkGoesOn(t, u, "e2ebystander4", "e2eallstuck")
	eventually(t, testLimit, "the server to store the stuck reads", func() error {
		n, err := single(s, "teescope_proc_reads_stuck")
		if err == nil && n != readers {
			err = fmt.Errorf("%v are", n)
		}
		return err
	})
	for _, one := range []*teescope{s, a, u} {
		one.endsSoon(t)
	}
}

// checkGoesOn checks that an agent counts the events of a program that starts now. On a busy machine the reads of the
// hanging processes delay what a scrape shows of others.
func checkGoesOn(t *testing.T, a *teescope, name string, hanging ...string) {
	t.Helper()
	run(t, prog(t, "storm", name), "20", "5", "2")
	eventually(t, testLimit, "the calls of "+name+" and the names of what hangs", func() error {
		at := a.answers(t)
		if got := at.sum("teescope_syscalls_total", "workload", name, "syscall", "getpgid"); got != 100 {
			return fmt.Errorf("getpgid: got %v, want 100", got)
		}
		for _, hangs := range hanging {
			if !at.has("teescope_workload_info", "workload", hangs) {
				return fmt.Errorf("the workload %s has no name", hangs)
			}
		}
		return nil
	})
}

// The path of a mapped library can lead to a FIFO, a device, a link or another file in the process's mount namespace.
// The agent opens only what is mapped.
func TestOnlyMappedFilesAreOpened(t *testing.T) {
	a := agent(t)
	a.confined(t)
	impostors := map[string]*process{}
	for _, kind := range []string{"fifo", "device", "link", "middle", "other", "same"} {
		dir := t.TempDir()
		for _, sub := range []string{"lib", "elsewhere"} {
			if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(programs, "storm"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, sub, "libsgx_urts.so"), data, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		impostors[kind] = background(t, prog(t, "impostor", "e2e"+kind), kind, dir)
	}
	for kind, p := range impostors {
		p.says(t, "ready")
		if kind == "same" {
			continue
		}
		refusal := fmt.Sprintf("pid=%d ", p.cmd.Process.Pid)
		eventually(t, testLimit, "the agent to refuse "+kind, func() error {
			for line := range strings.Lines(a.log.String()) {
				if strings.Contains(line, "a file is not probed") && strings.Contains(line, refusal) {
					return nil
				}
			}
			return errors.New("it has not")
		})
	}
	impostors["same"].says(t, "opened")
	for kind, p := range impostors {
		if kind != "same" && strings.Contains(p.log.String(), "opened") {
			t.Errorf("%s: the agent has opened what the process does not map", kind)
		}
	}
	a.endsSoon(t)
}
