// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/cli/record/hardware"
	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/run"
)

// Every machine has these events, which the kernel counts as those of the processor.
var softwareEvents = [][]hardware.Event{{
	{Name: "page_faults", Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_PAGE_FAULTS},
	{Name: "task_clock", Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK},
}}

// sums returns the counters of the software events by name and workload, over both modes.
func sums(all []run.Value) map[string]float64 {
	of := map[string]float64{}
	for _, v := range all {
		if v.Series.Kind == run.Counter {
			of[v.Series.Name+" of "+v.Series.Labels["workload"]] += v.Value
		}
	}
	return of
}

// newSoftware returns a counting of software events, or skips the test where that is not allowed.
func newSoftware(t *testing.T, workload string) *counting {
	t.Helper()
	c, told := newCounting(softwareEvents, workload)
	if strings.HasPrefix(told.Value, "none") {
		t.Skip(told.Value)
	}
	t.Cleanup(c.close)
	return c
}

// Repetitions add up. Each has as many page faults as the kernel accounts to the processes of the command, except for the
// few between their creation and the execution of the program.
func TestCountersOfRepetitions(t *testing.T) {
	c := newSoftware(t, "command")
	const few = 30
	before, shown := 0.0, 0.0
	for range 3 {
		one, err := c.launch(func() (*child, error) {
			return launch([]string{"sh", "-c", "ls / >/dev/null; sort /etc/services | head -1 >/dev/null; true"}, nil, io.Discard, io.Discard)
		})
		if err != nil {
			t.Fatal(err)
		}
		<-one.done
		used, ok := one.cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok {
			t.Fatal("no account of the kernel")
		}
		all := sums(c.values())
		shown = all["teescope_page_faults_total of command"]
		if want, got := float64(used.Minflt+used.Majflt), shown-before; math.Abs(got-want) > few || want < 5*few {
			t.Errorf("a repetition had %v page faults, want %v", got, want)
		}
		if all["teescope_task_clock_total of command"] <= 0 {
			t.Errorf("counted %v", all)
		}
		before = shown
	}
	c.mu.Lock()
	c.fold()
	c.mu.Unlock()
	if after := sums(c.values())["teescope_page_faults_total of command"]; after != shown {
		t.Errorf("%v page faults after the end, %v before", after, shown)
	}
	if notes := c.notes(map[string]bool{"command": true}); len(notes) != 1 || !strings.Contains(notes[0], "production enclaves") {
		t.Errorf("notes are %q", notes)
	}
}

// A server has counters from the time at which it was found. Its figures are its workload's.
func TestCountersOfServers(t *testing.T) {
	c := newSoftware(t, "")
	server := exec.Command("sh", "-c", "echo ready; read line; ls / >/dev/null; ls / >/dev/null; echo done; read line")
	in, err1 := server.StdinPipe()
	out, err2 := server.StdoutPipe()
	if err := errors.Join(err1, err2, server.Start()); err != nil {
		t.Fatal(err)
	}
	defer server.Wait() //nolint:errcheck // it ends with its input
	defer in.Close()
	line := make([]byte, 10)
	if _, err := out.Read(line); err != nil {
		t.Fatal(err)
	}
	pid := server.Process.Pid
	c.serve(pid, 0, "server", []int{pid})
	c.served(clock.SinceBoot())
	if !c.counts(pid) || c.counts(1<<30) {
		t.Error("the process has no counters, or another one has")
	}
	if got := sums(c.values()); got["teescope_page_faults_total of server"] > 50 {
		t.Errorf("a server that waits had %v", got)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(line); err != nil {
		t.Fatal(err)
	}
	if got := sums(c.values())["teescope_page_faults_total of server"]; got < 150 {
		t.Errorf("a server that started two programs had %v page faults", got)
	}
	c.serve(1<<30, 0, "many", make([]int, maxCounted))
	if notes := c.notes(nil); len(notes) != 1 || !strings.Contains(notes[0], "more than 256 threads") {
		t.Errorf("notes are %q", notes)
	}
}

// A process that was started by a counted one, as the workers of a server or a daemon of the command, has inherited the counters.
// It matches --watch too, and counts once.
func TestInheritedCountersCountOnce(t *testing.T) {
	c := newSoftware(t, "command")
	ends := filepath.Join(t.TempDir(), "ends") // the command ends after it was made
	one, err := c.launch(func() (*child, error) {
		return launch([]string{"sh", "-c", "until [ -e " + ends + " ]; do sleep 0.1; done; ls / >/dev/null; ls / >/dev/null; true"}, nil, io.Discard, io.Discard)
	})
	if err != nil {
		t.Fatal(err)
	}
	pid := one.cmd.Process.Pid
	stat, err := hostfs.At("/proc").Process(pid).Stat()
	if err != nil {
		t.Fatal(err)
	}
	c.serve(pid, stat.Started, "server", []int{pid})
	if err := os.WriteFile(ends, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-one.done
	if got := sums(c.values()); got["teescope_page_faults_total of command"] < 150 || got["teescope_page_faults_total of server"] != 0 {
		t.Errorf("counted %v", got)
	}
	if notes := strings.Join(c.notes(nil), "; "); c.counts(pid) || !strings.Contains(notes, "while others were counted") {
		t.Errorf("notes are %q", notes)
	}
	if c.inherits(stat.Started - time.Second) {
		t.Error("a process that started before the command has no counters of it")
	}
}

// Without a counter for each thread, as when there are too many open files, a server has none: the figures of a part of its
// threads would look like those of all. The files of the others are free again.
func TestServerThatIsNotCountedWhole(t *testing.T) {
	c := newSoftware(t, "")
	const noThread = -1 // together with any CPU, which is refused
	c.serve(unix.Getpid(), 0, "server", []int{unix.Gettid(), noThread})
	if all := c.values(); len(all) != 0 {
		t.Errorf("counted %+v", all)
	}
	if notes := c.notes(nil); len(notes) != 1 || !strings.Contains(notes[0], "no counters") {
		t.Errorf("notes are %q", notes)
	}
}

// What cannot be counted is said once, as a condition, and nothing is recorded.
func TestNoCounters(t *testing.T) {
	missing := [][]hardware.Event{{{Name: "nothing", Type: unix.PERF_TYPE_HARDWARE, Config: 1 << 30}}}
	for _, c := range []struct {
		pairs [][]hardware.Event
		told  string
	}{{nil, "switched off"}, {missing, "none: "}} {
		counting, told := newCounting(c.pairs, "a")
		if !strings.HasPrefix(told.Value, c.told) || told.Kind != "note" || len(counting.values()) != 0 || len(counting.notes(nil)) != 0 {
			t.Errorf("%+v, want %q", told, c.told)
		}
	}
}
