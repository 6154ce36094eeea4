// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/boundarytest"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
	"github.com/teescope/teescope/internal/lib/proctest"
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
	for began := time.Now(); !until(); time.Sleep(20 * time.Millisecond) {
		if err := f.Find(); err != nil {
			t.Fatal(err)
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("%d functions were found in a minute", f.Functions())
		}
	}
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

// A process that holds the lock of its memory, in a mount namespace of its own, concerns the programs of its tenant only. Those of another user
// are sampled, and why the others are not is stated. Since Linux 6.17, mappings can be read without the lock, so that all are sampled.
func TestAStuckProcessConcernsItsTenant(t *testing.T) {
	const nobody = 65534
	if os.Getenv("SDK_APP") != "" {
		t.Skip("this machine has no compiler")
	}
	privilegetest.Alone(t) // before the process is stuck: tests of other packages may read it without a deadline
	stuck := exec.Command(boundarytest.Build(t, filepath.Join(t.TempDir(), "stuck"), "../../../../test/e2e/progs/stuck.c", "-lpthread"), "lock", t.TempDir())
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
	sampler, f := finder(t, profiling.ECalls)
	same := start(t, boundarytest.SDKApp(t, "profilesame", "-fno-omit-frame-pointer"))
	program := boundarytest.SDKApp(t, "profileother", "-fno-omit-frame-pointer")
	for dir := filepath.Dir(program); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { // the other user runs it
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	p := proctest.Start(t, cmd)
	other := &app{t, p.Cmd, p.In, p.Out}
	_, err = f.Host.Mappings(uint32(stuck.Process.Pid))
	known, stated, by := err == nil, "", map[int]uint64{}
	find(t, f, func() bool {
		same.do("ecall 1 0 1")
		other.do("ecall 1 0 1")
		if err := sampler.Drain(func(one *profiling.Sample) { by[one.PID] += one.Samples }); err != nil {
			t.Fatal(err)
		}
		stated += strings.Join(f.Problems(), "\n")
		why := fmt.Sprintf("does not answer: process %d", stuck.Process.Pid)
		return by[other.cmd.Process.Pid] > 0 && (known && by[same.cmd.Process.Pid] > 0 || !known && strings.Contains(stated, why))
	})
	t.Logf("the mappings of the stuck process are known: %v; %s", known, stated)
	if n := by[same.cmd.Process.Pid]; !known && n > 0 {
		t.Errorf("%d samples of a program that may have the files of the stuck process", n)
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
