// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
)

func open(t *testing.T, root string) *FS {
	t.Helper()
	f, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func paths(t *testing.T, f *FS) []string {
	t.Helper()
	var all []string
	if err := f.Walk(func(g Group) { all = append(all, g.Path) }); err != nil {
		t.Fatal(err)
	}
	return all
}

// get formats a number, or "-" when it is unknown.
func get(s *Stats, n Stat) string {
	if v, ok := s.Get(n); ok {
		return fmt.Sprint(v)
	}
	return "-"
}

func TestVersion2(t *testing.T) {
	f := open(t, hostfstest.Tree(t, map[string]string{
		"cgroup.controllers": "cpu io memory pids misc\n", "cgroup.procs": "1\n",
		"b.slice/c/cpu.stat":            "usage_usec 30\nuser_usec 20\nsystem_usec 10\nnr_periods 4\nnr_throttled 3\nthrottled_usec 2\n",
		"b.slice/c/cpu.max":             "50000 100000\n",
		"b.slice/c/cpu.weight":          "100\n",
		"b.slice/c/memory.current":      "1000\n",
		"b.slice/c/memory.stat":         "anon 600\nfile 300\nfile_mapped 50\ninactive_file 100\npgfault 7\npgmajfault 1\n",
		"b.slice/c/memory.max":          "max\n",
		"b.slice/c/memory.events":       "low 0\nhigh 0\nmax 5\noom 1\noom_kill 1\n",
		"b.slice/c/memory.swap.current": "0\n",
		"b.slice/c/io.stat":             "8:0 rbytes=1 wbytes=2 rios=3 wios=4\n",
		"b.slice/c/pids.current":        "3\n",
		"b.slice/c/pids.max":            "max\n",
		"b.slice/c/cpu.pressure":        "some avg10=0.00 avg60=0.00 avg300=0.00 total=8\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=6\n",
		"b.slice/c/misc.current":        "sgx_epc 4096\nsev 1\n",
		"b.slice/c/misc.max":            "sgx_epc 8192\nsev max\n",
		"b.slice/c/misc.events":         "sgx_epc.max 2\n",
		"b.slice/c/cgroup.procs":        "10\n11\n",
		"a.slice/memory.current":        "5\n",
	}))
	if got, want := paths(t, f), []string{"/a.slice", "/b.slice", "/b.slice/c"}; !slices.Equal(got, want) {
		t.Errorf("the groups are %v, want %v", got, want)
	}
	var s Stats
	if !f.Stats("/b.slice/c", &s) {
		t.Fatal("the group is missing")
	}
	for n, want := range map[Stat]string{
		CPUUsage: "30000", CPUUser: "20000", CPUSystem: "10000", Periods: "4", ThrottledPeriods: "3", ThrottledTime: "2000",
		CPUQuota: "50000", CPUPeriod: "100000", CPUShares: "2597", MemoryUsage: "1000", MemoryLimit: "0", MemoryLimitHits: "5",
		MemoryPeak: "-", RSS: "600", Cache: "300", MappedFile: "50", InactiveFile: "100", Swap: "0", PageFaults: "7", MajorPageFaults: "1",
		OOMKills: "1", Threads: "3", ThreadsLimit: "0", CPUSome: "8000", CPUFull: "6000", IOSome: "-",
	} {
		if got := get(&s, n); got != want {
			t.Errorf("number %d is %s, want %s", n, got, want)
		}
	}
	if got, ok := s.WorkingSet(); got != 900 || !ok {
		t.Errorf("the working set is %d, want 900", got)
	}
	if got, want := fmt.Sprint(s.Devices, s.MiscUsage, s.MiscLimit, s.MiscHits), "[{8 0 1 2 3 4}] [{sgx_epc 4096} {sev 1}] [{sgx_epc 8192}] [{sgx_epc 2}]"; got != want {
		t.Errorf("devices and resources are %s, want %s", got, want)
	}
	if got, want := f.AppendProcs(nil, "/b.slice/c"), []int{10, 11}; !slices.Equal(got, want) {
		t.Errorf("the processes are %v, want %v", got, want)
	}
	if !f.Stats("/a.slice", &s) || get(&s, CPUUsage) != "-" || len(s.Devices)+len(s.MiscUsage) != 0 {
		t.Errorf("a group without controllers has numbers of the one before: %+v", s)
	}
	if f.Stats("/gone", &s) || f.AppendProcs(nil, "/gone") != nil {
		t.Error("a missing group has numbers")
	}
}

func version1() map[string]string {
	return map[string]string{
		"cpu,cpuacct/cgroup.procs": "1\n", "memory/cgroup.procs": "1\n", "blkio/cgroup.procs": "1\n", "pids/cgroup.procs": "1\n",
		"cpu,cpuacct/docker/c/cpuacct.usage":                       "30000\n",
		"cpu,cpuacct/docker/c/cpuacct.stat":                        "user 2\nsystem 1\n",
		"cpu,cpuacct/docker/c/cpu.stat":                            "nr_periods 4\nnr_throttled 3\nthrottled_time 2000\n",
		"cpu,cpuacct/docker/c/cpu.cfs_quota_us":                    "-1\n",
		"cpu,cpuacct/docker/c/cpu.cfs_period_us":                   "100000\n",
		"cpu,cpuacct/docker/c/cpu.shares":                          "1024\n",
		"memory/docker/c/memory.usage_in_bytes":                    "50\n",
		"memory/docker/c/memory.max_usage_in_bytes":                "60\n",
		"memory/docker/c/memory.limit_in_bytes":                    "9223372036854771712\n",
		"memory/docker/c/memory.failcnt":                           "2\n",
		"memory/docker/c/memory.stat":                              "rss 1\ntotal_rss 40\ntotal_cache 30\ntotal_inactive_file 80\ntotal_pgfault 9\n",
		"memory/docker/c/memory.oom_control":                       "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
		"blkio/docker/c/blkio.throttle.io_service_bytes":           "8:0 Read 1\n",
		"blkio/docker/c/blkio.throttle.io_serviced":                "8:0 Read 3\n8:0 Write 4\n8:0 Total 7\nTotal 7\n",
		"blkio/docker/c/blkio.throttle.io_service_bytes_recursive": "8:0 Read 10\n8:0 Write 20\nTotal 30\n",
		"pids/docker/c/pids.current":                               "3\n",
		"pids/docker/c/pids.max":                                   "100\n",
		"pids/docker/c/cgroup.procs":                               "10\n",
	}
}

func TestVersion1(t *testing.T) {
	f := open(t, hostfstest.Tree(t, version1()))
	if got, want := paths(t, f), []string{"/docker", "/docker/c"}; !slices.Equal(got, want) {
		t.Errorf("the groups are %v, want %v", got, want)
	}
	var s Stats
	if !f.Stats("/docker/c", &s) {
		t.Fatal("the group is missing")
	}
	for n, want := range map[Stat]string{
		CPUUsage: "30000", CPUUser: "20000000", CPUSystem: "10000000", Periods: "4", ThrottledPeriods: "3", ThrottledTime: "2000",
		CPUQuota: "-", CPUPeriod: "100000", CPUShares: "1024", MemoryUsage: "50", MemoryPeak: "60", MemoryLimit: "0", MemoryLimitHits: "2",
		RSS: "40", Cache: "30", InactiveFile: "80", MappedFile: "-", Swap: "-", PageFaults: "9", OOMKills: "1", Threads: "3", ThreadsLimit: "100",
		CPUSome: "-",
	} {
		if got := get(&s, n); got != want {
			t.Errorf("number %d is %s, want %s", n, got, want)
		}
	}
	if got, ok := s.WorkingSet(); got != 0 || !ok {
		t.Errorf("a working set below nothing is %d", got)
	}
	if got, want := fmt.Sprint(s.Devices), "[{8 0 10 20 3 4}]"; got != want {
		t.Errorf("the devices are %s, want %s", got, want)
	}
	if got, want := f.AppendProcs(nil, "/docker/c"), []int{10}; !slices.Equal(got, want) {
		t.Errorf("the processes are %v, want %v", got, want)
	}
}

// On a hybrid machine each number comes from the version that has its controller.
func TestHybrid(t *testing.T) {
	files := version1()
	for path, text := range map[string]string{
		"cgroup.controllers": "misc\n", "cgroup.procs": "1\n",
		"docker/c/cpu.stat":        "usage_usec 777\n",
		"docker/c/memory.current":  "777\n",
		"docker/c/memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n",
		"docker/c/misc.current":    "sgx_epc 1\n",
		"only.v2/memory.current":   "1\n",
	} {
		files["unified/"+path] = text
	}
	f := open(t, hostfstest.Tree(t, files))
	if got, want := paths(t, f), []string{"/docker", "/docker/c"}; !slices.Equal(got, want) {
		t.Errorf("the groups are %v, want %v", got, want)
	}
	var s Stats
	f.Stats("/docker/c", &s)
	for n, want := range map[Stat]string{CPUUsage: "30000", MemoryUsage: "50", MemorySome: "5000", CPUSome: "-"} {
		if got := get(&s, n); got != want {
			t.Errorf("number %d is %s, want %s", n, got, want)
		}
	}
	if len(s.MiscUsage) != 1 {
		t.Errorf("the misc resources are %v", s.MiscUsage)
	}
}

func TestNothingMounted(t *testing.T) {
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNone) {
		t.Errorf("Open of an empty directory: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("Open of a missing directory gives no error")
	}
}

func TestWalkIsBounded(t *testing.T) {
	files := map[string]string{"cgroup.controllers": ""}
	for i := range 20 {
		files[fmt.Sprintf("g%d/h/cgroup.procs", i)] = ""
	}
	f := open(t, hostfstest.Tree(t, files))
	f.limit = 10
	n := 0
	if err := f.Walk(func(Group) { n++ }); !errors.Is(err, errTooMany) || n != 10 {
		t.Errorf("after %d groups: %v", n, err)
	}
}

func TestReadIsBounded(t *testing.T) {
	f := open(t, hostfstest.Tree(t, map[string]string{
		"cgroup.controllers": "", "g/cgroup.procs": strings.Repeat("1234567\n", maxFile/4),
	}))
	if got := len(f.AppendProcs(nil, "/g")); got != maxFile/8 {
		t.Errorf("%d processes are read, want %d", got, maxFile/8)
	}
}

// On this machine every group of a walk can be read, and this process is in one of them.
func TestRealMachine(t *testing.T) {
	f, err := Open("/sys/fs/cgroup")
	if err != nil {
		t.Skip(err)
	}
	var s Stats
	known := map[Stat]bool{}
	var pids []int
	for _, path := range append(paths(t, f), "") {
		f.Stats(path, &s)
		for n := range numStats {
			if _, ok := s.Get(n); ok {
				known[n] = true
			}
		}
		pids = f.AppendProcs(pids, path)
	}
	if !slices.Contains(pids, os.Getpid()) {
		t.Errorf("this process is in no group; %d processes are", len(pids))
	}
	if !known[CPUUsage] {
		t.Errorf("no group has CPU time; known are %v", known)
	}
}
