// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel counts these by the same code as the events of the processor, and every machine has them.
var software = [][]Event{
	{{"page_faults", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS}, {"task_clock", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK}},
}

const childVariable = "TEESCOPE_TEST_FAULTS"

// A child process touches a number of pages, and its parent, which is a process of the command too, touches none of them.
func TestMain(m *testing.M) {
	value := os.Getenv(childVariable)
	if value == "" {
		os.Exit(m.Run())
	}
	pages, err := strconv.Atoi(value)
	if err != nil {
		panic(err)
	}
	touch(pages)
}

// touch causes a page fault for each of a number of pages.
func touch(pages int) {
	memory, err := unix.Mmap(-1, 0, pages*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	if err := unix.Madvise(memory, unix.MADV_NOHUGEPAGE); err != nil {
		panic(err)
	}
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
}

// allowed skips a test where nothing may be counted.
func allowed(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, errNotAllowed) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a program and returns the counts of it by event and mode, and how it used the processor.
func run(t *testing.T, args ...string) (map[string]float64, *syscall.Rusage) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), childVariable+"=0")
	runtime.LockOSThread()
	s, err := OnExec(software)
	if err == nil {
		err = cmd.Start()
	}
	runtime.UnlockOSThread()
	allowed(t, err)
	defer s.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, r := range s.Read() {
		if r.Running != r.Enabled {
			t.Errorf("%s %s ran %d of %d ns", r.Event, r.Mode, r.Running, r.Enabled)
		}
		counts[r.Event] += r.Count
	}
	used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("no account of the kernel")
	}
	return counts, used
}

// The counters begin when the program is executed, and have all that it starts: the kernel's own account of the same
// processes has the same number of page faults, except for those between the fork and the execution.
func TestCommandWithItsChildren(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const pages = 3000
	script := func(n int) []string {
		return []string{"sh", "-c", strings.Repeat(childVariable+"="+strconv.Itoa(n)+" "+self+"; ", 2) + "true"}
	}
	without, _ := run(t, script(0)...)
	with, _ := run(t, script(pages)...)
	// Each child touches the pages once. The Go runtime of a child has some hundred faults of its own, which vary.
	if got := with["page_faults"] - without["page_faults"]; got < 2*pages-1000 || got > 2*pages+1000 {
		t.Errorf("two children had %v more page faults, want 2 times %d and at most 1000 others", got, pages)
	}
	if with["task_clock"] <= 0 {
		t.Errorf("counted %v", with)
	}
}

// Nothing of the process that starts the program is counted, nor of another program that it starts later from another thread.
func TestOnlyTheCommandCounts(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s, err := OnExec(software)
	allowed(t, err)
	defer s.Close()
	touch(2000)
	for _, r := range s.Read() {
		t.Errorf("counted %+v before a program was executed", r)
	}
}

// A thread that runs is counted from now on, and so are the threads that it starts.
func TestThreadsThatRun(t *testing.T) {
	const pages = 5000
	ready, begin, done := make(chan int), make(chan bool), make(chan bool)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		touch(pages) // before the counters are opened
		ready <- unix.Gettid()
		<-begin
		touch(pages)
		done <- true
	}()
	tid := <-ready
	s, err := Threads(software, []int{tid, 1 << 30}) // the second one does not exist
	allowed(t, err)
	defer s.Close()
	begin <- true
	<-done
	faults := 0.0
	for _, r := range s.Read() {
		if r.Event == "page_faults" {
			faults += r.Count
		}
	}
	if faults < pages || faults > pages+500 {
		t.Errorf("counted %v page faults of a thread, want %d and at most 500 of the runtime", faults, pages)
	}
}

// The time is that which the kernel accounts for the process. Its clock does not know modes, so it is there in both.
func TestTimes(t *testing.T) {
	counts, used := run(t, "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
	want := float64(used.Utime.Nano() + used.Stime.Nano())
	if got := counts["task_clock"] / 2; got < want/2 || got > 2*want {
		t.Errorf("counted %v ns, want %v", got, want)
	}
}

// Scaled counts: an event that ran for a half of the time is doubled, and time without a count is given to the next reading.
func TestScaling(t *testing.T) {
	c := &counter{fd: -1}
	for _, step := range []struct {
		now  [3]uint64
		want float64
	}{
		{[3]uint64{100, 1000, 1000}, 100},
		{[3]uint64{150, 2000, 1500}, 200}, // 50 in a half
		{[3]uint64{150, 3000, 1500}, 200}, // it did not run
		{[3]uint64{160, 4000, 2000}, 240}, // 10 in a quarter
	} {
		if c.take(step.now); c.scaled != step.want {
			t.Errorf("after %v: %v, want %v", step.now, c.scaled, step.want)
		}
	}
}

// Without counters the error says so. With them, instructions are counted.
func TestEventsOfTheProcessor(t *testing.T) {
	s, err := Threads(Events(), []int{0})
	switch {
	case errors.Is(err, errNoCounters), errors.Is(err, errNotAllowed):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	defer s.Close()
	touch(100)
	if all := s.Read(); len(all) == 0 || all[0].Count <= 0 {
		t.Errorf("counted %+v", all)
	}
}
