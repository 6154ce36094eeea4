// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// procStat reads one counter of /proc/stat.
func procStat(t *testing.T, key string) float64 {
	t.Helper()
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == key {
			n, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("/proc/stat has no %s", key)
	return 0
}

// bracket holds the values of a kernel counter before and after a scrape.
type bracket struct{ before, after float64 }

// bracketed scrapes between two readings of a kernel counter.
func bracketed(t *testing.T, a *teescope, key string) (samples, bracket) {
	t.Helper()
	var s samples
	var around bracket
	eventually(t, testLimit, "a scrape in which no collector fails", func() error {
		around.before = procStat(t, key)
		s = a.scrape(t)
		around.after = procStat(t, key)
		return s.failed()
	})
	return s, around
}

// precise reports whether the growth between two brackets is known to a fifth, so that an error of a half or a double always
// shows.
func precise(from, to bracket) bool {
	least, most := to.before-from.after, to.after-from.before
	return most-least <= most/5
}

// wantGrowth requires that a count grew as the kernel's did between two scrapes, except for a share. Events during a
// scrape may count on either side, so other load does not fail the test.
func wantGrowth(t *testing.T, what string, got float64, from, to bracket, share float64) {
	t.Helper()
	least, most := to.before-from.after, to.after-from.before
	if !precise(from, to) {
		t.Errorf("%s: the kernel's growth is between %v and %v, which is too imprecise", what, least, most)
	}
	wantBetween(t, what, got, least*(1-share), most*(1+share))
}

// around scrapes before and after some work. It repeats both while so much else happens on the machine during a scrape that the
// kernel's growth is not precise.
func around(t *testing.T, a *teescope, key string, work func()) (before, after samples, from, to bracket) {
	t.Helper()
	for range 20 {
		before, from = bracketed(t, a, key)
		work()
		if after, to = bracketed(t, a, key); precise(from, to) {
			break
		}
	}
	return before, after, from, to
}

// Every switch of the machine belongs to exactly one workload, including the idle task.
func TestContextSwitchesAddUpToTheKernels(t *testing.T) {
	a := agent(t)
	pingpong := prog(t, "pingpong", "e2epingpong")
	var out string
	before, after, ctxtBefore, ctxtAfter := around(t, a, "ctxt", func() { out = run(t, pingpong, "200000") })

	const family = "teescope_context_switches_total"
	wantGrowth(t, "switches of all workloads against /proc/stat ctxt", delta(before, after, family), ctxtBefore, ctxtAfter, 0.01)
	// The program's own count: two switches per round trip, whose kind depends on the scheduler.
	var voluntary, involuntary float64
	if _, err := fmt.Sscan(out, &voluntary, &involuntary); err != nil {
		t.Fatal(err)
	}
	own := func(kind string) float64 {
		return delta(before, after, family, "workload", "e2epingpong", "kind", kind)
	}
	wantBetween(t, "switches by getrusage", voluntary+involuntary, 400_000, 500_000)
	wantWithin(t, "voluntary switches against getrusage", own("voluntary"), voluntary, 0.01, 0)
	wantWithin(t, "involuntary switches against getrusage", own("involuntary"), involuntary, 0.01, 20)
}

// /proc/stat counts every clone, processes and threads alike.
func TestForksAddUpToTheKernels(t *testing.T) {
	a := agent(t)
	storm := prog(t, "storm", "e2eforks")
	before, after, kernelBefore, kernelAfter := around(t, a, "processes", func() { run(t, storm, "2000", "1", "4") })

	started := delta(before, after, "teescope_forks_total") + delta(before, after, "teescope_thread_starts_total")
	wantGrowth(t, "forks and thread starts against /proc/stat processes", started, kernelBefore, kernelAfter, 0.01)
}

func TestPageFaultsAgreeWithGetrusage(t *testing.T) {
	a := agent(t)
	const pages = 20000
	out := run(t, prog(t, "faults", "e2efaults"), strconv.Itoa(pages))
	var minor, major float64
	if _, err := fmt.Sscan(out, &minor, &major); err != nil {
		t.Fatal(err)
	}
	s := a.scrape(t)
	const faults = "teescope_page_faults_total"
	own := []string{"workload", "e2efaults"}
	with := func(pairs ...string) []string { return append(pairs, own...) }

	wantWithin(t, "faults of both modes against getrusage", s.sum(faults, own...), minor+major, 0.01, 0)
	wantWithin(t, "handled faults against getrusage", s.sum("teescope_page_faults_handled_total", own...), minor+major, 0.01, 0)
	// The program's loops, one after the other.
	wantWithin(t, "faults in kernel mode", s.sum(faults, with("mode", "kernel")...), pages, 0.01, 0)
	wantWithin(t, "faults in user mode", s.sum(faults, with("mode", "user")...), 5*pages, 0.01, 0)
	wantWithin(t, "faults on pages not there", s.sum(faults, with("reason", "no_page_found")...)+s.sum(faults, with("reason", "write_fault")...), 3*pages, 0.01, 0)
	wantWithin(t, "writes to protected pages", s.sum(faults, with("reason", "write_prot_fault")...), 3*pages, 0.01, 0)
}

func TestCPUSecondsAgreeWithProcStat(t *testing.T) {
	a := agent(t)
	for _, c := range []struct {
		name, user, system string
	}{
		{"e2eburnuser", "5000", "0"},
		{"e2eburnboth", "3000", "3000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(prog(t, "burn", c.name), c.user, c.system)
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer stdin.Close()
			if _, err := stdout.Read(make([]byte, 5)); err != nil { // "done": from now on it sleeps
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)

			user, system := cpuTicks(t, cmd.Process.Pid)
			const tick = 0.01 // USER_HZ is 100 on x86
			s := a.scrape(t)
			const family = "teescope_cpu_seconds_total"
			wantWithin(t, "CPU seconds of both modes", s.sum(family, "workload", c.name), float64(user+system)*tick, 0.01, 2*tick)
			wantWithin(t, "user CPU seconds", s.sum(family, "workload", c.name, "mode", "user"), float64(user)*tick, 0.01, 2*tick)
			wantWithin(t, "system CPU seconds", s.sum(family, "workload", c.name, "mode", "system"), float64(system)*tick, 0.01, 2*tick)
		})
	}
}

// cpuTicks reads utime and stime of /proc/PID/stat.
func cpuTicks(t *testing.T, pid int) (user, system int) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	// The name is in parentheses and may contain any character; utime is the 14th field.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	user, err = strconv.Atoi(fields[11])
	if err == nil {
		system, err = strconv.Atoi(fields[12])
	}
	if err != nil {
		t.Fatal(err)
	}
	return user, system
}
