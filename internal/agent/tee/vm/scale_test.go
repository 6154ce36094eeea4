// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// many is a host with virtual machines that run, each with a directory in debugfs.
func many(t testing.TB, n int) (*machines, hostfs.Root) {
	t.Helper()
	m, _, root := fake(t)
	for i := 1; i <= n; i++ {
		pid := 1000 + i
		process(t, root, pid, 100, "/", fmt.Sprintf("/firecracker --id vm-%d", i))
		dir := filepath.Join(root, "sys/kernel/debug/kvm", fmt.Sprintf("%d-11", pid))
		for _, d := range []string{filepath.Join(root, fmt.Sprint(pid), "task", fmt.Sprint(pid)), dir} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range newFamilies().statistics() {
			if err := os.WriteFile(filepath.Join(dir, s.file), []byte("7\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		m.kernel.vms[i] = record{Start: uint64(time.Second), TGID: uint32(pid), Ready: 1, Isa: 2}
	}
	return m, hostfs.At(filepath.Join(root, "sys"))
}

// scrape does what the backend does at each scrape.
func scrape(t testing.TB, m *machines, sys hostfs.Root, f *families) (series int) {
	t.Helper()
	emit := func(prometheus.Metric) { series++ }
	if err := m.refresh(time.Now()); err != nil {
		t.Fatal(err)
	}
	m.emit(f, emit)
	m.emitStatistics(f, sys, emit)
	return series
}

// 64 virtual machines have exactly 64 times the series of one.
func TestSeriesOfManyMachines(t *testing.T) {
	one, sys := many(t, 1)
	each := scrape(t, one, sys, newFamilies())
	m, sys := many(t, 64)
	if n := scrape(t, m, sys, newFamilies()); n != 64*each || each < 40 || each > 60 {
		t.Errorf("64 virtual machines have %d series, one has %d", n, each)
	}
}

// The figure of docs/user/vms.md.
func BenchmarkScrapeOf64Machines(b *testing.B) {
	m, sys := many(b, 64)
	f := newFamilies()
	scrape(b, m, sys, f)
	b.ReportAllocs()
	before, n := cpuTime(b), 0
	for b.Loop() {
		scrape(b, m, sys, f)
		n++
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(n), "cpu-ns/op") // the time on the clock includes other programs
}

// cpuTime returns the CPU time of this process.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
