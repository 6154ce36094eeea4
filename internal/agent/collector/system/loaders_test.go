// SPDX-License-Identifier: Apache-2.0

package system

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/watch"
)

// loader returns a command that has the name and the arguments of Gramine's loader.
func loader(t *testing.T, what, n string, args ...string) *exec.Cmd {
	t.Helper()
	path := program(t, "loader")
	exe := filepath.Join(filepath.Dir(path), "loader")
	run(t, exec.Command("mv", path, exe))
	cmd := job(exe, what, n)
	cmd.Args = append([]string{exe, filepath.Join(filepath.Dir(path), "libpal.so")}, args...)
	return cmd
}

// All processes of Gramine are its loader. Each counts into the workload of its application, and so does a process that
// the application creates.
func TestLoadersAreNamedAfterTheirApplications(t *testing.T) {
	app := func(name string) string { return unique(name)[:min(15, len(unique(name)))] }
	early := converse(t, loader(t, "on-line", "", "init", "./"+app("early"), "--save", ""))
	rule, err := watch.Parse("comm=" + app("early"))
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, Options{Watch: []watch.Rule{rule}})
	scrape(t, c) // finds loaders that started before
	scrape(t, c) // finds their new slots, and watches
	before := scrape(t, c)
	run(t, loader(t, "getppid", "1000", "init", "/opt/apps/"+app("first")))
	run(t, loader(t, "getppid", "20", "init", app("second")))
	run(t, loader(t, "child", "", "init", app("parent")))
	run(t, loader(t, "getppid", "3", "init", strings.Repeat("a/", 100)+app("long")))
	early.say("300")
	after := scrape(t, c)
	for name, want := range map[string]float64{
		app("first"): 1000, app("second"): 20, app("parent"): 70, app("early"): 300, app("long"): 0,
	} {
		labels := []string{"workload", name, "syscall", "getppid"}
		if got := sum(after, "teescope_syscalls_total", labels...) - sum(before, "teescope_syscalls_total", labels...); got != want {
			t.Errorf("%s made %v calls, want %v", name, got, want)
		}
	}
	// Tests of other packages may run loaders at the same time, and their calls are in this workload too.
	labels := []string{"workload", "loader", "syscall", "getppid"}
	if got := sum(after, "teescope_syscalls_total", labels...) - sum(before, "teescope_syscalls_total", labels...); got < 3 {
		t.Errorf("loader made %v calls, want 3 at least", got)
	}
	pid := strconv.Itoa(early.cmd.Process.Pid)
	labels = []string{"workload", app("early"), "pid", pid, "syscall", "getppid"}
	if got := sum(after, "teescope_process_syscalls_total", labels...) - sum(before, "teescope_process_syscalls_total", labels...); got != 300 {
		t.Errorf("the watched loader made %v calls, want 300", got)
	}
}

// A loader that does not answer while its slot is new is named when it answers.
func TestALoaderThatDoesNotAnswerIsNamedLater(t *testing.T) {
	app := unique("silent")
	p := converse(t, loader(t, "on-line", "", "init", "./"+app))
	reads := reader.New(reader.Options{Proc: hostfs.At("/proc"), Cgroup: "/sys/fs/cgroup", Log: slog.New(slog.DiscardHandler)})
	hangs := make(chan struct{})
	defer close(hangs)
	_, _ = reader.Of(reads, p.cmd.Process.Pid, func() (int, error) { <-hangs; return 0, nil })
	c := start(t, Options{Reads: reads})
	calls := func() float64 {
		return sum(scrape(t, c), "teescope_syscalls_total", "workload", app, "syscall", "getppid")
	}
	p.say("20")
	calls() // it has a slot from now on
	p.say("20")
	if n := calls(); n != 0 {
		t.Errorf("%v calls of a loader that does not answer have a name", n)
	}
	c.opts.Reads = nil // it answers
	calls()
	p.say("300")
	if n := calls(); n != 300 {
		t.Errorf("%v calls are counted after it has answered, want 300", n)
	}
}

// A pass asks the loaders that did not answer, and lists no processes for that: here this would fail.
func TestLoadersThatDoNotAnswerAreNotLookedFor(t *testing.T) {
	const pid = 80
	k := made(t)
	k.group(slotFirst, pid, "loader")
	k.pids[0].Slot[pid] = slotFirst
	root, ready := hostfs.At(filepath.Join(t.TempDir(), "proc")), make(chan struct{})
	hostfstest.Write(t, root.Path(), strconv.Itoa(pid)+"/cmdline", "/bin/cat\x00")
	reads := reader.New(reader.Options{Proc: root, Cgroup: root.Path(), Log: slog.New(slog.DiscardHandler), Ready: ready})
	s := newSlots(k, 8, nil)
	s.loaders = true
	for pass := range 3 {
		if err := s.nameLoaders(root, reads); err != nil || s.loaders || !slices.Equal(s.silent, []int{pid}) {
			t.Errorf("pass %d: %v; it lists all processes next: %t, and asks %v", pass, err, s.loaders, s.silent)
		}
		if err := os.Rename(root.Path(), root.Path()+" is away"); err != nil && pass == 0 {
			t.Fatal(err)
		}
	}
	if err := os.Rename(root.Path()+" is away", root.Path()); err != nil {
		t.Fatal(err)
	}
	close(ready) // it answers: it is no loader
	if err := s.nameLoaders(root, reads); err != nil || len(s.silent) != 0 {
		t.Errorf("%v: %v are asked after all have answered", err, s.silent)
	}
}
