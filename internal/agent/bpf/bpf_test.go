// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

//go:embed testdata/kit.bpf.o
var kit []byte

func open(t *testing.T, entries int) *Object {
	t.Helper()
	privilegetest.Alone(t)
	o, err := Open(kit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(o.Resize("counts", entries), o.SetConstant("step", uint32(3)), o.CreateMaps()); err != nil {
		t.Fatal(err)
	}
	return o
}

func counts(t *testing.T, o *Object) []uint64 {
	t.Helper()
	c, err := View[uint64](o, "counts")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOpenRefusesWhatIsNoObject(t *testing.T) {
	for _, data := range [][]byte{nil, []byte("ELF"), kit[:len(kit)/2]} {
		if _, err := Open(data); err == nil {
			t.Errorf("Open of %d bytes worked", len(data))
		}
	}
}

func TestAttachFallsBackInOrder(t *testing.T) {
	absent := Way{Program: "absent", Mechanism: TypedTracepoint, Target: "no_such_event"}
	missing := Way{Program: "no_such_program", Mechanism: Fentry, Target: "f"}
	typed := Way{Program: "typed", Mechanism: TypedTracepoint, Target: "sys_enter"}
	other := Way{Program: "second", Mechanism: TypedTracepoint, Target: "sys_enter", Note: "another program"}
	for name, tt := range map[string]struct {
		ways   []Way
		want   string // the program
		reason []string
	}{
		"the first works":  {[]Way{typed, other}, "typed", nil},
		"the second works": {[]Way{absent, other}, "second", []string{"another program"}},
		"the third works":  {[]Way{missing, absent, other}, "second", []string{"another program"}},
		"none works":       {[]Way{absent, missing}, "", []string{"no_such_event", "no such program"}},
	} {
		o := open(t, 1)
		c := counts(t, o)
		status, err := o.Attach(Probe{Name: "test", Ways: tt.ways})
		if status.Program != tt.want || (err == nil) != status.Attached() || status.Attached() != (tt.want != "") {
			t.Errorf("%s: attached %q by %s (%v), want %q", name, status.Program, status.Mechanism, err, tt.want)
		}
		for _, part := range tt.reason {
			if !strings.Contains(status.Reason, part) {
				t.Errorf("%s: reason %q does not say %q", name, status.Reason, part)
			}
		}
		for range 100 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
		}
		if n := c[0]; status.Attached() != (n >= 300) || n%3 != 0 {
			t.Errorf("%s: counted %d in steps of 3 for 100 calls", name, n)
		}
	}
}

func TestViewRefusesWhatDoesNotFit(t *testing.T) {
	o := open(t, 5000)
	if c := counts(t, o); len(c) != 5000 {
		t.Errorf("%d values, want 5000", len(c))
	}
	for name, err := range map[string]error{
		"wrong size": second(View[[2]uint64](o, "counts")),
		"a hash":     second(View[uint64](o, "table")),
		"no map":     second(View[uint64](o, "nothing")),
	} {
		if err == nil {
			t.Errorf("%s was mapped", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestIteratorPassesOverAllTasks(t *testing.T) {
	o := open(t, 1)
	c := counts(t, o)
	it, err := o.Iterator("each_task")
	if err != nil {
		t.Fatal(err)
	}
	pass, err := it.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer pass.Close()
	if _, err := io.Copy(io.Discard, pass); err != nil {
		t.Fatal(err)
	}
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	processes := 0
	for _, d := range dirs {
		var pid int
		if n, _ := fmt.Sscanf(d.Name(), "%d", &pid); n == 1 {
			processes++
		}
	}
	if got := int(c[0] / 3); got < processes-5 {
		t.Errorf("%d tasks, /proc lists %d processes", got, processes)
	}
}

func TestCostsAreSampled(t *testing.T) {
	o := open(t, 1)
	if _, err := o.Attach(Probe{Name: "test", Ways: []Way{{Program: "typed", Mechanism: TypedTracepoint}}}); err != nil {
		t.Fatal(err)
	}
	var cost []Cost
	waittest.Until(t, "1000 measured runs", func() bool { // this thread may get no processor for a while
		done := make(chan error)
		go func() { done <- SampleCosts(context.Background(), 100*time.Millisecond) }()
		for {
			select {
			case err := <-done:
				if errors.Is(err, unix.EPERM) {
					t.Skip(err)
				} else if err != nil {
					t.Fatal(err)
				}
				cost = o.Costs()
				return len(cost) != 1 || cost[0].Runs >= 1000
			default:
				_, _, _ = syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
			}
		}
	})
	if len(cost) != 1 || cost[0].Program != "typed" || cost[0].Instructions < 5 || cost[0].Instructions > 50 {
		t.Fatalf("costs %+v", cost)
	}
	if ns := float64(cost[0].RunTime) / float64(cost[0].Runs); ns <= 0 || ns > 10_000 {
		t.Errorf("%d runs of %.0f ns", cost[0].Runs, ns)
	}
	if m := o.MapMemory(); m["counts"] < 8 {
		t.Errorf("map memory %v", m)
	}
}

func TestCounterThatIsNotThereSaysSo(t *testing.T) {
	o := open(t, 1)
	status, err := o.AttachCounter("test", "sampled", Counter{Type: unix.PERF_TYPE_HARDWARE, Config: 9999, Period: 1}, []int{0})
	if err == nil || status.Attached() || status.Reason == "" {
		t.Errorf("status %+v, error %v", status, err)
	}
	if len(o.Costs()) != 0 {
		t.Error("a program stays loaded")
	}
}

func TestReasonIsOneShortLine(t *testing.T) {
	err := fmt.Errorf("attaching x: %w", errors.Join(errors.New("fentry f: no"), errors.New("kprobe f: "+strings.Repeat("long ", 100))))
	got := Reason(err)
	if strings.Contains(got, "\n") || len(got) > 240 || !strings.HasPrefix(got, "fentry f: no; kprobe f: long") {
		t.Errorf("Reason = %q", got)
	}
	advice := errors.New("fentry f: operation not permitted (MEMLOCK may be too low, consider rlimit.RemoveMemlock)")
	if got := Reason(advice); got != "fentry f: operation not permitted" {
		t.Errorf("Reason = %q", got)
	}
}

func TestPassAndCallRunOnce(t *testing.T) {
	o := open(t, 1)
	c := counts(t, o)
	call, err := o.Call("called")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	if c[0] != 3*3 {
		t.Errorf("three calls counted %d, want 9", c[0])
	}
	if err := o.Pass("each_task"); err != nil {
		t.Fatal(err)
	}
	if c[0] < 3*3+3*2 {
		t.Errorf("a pass over the tasks counted %d", c[0]-9)
	}
	if err := o.Pass("typed"); err == nil {
		t.Error("Pass with a program that is not an iterator has no error")
	}
}

// A way with arguments attaches all of its programs or none. On a kernel without kprobes the
// reason says so, and no program stays loaded.
func TestArgumentsAreKeptByAProgramOfTheirOwn(t *testing.T) {
	o := open(t, 1)
	before := len(o.programs)
	status, err := o.Attach(Probe{Name: "p", Ways: []Way{
		{Program: "typed", Mechanism: Kretprobe, Target: "no_such_function", Args: "second"},
	}})
	if err == nil || status.Attached() || !strings.Contains(status.Reason, "no_such_function") {
		t.Errorf("%+v, %v", status, err)
	}
	if len(o.programs) != before {
		t.Errorf("%d programs stay loaded", len(o.programs)-before)
	}
}

func TestProgramsAndTypesAreNamed(t *testing.T) {
	o := open(t, 1)
	if !slices.Contains(o.Programs(), "each_task") {
		t.Errorf("programs %v", o.Programs())
	}
	for name, want := range map[string]bool{"task_struct": true, "no_such_struct": false} {
		if has, err := o.KernelHas(name); has != want || err != nil {
			t.Errorf("KernelHas(%s) = %v, %v", name, has, err)
		}
	}
	for field, want := range map[string]bool{"run_delay": true, "no_such_field": false} {
		if has, err := o.KernelHas("sched_info", field); has != want || err != nil {
			t.Errorf("KernelHas(sched_info, %s) = %v, %v", field, has, err)
		}
	}
	if n, err := CPUs(); err != nil || n < 1 {
		t.Errorf("%d CPUs, %v", n, err)
	}
}
