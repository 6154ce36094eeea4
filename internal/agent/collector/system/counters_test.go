// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
)

// The kernel maps the generic events to the second-level cache on AMD's processors, and on Hygon's, which are the same.
func TestCacheOfTheProcessor(t *testing.T) {
	for vendor, other := range map[string]bool{"GenuineIntel": false, "AuthenticAMD": true, "HygonGenuine": true, "": false} {
		proc := t.TempDir()
		if err := os.WriteFile(filepath.Join(proc, "cpuinfo"), []byte("processor\t: 0\nvendor_id\t: "+vendor+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := countsOtherCache(hostfs.At(proc)); got != other {
			t.Errorf("%s: %v", vendor, got)
		}
	}
}

// Many machines have no PMU. This test attaches the sampling program to a software event instead: each page fault is one
// sample.
func TestCounterSamplesAreAttributed(t *testing.T) {
	privilegetest.Alone(t)
	k, status, err := faultSampler(t, allCPUs())
	if err != nil {
		t.Fatal(err)
	}
	if status.Mechanism != bpf.PerfEvent {
		t.Errorf("attached by %s", status.Mechanism)
	}
	const pages = 1000
	fault(t, pages)
	misses := uint64(0)
	for i := slotUnknown; i < len(k.rows); i += k.slots {
		misses += k.rows[i].LLCMisses
	}
	if misses < pages {
		t.Errorf("%d samples for %d page faults", misses, pages)
	}
}

// fault makes page faults.
func fault(t *testing.T, pages int) {
	t.Helper()
	memory, err := unix.Mmap(-1, 0, pages*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	_ = unix.Madvise(memory, unix.MADV_NOHUGEPAGE)
	for i := range pages {
		memory[i*os.Getpagesize()] = 1
	}
}

// A CPU that is off line at the start is counted from when it comes on line, until it goes. The list of CPUs is made up, and the event is
// a page fault: no machine needs a PMU or a CPU that can be switched off.
func TestACPUThatComesLaterIsCounted(t *testing.T) {
	privilegetest.Alone(t)
	if runtime.NumCPU() < 2 {
		t.Skip("this machine has one CPU")
	}
	sys := t.TempDir()
	online := func(list string) {
		t.Helper()
		dir := filepath.Join(sys, "devices/system/cpu")
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "online"), []byte(list+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	k, status, err := faultSampler(t, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	k.sys, k.status = hostfs.At(sys), []bpf.Status{status}
	runtime.LockOSThread() // the thread ends with the test
	var first unix.CPUSet
	first.Set(0)
	if err := unix.SchedSetaffinity(0, &first); err != nil {
		t.Fatal(err)
	}
	const pages = 1000
	ofFirst := func() uint64 { return k.rows[slotUnknown].LLCMisses }
	for _, tt := range []struct {
		list    string
		counted bool
	}{{"1", false}, {"0-1", true}, {"1", false}, {"0-1", true}} {
		online(tt.list)
		k.followCPUs()
		before := ofFirst()
		fault(t, pages)
		if n := ofFirst() - before; (n >= pages) != tt.counted || !tt.counted && n != 0 {
			t.Errorf("%d samples of CPU 0 for %d page faults, with the CPUs %s on line", n, pages, tt.list)
		}
		if s := k.status[0]; s.Mechanism != bpf.PerfEvent || s.Reason != "" {
			t.Errorf("with the CPUs %s on line the status is %+v", tt.list, s)
		}
	}
}

func allCPUs() []int {
	cpus := make([]int, runtime.NumCPU())
	for i := range cpus {
		cpus[i] = i
	}
	return cpus
}

// faultSampler attaches the sampling program of a separate object to page faults on some CPUs. Each fault is a sample.
func faultSampler(t *testing.T, cpus []int) (*kernelSide, bpf.Status, error) {
	obj, err := bpf.Open(object)
	if err != nil {
		return nil, bpf.Status{}, err
	}
	t.Cleanup(func() { _ = obj.Close() })
	k := &kernelSide{object: obj, slots: slotFirst, controls: make([]control, 1)}
	err = errors.Join(
		k.size(Options{}, sizes{cpus: runtime.NumCPU(), slots: slotFirst, pids: 4096}),
		obj.SetConstant("sample_period", uint64(1)),
		obj.CreateMaps(),
		k.mapArrays())
	if err != nil {
		return nil, bpf.Status{}, err
	}
	status, err := obj.AttachCounter("test", "llc_misses",
		bpf.Counter{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_PAGE_FAULTS, Period: 1}, cpus)
	return k, status, err
}
