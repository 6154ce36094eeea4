// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/watch"
)

func TestCountsAreExactFromTheFirstEventToAfterTheEnd(t *testing.T) {
	c := start(t, Options{})
	path := program(t, "exact")
	for range 20 {
		run(t, job(path, "getppid", "1000"))
	}
	s := scrape(t, c)
	for family, want := range map[string]float64{"teescope_execs_total": 20, "teescope_exits_total": 20, "teescope_processes": 0} {
		if got := sum(s, family, "workload", unique("exact")); got != want {
			t.Errorf("%s = %v, want %v", family, got, want)
		}
	}
	for call, want := range map[string]float64{"getppid": 20_000, "execve": 20, "exit_group": 20} {
		if got := sum(s, "teescope_syscalls_total", "workload", unique("exact"), "syscall", call); got != want {
			t.Errorf("%s calls = %v, want %v", call, got, want)
		}
	}
}

// 64-bit code can also use the 32-bit entry, which has other numbers. There 20 is not writev.
func TestCallsThroughThe32BitEntryHaveANameOfTheirOwn(t *testing.T) {
	c := start(t, Options{})
	cmd := job(program(t, "compat"), "compat", "1000")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("this kernel has no 32-bit entry: %v\n%.200s", err, out)
	}
	s := scrape(t, c)
	if n := sum(s, "teescope_syscalls_total", "workload", unique("compat"), "syscall", "compat"); n != 1000 {
		t.Errorf("%v calls, want 1000", n)
	}
	if n := sum(s, "teescope_syscalls_total", "workload", unique("compat"), "syscall", "writev"); n != 0 {
		t.Errorf("%v of them are counted as writev", n)
	}
}

func TestSlotsAreGivenBackAndCountsKept(t *testing.T) {
	c := start(t, Options{MaxWorkloads: 64})
	path := program(t, "comes-and-goes")
	run(t, job(path, "getppid", "500"))
	slots := func() (n int) {
		for sl := range c.slots.All() {
			if sl.Workload.Name == unique("comes-and-goes") {
				n++
			}
		}
		return n
	}
	scrape(t, c)
	if slots() != 1 {
		t.Fatalf("%d slots after the first run, want 1", slots())
	}
	for range 8 { // withdrawn, then idle, then freed
		time.Sleep(attribution.IdleBeforeFree / 4)
		scrape(t, c)
	}
	s := scrape(t, c)
	if slots() != 0 {
		t.Errorf("%d slots after the idle time, want 0", slots())
	}
	if got := sum(s, "teescope_syscalls_total", "workload", unique("comes-and-goes"), "syscall", "getppid"); got != 500 {
		t.Errorf("%v calls remain, want 500", got)
	}
	run(t, job(path, "getppid", "500"))
	if got := sum(scrape(t, c), "teescope_syscalls_total", "workload", unique("comes-and-goes"), "syscall", "getppid"); got != 1000 {
		t.Errorf("after another run %v calls, want 1000", got)
	}
}

func TestTooManyWorkloadsAreFoldedAndNoneIsLost(t *testing.T) {
	c := start(t, Options{MaxWorkloads: 8})
	first := program(t, "many")
	const programs = 40
	for i := range programs {
		path := fmt.Sprintf("%s-%d", first, i)
		if err := os.Link(first, path); err != nil {
			t.Fatal(err)
		}
		run(t, job(path, "getppid", "100"))
	}
	s := scrape(t, c)
	if got := sum(s, "teescope_syscalls_total", "syscall", "getppid"); got < programs*100 {
		t.Errorf("all workloads together made %v getppid calls, want at least %d", got, programs*100)
	}
	if sum(s, "teescope_syscalls_total", "syscall", "getppid", "workload", "other") == 0 {
		t.Error("no workload was folded into other")
	}
	named := 0
	for _, x := range s {
		if k := x.labels["kind"]; x.name == "teescope_workload_info" && (k == "program" || k == "unit" || k == "container") {
			named++
		}
	}
	if named > 8 {
		t.Errorf("%d workloads have names, the maximum is 8", named)
	}
}

func TestReusedProcessIDCountsForItsNewProgram(t *testing.T) {
	c := start(t, Options{})
	first, second := job(program(t, "first-owner"), "getppid", "100"), job(program(t, "second-owner"), "getppid", "7")
	run(t, first)
	pid := first.Process.Pid
	for try := range 50 {
		// The next process of this PID namespace gets the ID after this one (CONFIG_CHECKPOINT_RESTORE).
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0o644); err != nil {
			t.Skipf("this kernel does not allow the choice of process IDs: %v", err)
		}
		run(t, second)
		if second.Process.Pid == pid {
			s := scrape(t, c)
			for name, want := range map[string]float64{"first-owner": 100, "second-owner": 7 * float64(try+1)} {
				if got := sum(s, "teescope_syscalls_total", "workload", unique(name), "syscall", "getppid"); got != want {
					t.Errorf("%s made %v calls, want %v", name, got, want)
				}
			}
			return
		}
		second = job(second.Path, "getppid", "7")
	}
	t.Skip("other processes got the ID in each of 50 tries")
}

func TestWatchedProcessIsBrokenDownAndStaysInItsWorkload(t *testing.T) {
	watched := converse(t, job(program(t, "watch-me"), "on-line", ""))
	rule, err := watch.Parse("comm=" + unique("watch-me"))
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, Options{Watch: []watch.Rule{rule}})
	pid := strconv.Itoa(watched.cmd.Process.Pid)
	before := scrape(t, c)
	watched.say("300")
	after := scrape(t, c)
	for _, tt := range []struct {
		family string
		labels []string
	}{
		{"teescope_syscalls_total", []string{"workload", unique("watch-me"), "syscall", "getppid"}},
		{"teescope_process_syscalls_total", []string{"workload", unique("watch-me"), "pid", pid, "syscall", "getppid"}},
		{"teescope_process_syscall_errors_total", []string{"pid", pid, "syscall", "close", "errno", "EBADF"}},
	} {
		if got := sum(after, tt.family, tt.labels...) - sum(before, tt.family, tt.labels...); got != 300 {
			t.Errorf("%s%v grew by %v, want 300", tt.family, tt.labels, got)
		}
	}
}

// cgroupRoot returns the root of this kernel's cgroups: version 2, or the version 1 hierarchy that names workloads.
func cgroupRoot(t *testing.T) string {
	t.Helper()
	return filepath.Join("/sys/fs/cgroup", cgroup.Naming("/sys/fs/cgroup").Controller())
}

func TestContainersAndUnitsAreTheirCgroups(t *testing.T) {
	c := start(t, Options{})
	id := fmt.Sprintf("%064x", os.Getpid())
	for dir, want := range map[string]string{
		"teescope-test/docker-" + id + ".scope": id[:12],
		unique("unit") + ".service":             unique("unit") + ".service",
	} {
		path := filepath.Join(cgroupRoot(t), dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Skipf("a cgroup cannot be created here: %v", err)
		}
		t.Cleanup(func() { _ = os.Remove(path); _ = os.Remove(filepath.Dir(path)) })
		// The shell moves itself, as a runtime's init does, and then executes programs with two names.
		script := `echo $$ >"$CG/cgroup.procs"; "$A"; exec "$B"`
		cmd := job("/bin/sh", "getppid", "50")
		cmd.Args = append(cmd.Args, "-c", script)
		cmd.Env = append(cmd.Env, "CG="+path, "A="+program(t, "in-a"), "B="+program(t, "in-b"))
		run(t, cmd)
		s := scrape(t, c)
		if got := sum(s, "teescope_syscalls_total", "workload", want, "syscall", "getppid"); got != 100 {
			t.Errorf("%s: %v calls in workload %s, want 100", dir, got, want)
		}
		if got := sum(s, "teescope_syscalls_total", "workload", unique("in-a")); got != 0 {
			t.Errorf("%s: %v calls in the program's own workload", dir, got)
		}
	}
	s := scrape(t, c)
	if got := sum(s, "teescope_workload_info", "container", id[:12], "kind", "container"); got != 1 {
		t.Errorf("%v info metrics name the container, want 1", got)
	}
}

// A name that is not UTF-8 must not invalidate the scrape. Errors must not pass to the next process in the slot.
func TestWatchedProcessWithAHostileNameLeavesNothingBehind(t *testing.T) {
	pid := strconv.Itoa(converse(t, job(program(t, "w\xff"), "on-line", "")).cmd.Process.Pid)
	rule, err := watch.Parse("pid=" + pid)
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, Options{Watch: []watch.Rule{rule}})
	if sum(scrape(t, c), "teescope_process_threads", "pid", pid) == 0 {
		t.Error("the process is not watched")
	}
	for _, slot := range []uint32{slotFirst, slotFirst + 1} {
		if err := c.kernel.callErrors.Put(errorKey{Slot: slot, Call: 3, Error: 9}, uint64(5)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.kernel.deleteErrors(slotFirst); err != nil {
		t.Fatal(err)
	}
	var n uint64
	if c.kernel.callErrors.Lookup(errorKey{Slot: slotFirst, Call: 3, Error: 9}, &n) == nil {
		t.Error("the errors of the slot are still there")
	}
	if c.kernel.callErrors.Lookup(errorKey{Slot: slotFirst + 1, Call: 3, Error: 9}, &n) != nil || n != 5 {
		t.Error("another slot's errors are gone")
	}
}

// File systems handle many pages as one folio. The counts are of pages, as those of the kernel in /proc/vmstat.
func TestPagesOfFoliosAreCounted(t *testing.T) {
	const pages = 64 << 20 / 4096
	dirtied := func() int {
		data, err := os.ReadFile("/proc/vmstat")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(data), "\nnr_dirtied ")
		n, err := strconv.Atoi(rest[:max(0, strings.IndexByte(rest, '\n'))])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	c := start(t, Options{})
	before := dirtied()
	run(t, job(program(t, "writes"), "write-file", filepath.Join(t.TempDir(), "file")))
	if n := dirtied() - before; n < pages {
		t.Skipf("the kernel has dirtied %d pages, so the file system has no page cache", n)
	}
	s := scrape(t, c)
	for _, op := range []string{"insertion", "dirty_page"} {
		got := sum(s, "teescope_page_cache_ops_total", "workload", unique("writes"), "op", op)
		if got < pages || got > 1.01*pages { // directories and metadata are dirtied too
			t.Errorf("%v pages by %s, want %d", got, op, pages)
		}
	}
}

func TestContextSwitchesAddUpToTheKernels(t *testing.T) {
	c := start(t, Options{})
	ctxt := func() float64 {
		data, err := os.ReadFile("/proc/stat")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(data), "\nctxt ")
		line, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.ParseFloat(line, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	type reading struct{ before, counted, after float64 }
	read := func() reading { // the kernel counts on while the collector is read, and much when the machine is busy
		before := ctxt()
		return reading{before: before, counted: sum(scrape(t, c), "teescope_context_switches_total"), after: ctxt()}
	}
	from := read()
	for range 200 {
		run(t, exec.Command("/bin/true"))
	}
	to := read()
	got, least, most := to.counted-from.counted, to.before-from.after, to.after-from.before
	if got < 0.99*least || got > 1.01*most {
		t.Errorf("%v context switches, /proc/stat has %v to %v", got, least, most)
	}
}

func TestCPUTimeOfARunningThread(t *testing.T) {
	c := start(t, Options{})
	cmd := job(program(t, "burner"), "burn", "3s")
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond)
	before := cpuSecondsOf(t, cmd.Process.Pid)
	got := sum(scrape(t, c), "teescope_cpu_seconds_total", "workload", unique("burner"))
	after := cpuSecondsOf(t, cmd.Process.Pid)
	const clockTick, schedulerTick = 0.01, 0.01
	if slack := after/100 + 2*clockTick + schedulerTick; got < before-slack || got > after+slack {
		t.Errorf("%.3f CPU seconds while it runs, /proc/PID/stat had %.2f before and %.2f after", got, before, after)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	got = sum(scrape(t, c), "teescope_cpu_seconds_total", "workload", unique("burner"))
	// wait4 includes the CPU time before exec. The program's own measurement excludes its start.
	least, err := strconv.ParseFloat(strings.TrimSpace(out.String()), 64)
	if err != nil {
		t.Fatal(err)
	}
	most := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if got < least*0.99 || got > most*1.01 {
		t.Errorf("%.4f CPU seconds in the end, want from %.4f to %.4f", got, least, most)
	}
}

// cpuSecondsOf reads utime and stime of /proc/PID/stat, in units of 10 ms (USER_HZ is 100 on x86).
func cpuSecondsOf(t *testing.T, pid int) float64 {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")"):]))
	user, _ := strconv.ParseFloat(fields[12], 64)
	system, _ := strconv.ParseFloat(fields[13], 64)
	return (user + system) / 100
}

func TestResidentMemoryIsTheKernels(t *testing.T) {
	name := ownName(t)
	c := start(t, Options{})
	memory := make([]byte, 64<<20)
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	got := sum(scrape(t, c), "teescope_resident_memory_bytes", "workload", name)
	status, err := os.ReadFile("/proc/self/smaps_rollup") // exact, unlike statm
	if err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(memory)
	_, rest, _ := strings.Cut(string(status), "\nRss:")
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	if want := kib * 1024; math.Abs(got-want) > want/20 {
		t.Errorf("%.1f MiB resident, smaps_rollup reports %.1f", got/(1<<20), want/(1<<20))
	}
}

// ownName gives this process a name that no other process has, such as another run of the same test.
func ownName(t *testing.T) string {
	t.Helper()
	const file = "/proc/self/comm"
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	name := unique("rss")
	if err := os.WriteFile(file, []byte(name), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.WriteFile(file, before, 0) })
	return name
}

func TestProcessesOfAWorkload(t *testing.T) {
	c := start(t, Options{})
	path := program(t, "members")
	var want []int
	for range 3 {
		want = append(want, converse(t, job(path, "on-line", "")).cmd.Process.Pid)
	}
	scrape(t, c)
	got, known := c.Processes(unique("members"))
	slices.Sort(got)
	slices.Sort(want)
	if !known || !slices.Equal(got, want) {
		t.Errorf("the processes are %v (%v), want %v", got, known, want)
	}
	groups := c.Groups(append(want, 1<<30))
	for _, pid := range want {
		if g := groups[pid]; g != groups[want[0]] || g.Slot < slotFirst || g.Calls == 0 || len(groups) != len(want) {
			t.Errorf("the groups are %v, want one that has made system calls", groups)
		}
	}
	if kernel, known := c.Processes("kernel"); !known || !slices.Contains(kernel, 2) { // kthreadd
		t.Errorf("the kernel's processes are %v (%v)", kernel, known)
	}
	if got, known := c.Processes(unique("nobody")); known || got != nil {
		t.Errorf("an unknown workload has the processes %v", got)
	}
}
