// SPDX-License-Identifier: Apache-2.0

package container

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/waittest"
)

const cgroups = "/sys/fs/cgroup"

// parents creates one group of this test in each hierarchy of this machine. The end of the test removes them.
func parents(t testing.TB) []string {
	t.Helper()
	if _, err := cgroup.Open(cgroups); err != nil {
		t.Skip(err)
	}
	hierarchies := []string{cgroups}
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers")); err != nil {
		hierarchies, err = filepath.Glob(cgroups + "/*")
		if err != nil {
			t.Fatal(err)
		}
	}
	var all []string
	for _, h := range hierarchies {
		if info, err := os.Lstat(h); err != nil || !info.IsDir() {
			continue // "cpu" is a link to "cpu,cpuacct" on some machines
		}
		dir := filepath.Join(h, fmt.Sprintf("teescope-test-%d", os.Getpid()))
		if err := os.Mkdir(dir, 0o755); errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS) {
			t.Skipf("making control groups: %v", err)
		} else if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, dir) })
		all = append(all, dir)
		for _, controller := range []string{"+cpu", "+memory", "+io", "+pids", "+misc"} { // version 2; not every machine has all
			_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(controller), 0o644)
		}
	}
	return all
}

// groups creates a container's group in each hierarchy, and returns a function that removes it.
func groups(t testing.TB, parents []string, n int) func() {
	t.Helper()
	for _, p := range parents {
		if err := os.Mkdir(filepath.Join(p, "docker-"+id(n)+".scope"), 0o755); err != nil {
			t.Error(err)
		}
	}
	return func() {
		for _, p := range parents {
			remove(t, filepath.Join(p, "docker-"+id(n)+".scope"))
		}
	}
}

func remove(t testing.TB, dir string) {
	t.Helper()
	if err := unix.Rmdir(dir); err != nil {
		t.Errorf("removing %s: %v", dir, err)
	}
}

func machine() *Collector {
	return New(Options{Proc: "/proc", Sys: "/sys", Cgroup: cgroups})
}

// Hundreds of real groups are created and removed while they are read. There is no error, every family is complete,
// and no state of removed groups remains.
func TestShortLivedGroupsOfTheKernel(t *testing.T) {
	all := parents(t)
	c := machine()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range 500 {
			defer groups(t, all, n)()
			if n%10 == 9 {
				groups(t, all, 1000+n)() // created and removed at once
			}
		}
	}()
	seen := 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			exposition(t, c)
			seen = max(seen, len(c.known))
		}
	}
	exposition(t, c)
	for path := range c.known {
		if filepath.Base(filepath.Dir(path)) == filepath.Base(all[0]) {
			t.Errorf("%s was removed but is still known", path)
		}
	}
	t.Logf("at most %d containers at once", seen)
}

// limits holds the values that a runtime writes for 0.2 CPUs, 32 MB and 50 threads.
var limits = map[string]string{
	"cpu.max": "20000 100000", "memory.max": "33554432", "pids.max": "50",
	"cpu.cfs_quota_us": "20000", "memory.limit_in_bytes": "33554432",
}

// A program runs in a group with limits. No runtime creates the group, so this test runs on every hierarchy.
func TestLimitedGroupOfTheKernel(t *testing.T) {
	first := float64(time.Now().Unix())
	all := parents(t)
	t.Cleanup(groups(t, all, 0))
	// The program waits until it is in its group, because memory is charged to the group at the time of the allocation.
	burner := exec.Command("sh", "-c", "read line; exec sh -c 'while :; do :; done'")
	in, err := burner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := burner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = burner.Process.Kill(); _ = burner.Wait() })
	set := map[string]bool{}
	for _, p := range all {
		dir := filepath.Join(p, "docker-"+id(0)+".scope")
		for name, text := range limits {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			set[name] = true
		}
		err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, burner.Process.Pid), 0o644)
		if err != nil && !errors.Is(err, unix.ENOSPC) { // version 1's cpuset needs its CPUs first
			t.Fatal(err)
		}
	}
	fmt.Fprintln(in)
	c := machine()
	me := fmt.Sprintf(`container="%.12s"`, id(0))
	began := time.Now()
	before := exposition(t, c)
	after := before
	grew := func(family string) float64 { return number(t, after, family, me) - number(t, before, family, me) }
	want := map[string]float64{"container_processes": 1}
	if set["cpu.max"] || set["cpu.cfs_quota_us"] {
		want["container_spec_cpu_quota"], want["container_spec_cpu_period"] = 20_000, 100_000
		// On a busy machine the program may get less than its quota for a while, and is not throttled then.
		waittest.Until(t, "the program to be throttled", func() bool {
			after = exposition(t, c)
			return grew("container_cpu_cfs_throttled_periods_total") > 0 && grew("container_cpu_cfs_throttled_seconds_total") > 0 && grew("container_cpu_usage_seconds_total") >= 0.1
		})
		// A fifth of a CPU, and one quota on each CPU from the time before.
		if used, most := grew("container_cpu_usage_seconds_total"), 0.2*time.Since(began).Seconds()+0.02*float64(1+runtime.NumCPU()); used > most {
			t.Errorf("%v s of CPU, at most %v s with a fifth of a CPU", used, most)
		}
		if n, throttled := grew("container_cpu_cfs_periods_total"), grew("container_cpu_cfs_throttled_periods_total"); n < throttled {
			t.Errorf("%v periods, of which %v were throttled", n, throttled)
		}
	}
	if set["memory.max"] || set["memory.limit_in_bytes"] {
		want["container_spec_memory_limit_bytes"] = 32 << 20
		if got := number(t, after, "container_memory_usage_bytes", me); got <= 0 || got > 32<<20 {
			t.Errorf("a shell uses %v bytes", got)
		}
	}
	if set["pids.max"] {
		want["container_threads"], want["container_threads_max"] = 1, 50
	}
	for family, want := range want {
		if got := number(t, after, family, me); got != want {
			t.Errorf("%s is %v, want %v", family, got, want)
		}
	}
	if got, now := number(t, after, "container_start_time_seconds", me), float64(time.Now().Unix()); got < first-2 || got > now+2 {
		t.Errorf("started at %v, the test began at %v and now it is %v", got, first, now)
	}
	t.Logf("limits set: %v", set)
}

// BenchmarkCollectKernel reads 200 groups of the kernel, in which no process runs.
func BenchmarkCollectKernel(b *testing.B) {
	all := parents(b)
	for n := range 200 {
		defer groups(b, all, n)()
	}
	benchmark(b, machine())
}

// benchmark measures one collection, also by its CPU time, because other load extends the elapsed time.
func benchmark(b *testing.B, c *Collector) {
	b.Helper()
	samples := 0
	b.ReportAllocs()
	before := cpuOfProcess()
	for b.Loop() {
		samples = 0
		if err := c.Collect(b.Context(), func(prometheus.Metric) { samples++ }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuOfProcess()-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(samples), "samples/op")
}

func cpuOfProcess() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now)
	return time.Duration(now.Nano())
}
