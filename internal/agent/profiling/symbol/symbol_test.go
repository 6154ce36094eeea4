// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/proctest"
	"github.com/teescope/teescope/internal/lib/waittest"
	"github.com/teescope/teescope/internal/lib/watch"
)

// table returns a table for this machine.
func table(t *testing.T, debug string) *Table {
	t.Helper()
	proc := hostfs.At("/proc")
	reads := reader.New(reader.Options{Proc: proc, Cgroup: "/sys/fs/cgroup", Log: slog.New(slog.DiscardHandler)})
	table := New(Options{Proc: proc, Sys: hostfs.At("/sys"), Cgroup: "/sys/fs/cgroup", Debug: debug, Reads: reads})
	t.Cleanup(func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	})
	return table
}

// sampleOf is a sample of a process that runs.
func sampleOf(t *testing.T, pid int) *profiling.Sample {
	t.Helper()
	stat, err := hostfs.At("/proc").Process(pid).Stat()
	if err != nil {
		t.Fatal(err)
	}
	return &profiling.Sample{Process: profiling.Process{PID: pid, Start: stat.Started + 5*time.Millisecond}, TID: pid, Name: stat.Comm}
}

// nameOf resolves one address of a process.
func nameOf(table *Table, p *Process, address uint64) Name {
	return table.Resolve([]Location{{p, table.Mapping(p, address), address}})[0]
}

func gcc(t *testing.T, args ...string) {
	t.Helper()
	if text, err := exec.Command("gcc", append([]string{"-O2", "-Wall", "-Wextra", "-Werror"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// program is jit.c that runs, with the address of its code.
type program struct {
	*proctest.Program
	address uint64
}

func run(t *testing.T, path string, args ...string) *program {
	t.Helper()
	p := &program{Program: proctest.Start(t, exec.Command(path, args...))}
	if _, err := fmt.Fscanf(p.Out, "%x", &p.address); err != nil {
		t.Fatal(err)
	}
	return p
}

// mapping returns the first executable mapping of a file.
func mapping(t *testing.T, pid int, part string) (start uint64) {
	t.Helper()
	err := hostfs.At("/proc").Process(pid).Mappings(func(m hostfs.Mapping) {
		if m.Executable && strings.Contains(string(m.Path), part) && start == 0 {
			start = m.Start
		}
	})
	if err != nil || start == 0 {
		t.Fatalf("process %d has no mapping of %s: %v", pid, part, err)
	}
	return start
}

// The program removes its perf map at its end. It is read while it runs, as of a process that has generated code.
func TestGeneratedCodeHasTheNamesOfThePerfMap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jit")
	gcc(t, "-o", path, "testdata/jit.c")
	table := table(t, "")
	p := run(t, path)
	process := table.Of(sampleOf(t, p.Process.Pid))
	if n := nameOf(table, process, p.address+5); n.Function != "generated loop" || n.Reason != "" {
		t.Errorf("the loop is %+v", n)
	}
	if n := nameOf(table, process, p.address+100); n.Function != "" || n.Reason != noPerfMap {
		t.Errorf("behind the loop is %+v", n)
	}
	if n := nameOf(table, process, 1); n.Function != "" || n.Reason != unmapped {
		t.Errorf("address 1 is %+v", n)
	}
}

// Reads do not answer until they are ready, like those of a process that hangs for a moment. The failure is not remembered for
// ever.
func TestAProcessThatDidNotAnswerIsLookedAtAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jit")
	gcc(t, "-o", path, "testdata/jit.c")
	p := run(t, path)
	ready := make(chan struct{})
	table := table(t, "")
	table.Reads = reader.New(reader.Options{Proc: table.Proc, Cgroup: "/sys/fs/cgroup", Log: slog.New(slog.DiscardHandler), Ready: ready})
	process := table.Of(sampleOf(t, p.Process.Pid))
	address := mapping(t, p.Process.Pid, path)
	if n := nameOf(table, process, address); n.Reason != silent {
		t.Errorf("while the process does not answer, the name is %+v", n)
	}
	close(ready)
	waittest.Until(t, "another inspection of the process", func() bool {
		table.Tick()
		return table.Mapping(process, address) != nil
	})
}

// What could not be read of a process at its first sample is read at a later one: the arguments of a loader, which has the name of its
// application only there, or the path of a program.
func TestAProcessThatCouldNotBeNamedIsNamedLater(t *testing.T) {
	for rule, program := range map[string]string{"comm=redis-server": "loader", "exe=/opt/app": "app"} {
		root, ready := hostfs.At(t.TempDir()), make(chan struct{})
		hostfstest.Write(t, root.Path(), "7/comm", program+"\n")
		hostfstest.Write(t, root.Path(), "7/task/7/stat", "7 ("+program+") S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 100 0 0 0 0 0 7 0 0\n")
		hostfstest.Write(t, root.Path(), "7/cmdline", "/opt/loader\x00/opt/libpal.so\x00init\x00redis-server\x00")
		hostfstest.Write(t, root.Path(), "7/maps", "")
		exe := func() {
			if err := os.Symlink("/opt/"+program, root.Path("7", "exe")); err != nil {
				t.Fatal(err)
			}
		}
		if program == "loader" {
			exe()
		}
		parsed, err := watch.Parse(rule)
		if err != nil {
			t.Fatal(err)
		}
		table := New(Options{
			Proc: root, Sys: hostfs.At("/sys"), Cgroup: root.Path(), Watch: []watch.Rule{parsed},
			Reads: reader.New(reader.Options{Proc: root, Cgroup: root.Path(), Log: slog.New(slog.DiscardHandler), Ready: ready}),
		})
		s := &profiling.Sample{Process: profiling.Process{PID: 7, Start: time.Second + 5*time.Millisecond}, TID: 7, Name: program}
		p := table.Of(s)
		if p.Watched {
			t.Errorf("%s matches a process that could not be read", rule)
		}
		close(ready)
		if program != "loader" {
			exe()
		}
		if again := table.Of(s); again.Watched || again.rename.IsZero() {
			t.Errorf("%s: it is read again at once, and matches: %t", rule, again.Watched)
		}
		p.rename = time.Now()
		if again := table.Of(s); again != p || !again.Watched || program == "loader" && again.Workload != "redis-server" {
			t.Errorf("%s matches the process %q after it was read: %t", rule, again.Workload, again.Watched)
		}
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Every user can create the perf map of a process in /tmp before it does.
func TestForeignPerfMapsAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can create files of others")
	}
	path := filepath.Join(t.TempDir(), "jit")
	gcc(t, "-o", path, "testdata/jit.c")
	p := run(t, path, "none")
	table := table(t, "")
	process := table.Of(sampleOf(t, p.Process.Pid))
	table.Mapping(process, p.address)
	name := fmt.Sprintf("/tmp/perf-%d.map", p.Process.Pid)
	other := filepath.Join(t.TempDir(), "other")
	line := fmt.Sprintf("%x 1000 stolen\n", p.address)
	if err := os.WriteFile(other, []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	for what, create := range map[string]func() error{
		"another user's": func() error {
			return errors.Join(os.WriteFile(name, []byte(line), 0o644), os.Chown(name, 12345, 12345))
		},
		"a link":      func() error { return os.Symlink(other, name) },
		"a FIFO":      func() error { return unix.Mkfifo(name, 0o644) },
		"a directory": func() error { return os.Mkdir(name, 0o755) },
		"a device":    func() error { return unix.Mknod(name, unix.S_IFCHR|0o644, int(unix.Mkdev(1, 5))) },
	} {
		if err := create(); err != nil {
			t.Fatal(err)
		}
		if n := nameOf(table, process, p.address); n.Function != "" || n.Reason != noPerfMap {
			t.Errorf("%s: %+v", what, n)
		}
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(name, []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(name)
	if n := nameOf(table, process, p.address); n.Function != "stolen" {
		t.Errorf("root's own file: %+v", n)
	}
}

// A stripped program has the names of its debug file, and of no other file that has its name.
func TestStrippedProgramsHaveTheNamesOfTheirDebugFile(t *testing.T) {
	dir := t.TempDir()
	full, bare := filepath.Join(dir, "full"), filepath.Join(dir, "stripped")
	gcc(t, "-g", "-no-pie", "-o", full, "testdata/jit.c")
	for _, args := range [][]string{{"--strip-all", "-o", bare, full}} {
		if out, err := exec.Command("strip", args...).CombinedOutput(); err != nil {
			t.Skipf("%v %s", err, out)
		}
	}
	out, err := exec.Command("nm", full).Output()
	if err != nil {
		t.Skip(err)
	}
	var main uint64
	for line := range strings.Lines(string(out)) {
		var kind, name string
		var at uint64
		if n, _ := fmt.Sscanf(line, "%x %s %s", &at, &kind, &name); n == 3 && name == "main" {
			main = at
		}
	}
	p := run(t, bare, "none")
	look := func(debug string) Name {
		table := table(t, debug)
		return nameOf(table, table.Of(sampleOf(t, p.Process.Pid)), main+1)
	}
	if n := look(""); n.Function != "" || n.Reason != stripped {
		t.Errorf("without a debug file main is %+v", n)
	}
	table := table(t, "")
	process := table.Of(sampleOf(t, p.Process.Pid))
	id := table.Mapping(process, main).BuildID
	if len(id) != 40 {
		t.Fatalf("the build ID is %q", id)
	}
	debug := filepath.Join(dir, "debug")
	at := filepath.Join(debug, ".build-id", id[:2], id[2:]+".debug")
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("objcopy", "--only-keep-debug", full, at).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if n := look(debug); n.Function != "main" {
		t.Errorf("with its debug file main is %+v", n)
	}
	other, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, other, 0o644); err != nil {
		t.Fatal(err)
	}
	if n := look(debug); n.Function != "" {
		t.Errorf("with another debug file main is %+v", n)
	}
}

// A process that has ended has no names, and neither has a process with the ID of one that has ended.
func TestProcessesThatEndedHaveNoNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jit")
	gcc(t, "-o", path, "testdata/jit.c")
	p := run(t, path, "none")
	table := table(t, "")
	s := sampleOf(t, p.Process.Pid)
	text := mapping(t, p.Process.Pid, "/jit")
	earlier := *s
	earlier.Start -= time.Second
	if n := nameOf(table, table.Of(&earlier), text); n.Reason != gone {
		t.Errorf("an earlier process with the same ID: %+v", n)
	}
	before := *s
	before.Name = "sh"
	if n := nameOf(table, table.Of(&before), text); n.Reason != gone {
		t.Errorf("the program that the process ran before: %+v", n)
	}
	known := table.Of(s)
	if table.Mapping(known, text) == nil || known.Workload == "" {
		t.Errorf("the process that runs is %+v", known)
	}
	p.End()
	later := *s
	later.Image++
	if n := nameOf(table, table.Of(&later), text); n.Reason != gone {
		t.Errorf("a program of the process that was not inspected: %+v", n)
	}
	if table.Mapping(known, text) == nil {
		t.Error("the mappings that were read are gone")
	}
}

// The vDSO is the same in all processes. nm cannot read it, but the kernel documents its functions (vdso(7)).
func TestVDSOHasNames(t *testing.T) {
	table := table(t, "")
	if table.own == nil {
		t.Skip("this machine has no vDSO")
	}
	found := map[string]bool{}
	process := table.Of(sampleOf(t, os.Getpid()))
	start := mapping(t, os.Getpid(), "[vdso]")
	for at := start; at < start+table.ownSize; at += 4 {
		found[nameOf(table, process, at).Function] = true
	}
	if !found["__vdso_clock_gettime"] && !found["clock_gettime"] {
		t.Errorf("the vDSO has %v", found)
	}
}
