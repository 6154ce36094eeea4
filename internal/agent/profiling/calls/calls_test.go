// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/boundarytest"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
	"github.com/teescope/teescope/internal/lib/proctest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// app is a running application of the SDK, which answers each line of input by its own counts.
type app struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func start(t *testing.T, program string) *app {
	t.Helper()
	p := proctest.Start(t, exec.Command(program))
	return &app{t, p.Cmd, p.In, p.Out}
}

func (a *app) do(line string) {
	a.t.Helper()
	fmt.Fprintln(a.in, line)
	if _, err := a.out.ReadString('\n'); err != nil {
		a.t.Fatal(err)
	}
}

func finder(t *testing.T, event profiling.Event) (*profiling.Sampler, *Finder) {
	t.Helper()
	privilegetest.Alone(t)
	sampler, err := profiling.Open(profiling.Options{Event: event, Sys: hostfs.At("/sys")})
	if err != nil {
		t.Fatal(err)
	}
	reads := reader.New(reader.Options{Proc: hostfs.At("/proc"), Cgroup: "/sys/fs/cgroup", Log: slog.New(slog.DiscardHandler)})
	f := New(Options{Host: host.New("/proc", "/sys/fs/cgroup", reads), Sampler: sampler, Out: event == profiling.OCalls})
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if err := sampler.Close(); err != nil {
			t.Error(err)
		}
	})
	return sampler, f
}

// find looks until a condition holds.
func find(t *testing.T, f *Finder, until func() bool) {
	t.Helper()
	waittest.Until(t, "the functions to be found", func() bool {
		if until() {
			return true
		}
		if err := f.Find(); err != nil {
			t.Fatal(err)
		}
		return until()
	})
}

// drained returns the samples of a process by the address of the innermost function, and whether all have callers.
func drained(t *testing.T, s *profiling.Sampler, pid int) (by map[uint64]uint64, callers bool) {
	t.Helper()
	by, callers = map[uint64]uint64{}, true
	err := s.Drain(func(one *profiling.Sample) {
		if one.PID == pid && len(one.User) > 0 {
			by[one.User[0]] += one.Samples
			callers = callers && len(one.User) >= 3
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return by, callers
}

// TestEachOCallIsSampled compares the samples with the OCALLs that a program of the SDK makes: three functions, which are known
// only by the table that it passes.
func TestEachOCallIsSampled(t *testing.T) {
	const n = 2000
	sampler, f := finder(t, profiling.OCalls)
	a := start(t, boundarytest.SDKApp(t, "profileocalls", "-fno-omit-frame-pointer"))
	find(t, f, func() bool {
		a.do("ecall 1 3 1") // passes its table
		by, _ := drained(t, sampler, a.cmd.Process.Pid)
		return len(by) == 3
	})
	drained(t, sampler, a.cmd.Process.Pid)
	a.do(fmt.Sprintf("ecall %d 3 1", n))
	by, callers := drained(t, sampler, a.cmd.Process.Pid)
	if len(by) != 3 || !callers {
		t.Errorf("samples of %v, all with callers: %v", by, callers)
	}
	for at, samples := range by {
		if samples != n {
			t.Errorf("the function at %#x has %d samples, want %d", at, samples, n)
		}
	}
}

// TestEachECallIsSampled does the same with ECALLs.
func TestEachECallIsSampled(t *testing.T) {
	const n = 2000
	sampler, f := finder(t, profiling.ECalls)
	a := start(t, boundarytest.SDKApp(t, "profileecalls", "-fno-omit-frame-pointer"))
	find(t, f, func() bool {
		a.do("ecall 1 0 1")
		by, _ := drained(t, sampler, a.cmd.Process.Pid)
		return len(by) == 1
	})
	drained(t, sampler, a.cmd.Process.Pid)
	a.do(fmt.Sprintf("ecall %d 0 1", n))
	by, _ := drained(t, sampler, a.cmd.Process.Pid)
	if len(by) != 1 {
		t.Errorf("samples of %v", by)
	}
	for _, samples := range by {
		if samples != n {
			t.Errorf("%d samples, want %d", samples, n)
		}
	}
}

// stick starts a process that holds the lock of its memory for ever, and returns it and its program.
func stick(t *testing.T) (pid int, program string) {
	t.Helper()
	privilegetest.Alone(t) // tests of other packages may read it without a deadline
	program = boundarytest.Build(t, filepath.Join(t.TempDir(), "stuck"), "../../../../test/e2e/progs/stuck.c", "-lpthread")
	stuck := exec.Command(program, "lock", t.TempDir())
	out, err := stuck.StdoutPipe()
	if err == nil {
		err = stuck.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stuck.Process.Kill()
		_ = stuck.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return stuck.Process.Pid, program
}

// mappedBy returns the processes that map a file. The kernel does not answer while another thread of this process changes its mappings.
func mappedBy(t *testing.T, f *Finder, opened *os.File) (pids []int) {
	t.Helper()
	waittest.Until(t, "the kernel's answer", func() bool {
		var err error
		if pids, err = f.mappedBy(os.Getpid(), opened); errors.Is(err, profiling.ErrNotReported) {
			t.Skip(err)
		}
		return err == nil
	})
	return pids
}

// A process that holds the lock of its memory and has never answered concerns the files that it maps, and no others of its tenant and mount
// namespace. Without the kernel's knowledge it would concern all of them.
func TestAStuckProcessConcernsTheFilesThatItMaps(t *testing.T) {
	if os.Getenv("SDK_APP") != "" {
		t.Skip("this machine has no compiler")
	}
	stuck, its := stick(t)
	sampler, f := finder(t, profiling.ECalls)
	a := start(t, boundarytest.SDKApp(t, "profilesame", "-fno-omit-frame-pointer"))
	find(t, f, func() bool {
		a.do("ecall 1 0 1")
		by, _ := drained(t, sampler, a.cmd.Process.Pid)
		return len(by) == 1
	})
	for range 2 { // it has not answered at the scan before either
		f.users.begin()
	}
	f.users.silent(stuck, reader.ErrStuck)
	f.users.finish()
	for file, safe := range map[string]bool{a.cmd.Path: true, its: false} {
		opened, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer opened.Close()
		if err := f.users.answer(hostfs.FileID{}, func() ([]int, error) { return mappedBy(t, f, opened), nil }); errors.Is(err, host.ErrUnsafe) == safe || safe && err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if err := f.users.answer(hostfs.FileID{}, notKnown); !errors.Is(err, host.ErrUnsafe) {
			t.Errorf("%s, without the kernel: %v", file, err)
		}
	}
}

// TestTheKernelKnowsWhichProcessesMapAFile compares its answer with the mappings in /proc.
func TestTheKernelKnowsWhichProcessesMapAFile(t *testing.T) {
	_, f := finder(t, profiling.ECalls)
	program := boundarytest.SDKApp(t, "profilemapped", "-fno-omit-frame-pointer")
	opened, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	var want []int
	for range 5 {
		if got := mappedBy(t, f, opened); !slices.Equal(got, want) {
			t.Fatalf("%v map the file, want %v", got, want)
		}
		a := start(t, program)
		a.do("ecall 1 0 1") // the program is mapped after the start has returned
		want = append(want, a.cmd.Process.Pid)
		slices.Sort(want)
	}
	for _, pid := range want {
		if maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid)); err != nil || !strings.Contains(string(maps), program) {
			t.Errorf("process %d: %v, %s", pid, err, maps)
		}
	}
}

// A process can map a file very often. The kernel runs the program for a limited time then, and what it has found is not used.
func TestAFileThatIsMappedVeryOften(t *testing.T) {
	_, f := finder(t, profiling.ECalls)
	opened, err := os.Create(filepath.Join(t.TempDir(), "mapped"))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	mapped := 0
	add := func(n int) {
		for range n {
			page, err := unix.Mmap(int(opened.Fd()), int64(mapped%2)*8192, 4096, unix.PROT_READ, unix.MAP_PRIVATE) // neighbours are not merged
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Munmap(page) })
			mapped++
		}
	}
	add(15_000)
	began := time.Now()
	if got := mappedBy(t, f, opened); len(got) > 0 {
		t.Errorf("with %d mappings: %v", mapped, got)
	}
	t.Logf("%d mappings took %v", mapped, time.Since(began))
	add(20_000)
	if got, err := f.mappedBy(os.Getpid(), opened); err == nil {
		t.Errorf("with %d mappings: %v", mapped, got)
	}
}

// TestATableInMemoryIsRefused: a table that is in no file could have the address of anything.
func TestATableInMemoryIsRefused(t *testing.T) {
	sampler, f := finder(t, profiling.OCalls)
	a := start(t, boundarytest.SDKApp(t, "profileheap", "-DTABLE_ON_HEAP"))
	pid := a.cmd.Process.Pid
	var problems []string
	find(t, f, func() bool {
		a.do("ecall 1 3 1")
		for _, problem := range f.Problems() { // others may run beside it
			if strings.Contains(problem, fmt.Sprintf("process %d ", pid)) || strings.Contains(problem, "profileheap") {
				problems = append(problems, problem)
			}
		}
		return len(problems) > 0
	})
	a.do("ecall 10 3 1")
	if by, _ := drained(t, sampler, pid); len(by) > 0 || !strings.Contains(problems[0], "OCALL table") {
		t.Errorf("samples of %v, %q", by, problems)
	}
}
