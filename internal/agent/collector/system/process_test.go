// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/lib/proctest"
	"github.com/teescope/teescope/internal/lib/watch"
)

// conversation is a running program that answers lines.
type conversation struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Reader
}

func converse(t *testing.T, cmd *exec.Cmd) *conversation {
	t.Helper()
	p := proctest.Start(t, cmd)
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &conversation{t, cmd, p.In, p.Out}
}

// say sends a line and returns the answer.
func (c *conversation) say(line string) (answer string) {
	c.t.Helper()
	fmt.Fprintln(c.in, line)
	if _, err := fmt.Fscanln(c.out, &answer); err != nil {
		c.t.Fatal(err)
	}
	return answer
}

// end closes the input and waits for the end.
func (c *conversation) end() {
	c.t.Helper()
	_ = c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		c.t.Fatal(err)
	}
}

// state returns the state of a process as in its stat file.
func state(pid int) string {
	text, _ := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
	_, after, _ := strings.Cut(string(text), ") ")
	return after[:min(1, len(after))]
}

// A process lives as long as one of its threads. Its group must keep its number, although its first thread has exited.
func TestAProcessEndsWithItsLastThread(t *testing.T) {
	c := start(t, Options{MaxWorkloads: 64})
	p := converse(t, job(program(t, "headless"), "leaderless", ""))
	for state(p.cmd.Process.Pid) != "Z" { // the first thread is a zombie until the last one ends
		time.Sleep(time.Millisecond)
	}
	var s []sample
	for range 8 { // long enough to free the number of a group without processes
		time.Sleep(attribution.IdleBeforeFree / 4)
		s = scrape(t, c)
	}
	me := []string{"workload", unique("headless")}
	for family, want := range map[string]float64{"teescope_processes": 1, "teescope_exits_total": 0} {
		if got := sum(s, family, me...); got != want {
			t.Errorf("%s = %v, want %v", family, got, want)
		}
	}
	if got := sum(s, "teescope_threads", me...); got < 1 {
		t.Errorf("%v threads", got)
	}
	if got := sum(s, "teescope_resident_memory_bytes", me...); got < 1<<20 {
		t.Errorf("%v bytes are resident", got)
	}
	stranger := job(program(t, "stranger"), "sleep", "0") // takes a free number
	run(t, stranger)
	p.say("1000")
	p.end()
	s = scrape(t, c)
	if got := sum(s, "teescope_syscalls_total", append(me, "syscall", "getppid")...); got != 1000 {
		t.Errorf("%v calls are counted, want 1000", got)
	}
	if got := sum(s, "teescope_syscalls_total", "workload", unique("stranger"), "syscall", "getppid"); got != 0 {
		t.Errorf("%v calls are counted for another program", got)
	}
	if got := sum(s, "teescope_exits_total", me...); got != 1 {
		t.Errorf("%v exits, want 1", got)
	}
}

// When a thread that is not the first executes a program, the kernel ends all other threads, and gives it the ID of the
// first one. The process continues.
func TestExecByAnotherThreadEndsNoProcess(t *testing.T) {
	const times = 10
	c := start(t, Options{})
	next := program(t, "afterexec")
	for range times {
		run(t, job(program(t, "threadexec"), "thread-exec", next))
	}
	s := scrape(t, c)
	for _, tt := range []struct {
		family, program string
		want            float64
	}{
		{"teescope_execs_total", "threadexec", times}, {"teescope_exits_total", "threadexec", 0},
		{"teescope_execs_total", "afterexec", times}, {"teescope_exits_total", "afterexec", times},
	} {
		if got := sum(s, tt.family, "workload", unique(tt.program)); got != tt.want {
			t.Errorf("%s of %s = %v, want %v", tt.family, tt.program, got, tt.want)
		}
	}
}

// A process belongs to the cgroup of its first thread. If another thread is in a cgroup of its own, the process does not move
// there. A child of that thread is in that cgroup, and does not count for the workload of its parent.
func TestAThreadInAnotherCgroupMovesNoProcess(t *testing.T) {
	c := start(t, Options{})
	unit := unique("threads") + ".service"
	path := filepath.Join(cgroupRoot(t), unit)
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Skipf("a cgroup cannot be created here: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
	if _, err := os.Stat(filepath.Join(path, "tasks")); err != nil {
		t.Skipf("cgroups of threads need version 1 here: %v", err)
	}
	p := converse(t, job(program(t, "threaded"), "other-thread", ""))
	var thread int
	if _, err := fmt.Fscanln(p.out, &thread); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "tasks"), fmt.Append(nil, thread), 0o644); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(p.in)
	p.end()
	s := scrape(t, c)
	for workload, want := range map[string]float64{unique("threaded"): 270, unit: 30} {
		if got := sum(s, "teescope_syscalls_total", "workload", workload, "syscall", "getppid"); got != want {
			t.Errorf("%v calls in %s, want %v", got, workload, want)
		}
	}
}

// The numbers of 32-bit calls differ: 6 is close, and lstat in 64-bit code.
func TestErrorsOf32BitCallsHaveTheirName(t *testing.T) {
	p := converse(t, job(program(t, "compat-e"), "compat-errors", "300"))
	rule, err := watch.Parse(fmt.Sprintf("pid=%d", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, Options{Watch: []watch.Rule{rule}})
	scrape(t, c)
	fmt.Fprintln(p.in)
	var answer string
	if _, err := fmt.Fscanln(p.out, &answer); err != nil {
		t.Skipf("no 32-bit entry here: %v", err)
	}
	s := scrape(t, c)
	pid := fmt.Sprint(p.cmd.Process.Pid)
	for call, want := range map[string]float64{"compat": 300, "lstat": 0} {
		if got := sum(s, "teescope_process_syscall_errors_total", "pid", pid, "syscall", call, "errno", "EBADF"); got != want {
			t.Errorf("%v errors of %s, want %v", got, call, want)
		}
	}
}

// Bytes are those of the calls that return a number of bytes, and of no other call. The program's conversation is its own
// reads and writes too: a line of one byte, and the answer of five.
func TestBytesOfAWatchedProcess(t *testing.T) {
	cmd := job(program(t, "transfer"), "transfer", "300")
	cmd.Env = append(cmd.Env, "GODEBUG=containermaxprocs=0,updatemaxprocs=0") // or its runtime reads cpu.cfs_quota_us at times
	p := converse(t, cmd)
	rule, err := watch.Parse(fmt.Sprintf("pid=%d", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, Options{Watch: []watch.Rule{rule}})
	scrape(t, c)
	p.say("")
	scrape(t, c)
	c.mu.Lock()
	defer c.mu.Unlock()
	var got [directions]uint64
	for sl := range c.slots.All() {
		if sl.watched != nil && sl.watched.pid == p.cmd.Process.Pid {
			got = sl.Bytes
		} else if sl.Bytes != [directions]uint64{} {
			t.Errorf("%v bytes of a process that is not watched", sl.Bytes)
		}
	}
	if want := [directions]uint64{bytesIn: 300*transferred + 1, bytesOut: 300*transferred + 5}; got != want {
		t.Errorf("%v bytes, want %v", got, want)
	}
}
