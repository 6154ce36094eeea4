// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/sampling"
	"github.com/teescope/teescope/internal/lib/waittest"
)

const secondsFamily = "teescope_syscall_seconds_total"

// inSelect returns the time that a program has spent in select. The jobs sleep in it, and Go's runtime does not use it.
func inSelect(samples []sample, comm string) float64 {
	return sum(samples, secondsFamily, "workload", comm, "syscall", "select") +
		sum(samples, secondsFamily, "workload", comm, "syscall", "pselect6")
}

// asleep starts a program and waits until it sleeps.
func asleep(t *testing.T, name, length string) *exec.Cmd {
	t.Helper()
	cmd := job(program(t, name), "sleep", length)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	waittest.Until(t, name+" to sleep", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", cmd.Process.Pid))
		for _, thread := range threads {
			in, _ := os.ReadFile(thread)
			if strings.HasPrefix(string(in), "23 ") || strings.HasPrefix(string(in), "270 ") {
				return true
			}
		}
		return false
	})
	return cmd
}

func TestSyscallTimeIsTheTimeSpent(t *testing.T) {
	c := start(t, Options{SyscallTime: true})
	undisturbed(t, func() error {
		return slept(t, c, "one", 0.5, 1, "sleep", "500ms")
	})
	undisturbed(t, func() error {
		return slept(t, c, "many", 80*0.02, 8, "sleeps", "20ms") // ten of each of eight threads
	})
}

// slept runs a job that sleeps for this number of seconds in total, in this number of threads.
func slept(t *testing.T, c *Collector, name string, least, threads float64, how, long string) error {
	t.Helper()
	before := inSelect(scrape(t, c), unique(name))
	began := time.Now()
	run(t, job(program(t, name), how, long))
	took := time.Since(began).Seconds()
	if got := inSelect(scrape(t, c), unique(name)) - before; got < least || got > threads*took {
		return fmt.Errorf("%.4f s in sleeps of %.4f s in all, in %v threads of a program that took %.4f", got, least, threads, took)
	}
	return nil
}

// undisturbed requires one exact try. The kernel drops events while another program attaches to the same tracepoint, as
// tests of other packages do. So there is some time between two tries.
func undisturbed(t *testing.T, try func() error) {
	t.Helper()
	const tries = 10
	for n := 1; ; n++ {
		err := try()
		if err == nil {
			return
		}
		if n == tries {
			t.Fatal(err)
		}
		t.Logf("disturbed: %v", err)
		time.Sleep(3 * time.Second)
	}
}

// The time of a call is reported while its thread waits, and not again when the call ends.
func TestCallsInFlightAreTimedSoFar(t *testing.T) {
	c := start(t, Options{SyscallTime: true})
	began := time.Now()
	cmd := asleep(t, "waits", "2s")
	begin1 := time.Now()
	first := inSelect(scrape(t, c), unique("waits"))
	end1 := time.Now()
	time.Sleep(300 * time.Millisecond)
	begin2 := time.Now()
	second := inSelect(scrape(t, c), unique("waits"))
	end2 := time.Now()
	if least, most := begin2.Sub(end1).Seconds(), end2.Sub(begin1).Seconds(); end2.Sub(began) < 2*time.Second &&
		(second-first < least || second-first > most) {
		t.Errorf("grew from %.4f by %.4f s, want from %.4f to %.4f", first, second-first, least, most)
	}
	if most := end1.Sub(began).Seconds(); first <= 0 || first > most {
		t.Errorf("%.4f s in a call that began within the last %.4f", first, most)
	}
	_ = cmd.Wait()
	took := time.Since(began).Seconds()
	if got := inSelect(scrape(t, c), unique("waits")); got < 2 || got > took {
		t.Errorf("%.4f s in the end, want 2 and less than the %.4f that the program took", got, took)
	}
}

// The time of a thread that is killed in a call stops growing, and the call that ends a thread has no time.
func TestThreadsThatDieInACallLeaveNothingBehind(t *testing.T) {
	c := start(t, Options{SyscallTime: true})
	began := time.Now()
	cmd := asleep(t, "killed", "60s")
	before := inSelect(scrape(t, c), unique("killed"))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	took := time.Since(began).Seconds()
	after := scrape(t, c)
	if got := inSelect(after, unique("killed")); got < before || got > took {
		t.Errorf("%.4f s in the call, were %.4f before it was killed, and it lived for %.4f", got, before, took)
	}
	time.Sleep(50 * time.Millisecond)
	if was, is := sum(after, secondsFamily, "workload", unique("killed")), sum(scrape(t, c), secondsFamily, "workload", unique("killed")); was != is {
		t.Errorf("%.4f s in calls of a process that has ended, %.4f a moment later", was, is)
	}
	for _, call := range []string{"exit", "exit_group"} {
		if got := sum(after, secondsFamily, "syscall", call); got != 0 {
			t.Errorf("%v s in %s, which never returns", got, call)
		}
	}
}

// Calls with an exit and no entry, or with an entry before exec, do not falsify other times.
func TestCallsThatAreNotInPairs(t *testing.T) {
	c := start(t, Options{SyscallTime: true})
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), unique("shell"))
	if err := os.WriteFile(path, shell, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		cmd  *exec.Cmd
		at   float64 // maximum number of its threads in calls at once
	}{
		{"refused", job(program(t, "refused"), "refused", "1000"), 20},
		{"signals", job(program(t, "signals"), "signals", "300"), 20},
		// Each fork returns twice, and each child executes another program within a call.
		{"shell", exec.Command(path, "-c", "for i in 1 2 3 4 5 6 7 8 9; do /bin/true; (exec /bin/true); done; exec "+path+" -c :"), 3},
	} {
		began := time.Now()
		run(t, tt.cmd)
		took := time.Since(began).Seconds()
		s := scrape(t, c)
		if got := sum(s, secondsFamily, "workload", unique(tt.name)); got <= 0 || got > tt.at*took {
			t.Errorf("%s: %.3f s in calls, and it ran for %.3f", tt.name, got, took)
		}
		if got := sum(s, secondsFamily, "workload", unique(tt.name), "syscall", "getppid"); tt.name == "refused" && got != 0 {
			t.Errorf("%.6f s in calls that were never entered", got)
		}
	}
}

// A call that began before the probes were attached is not timed, because its start is unknown. Neither is a call
// that lasts while timing is off.
func TestCallsThatBeganUnseenAreNotTimed(t *testing.T) {
	began := asleep(t, "before", "1s")
	c := start(t, Options{SyscallTime: true})
	_ = began.Wait()
	if got := inSelect(scrape(t, c), unique("before")); got != 0 {
		t.Errorf("%.4f s in a call that began unseen", got)
	}
	cmd := asleep(t, "sleeps", "2s")
	c.hold(t, sampling.Untimed)
	before := c.timeIn(unique("sleeps"))
	s := scrape(t, c)
	if len(s) == 0 || sum(s, secondsFamily) != 0 {
		t.Error("time is reported while none is measured")
	}
	if sum(s, "teescope_probe_attached", "probe", exitProbe) != 0 {
		t.Error("the probe on the ends of calls is attached although it is not needed")
	}
	c.hold(t, sampling.Full)
	if sum(scrape(t, c), "teescope_probe_attached", "probe", exitProbe) != 1 {
		t.Error("the probe on the ends of calls was not reattached")
	}
	_ = cmd.Wait()
	if after := inSelect(scrape(t, c), unique("sleeps")); after < before || after > before+0.1 {
		t.Errorf("%.4f s in a call that lasted while timing was off, %.4f before", after, before)
	}
}

// timeIn returns the recorded time of a workload in select, reported or not.
func (c *Collector) timeIn(comm string) float64 {
	total := uint64(0)
	for sl := range c.slots.All() {
		if sl.Workload.Name == comm {
			total += sl.times.CallNS[23] + sl.times.CallNS[270]
		}
	}
	return seconds(total)
}

// If a process is moved during a call, its time counts for the new workload. The old one does not change.
func TestACallGoesOnInAnotherWorkload(t *testing.T) {
	c := start(t, Options{SyscallTime: true})
	unit := unique("moved") + ".service"
	path := filepath.Join(cgroupRoot(t), unit)
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Skipf("a cgroup cannot be created here: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
	began := time.Now()
	cmd := asleep(t, "moves", "60s")
	scrape(t, c)
	if err := os.WriteFile(filepath.Join(path, "cgroup.procs"), fmt.Append(nil, cmd.Process.Pid), 0o644); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	first := scrape(t, c)
	time.Sleep(200 * time.Millisecond)
	second := scrape(t, c)
	if was, is := inSelect(first, unique("moves")), inSelect(second, unique("moves")); was <= 0 || was != is {
		t.Errorf("%.4f s in the workload that it has left, %.4f later", was, is)
	}
	if was, is := inSelect(first, unit), inSelect(second, unit); is-was < 0.2 {
		t.Errorf("%.4f s in the new workload, %.4f after 0.2 s more", was, is)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	last := scrape(t, c)
	if got, took := inSelect(last, unique("moves"))+inSelect(last, unit), time.Since(began).Seconds(); got > took {
		t.Errorf("%.4f s in both, and it lived for %.4f", got, took)
	}
}

// Threads of the kernel make no system calls. So they have no time outside of calls, which would be all their waits for devices.
func TestThreadsOfTheKernelHaveNoTimeOutsideOfCalls(t *testing.T) {
	c := start(t, Options{SyscallTime: true})
	all := scrape(t, c)
	for _, family := range []string{"teescope_io_wait_outside_calls_seconds_total", "teescope_run_queue_wait_outside_calls_seconds_total"} {
		workloads := map[string]bool{}
		for _, s := range all {
			if s.name == family {
				workloads[s.labels["workload"]] = true
			}
		}
		if len(workloads) == 0 || workloads["kernel"] || workloads["idle"] {
			t.Errorf("%s has the workloads %v", family, workloads)
		}
	}
}
