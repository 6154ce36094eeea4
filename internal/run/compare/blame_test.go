// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/runtest"
)

// blamedRuns compares two groups of four repetitions of 10 s with these counters each, of one operation.
func blamedRuns(t *testing.T, before, after []runtest.Value) (Blame, map[string]Component) {
	t.Helper()
	of := func(file string, counters []runtest.Value) *Record {
		var s runtest.Spec
		for range 4 {
			s.Repetitions = append(s.Repetitions, runtest.Repetition{Outcomes: []run.Outcome{{Name: "operations", Value: 1}}, Counters: counters})
		}
		return record(t, file, s)
	}
	b := compared(t, Options{}, "", of("a", before), of("b", after))[0].Blames[0]
	components := map[string]Component{}
	for _, v := range b.Views {
		sum := v.Rest.After
		for _, s := range v.Components {
			sum += s.After
			components[v.Name+", "+s.Name] = s
		}
		components[v.Name+", rest"] = v.Rest
		if math.Abs(sum-10) > 1e-9 || v.Rest.After < 0 || v.Rest.Before < 0 {
			t.Errorf("%s adds up to %v of 10 s, with a rest of %v", v.Name, sum, v.Rest.After)
		}
	}
	return b, components
}

func seconds(v float64, name string, part ...string) runtest.Value {
	return runtest.Counter(v, name, part...)
}

// A thread that runs for 4 s, waits 2 s for a CPU of which 1.5 s are outside of calls, 1 s for pages of files, 2.5 s in fsync (of which
// 0.5 s are for the CPU), and otherwise in epoll_wait.
func TestWaitsAreBlamedOnce(t *testing.T) {
	thread := []runtest.Value{
		seconds(3, "teescope_cpu_seconds_total", "mode", "user"), seconds(1, "teescope_cpu_seconds_total", "mode", "system"),
		seconds(2, "teescope_run_queue_wait_seconds_total"), seconds(1.5, "teescope_run_queue_wait_outside_calls_seconds_total"),
		seconds(1, "teescope_io_wait_outside_calls_seconds_total"),
		seconds(2.5, "teescope_syscall_seconds_total", "syscall", "fsync"), seconds(2, "teescope_syscall_seconds_total", "syscall", "epoll_wait"),
	}
	b, components := blamedRuns(t, thread, thread)
	for name, want := range map[string]float64{
		"what it went to, user CPU time": 3, "what it went to, waiting for a CPU": 1.5, "what it went to, waiting for pages of files": 1,
		"what it went to, in fsync": 2.5, "what it went to, rest": 2, "what threads did, waiting for a CPU": 2, "what threads did, rest": 4,
	} {
		if got := components[name].After; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v s, want %v", name, got, want)
		}
	}
	if all := strings.Join(b.Notes, "\n"); strings.Contains(all, "outside of system calls was not measured") || strings.Contains(all, "idle") {
		t.Errorf("notes: %s", all)
	}
}

// A recording of an earlier version has no waits outside of calls. They are in the rest, and a note says so.
func TestWaitsThatWereNotMeasured(t *testing.T) {
	b, components := blamedRuns(t, []runtest.Value{
		seconds(3, "teescope_cpu_seconds_total", "mode", "user"), seconds(1, "teescope_syscall_seconds_total", "syscall", "fsync"),
	}, []runtest.Value{
		seconds(3, "teescope_cpu_seconds_total", "mode", "user"), seconds(2, "teescope_syscall_seconds_total", "syscall", "fsync"),
	})
	if got := components["what it went to, rest"]; got.Before != 6 || got.After != 5 {
		t.Errorf("the rest is %+v", got)
	}
	all := strings.Join(b.Notes, "\n")
	for _, want := range []string{"waiting for a CPU outside of system calls was not measured", "waiting for the pages of files outside of system calls was not measured", "waiting for a CPU was not measured"} {
		if !strings.Contains(all, want) {
			t.Errorf("no note %q: %s", want, all)
		}
	}
}

// Nine threads that idle in read are no reason for a negative rest.
func TestThreadsThatIdleInCalls(t *testing.T) {
	idle := []runtest.Value{
		seconds(10, "teescope_cpu_seconds_total", "mode", "user"), seconds(0, "teescope_run_queue_wait_seconds_total"),
		seconds(90, "teescope_syscall_seconds_total", "syscall", "read"),
	}
	b, components := blamedRuns(t, idle, idle)
	if got := components["what it went to, in read"].After; math.Abs(got-9) > 1e-9 {
		t.Errorf("%v s in read, want 9 of 10: nine of ten threads", got)
	}
	if all := strings.Join(b.Notes, "\n"); !strings.Contains(all, `b: in "what it went to", more threads are in the calls`) {
		t.Errorf("notes: %s", all)
	}
}
