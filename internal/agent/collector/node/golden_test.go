// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/metric/metrictest"
)

var update = flag.Bool("update", false, "write the golden file again")

// fakeKernel answers system calls for the machine in testdata.
func fakeKernel() kernel {
	return kernel{
		now: func() time.Time { return time.Unix(1700000123, 250e6).In(time.FixedZone("CET", 3600)) },
		uname: func(u *unix.Utsname) error {
			copy(u.Sysname[:], "Linux")
			copy(u.Release[:], "6.1.0-42-amd64")
			copy(u.Version[:], "#1 SMP")
			copy(u.Machine[:], "x86_64")
			copy(u.Nodename[:], "machine\xff")
			copy(u.Domainname[:], "(none)")
			return nil
		},
		adjtimex: func(t *unix.Timex) (int, error) {
			*t = unix.Timex{Offset: 2500, Freq: 65536, Maxerror: 16e6, Esterror: 3, Status: staNano, Constant: 2, Tick: 10000, Tai: 37}
			return timeError, nil
		},
		statfs: func(path string, s *unix.Statfs_t) error {
			if filepath.Base(path) == "broken" {
				return unix.EIO
			}
			*s = unix.Statfs_t{Bsize: 4096, Blocks: 1000, Bfree: 500, Bavail: 400, Files: 200, Ffree: 100}
			return nil
		},
	}
}

// roots returns the roots of the fake machine. It writes the files of udev, because their names contain colons.
func roots(t testing.TB) Options {
	t.Helper()
	root := t.TempDir()
	for name, properties := range map[string]string{
		"b8:0": "S:disk/by-id/x\nE:ID_ATA=1\nE:ID_ATA_WRITE_CACHE=1\nE:ID_ATA_WRITE_CACHE_ENABLED=0\nE:ID_ATA_ROTATION_RATE_RPM=7200\n" +
			"E:ID_MODEL=Disk_1\nE:ID_SERIAL=Disk_1_S42\nE:ID_SERIAL_SHORT=S42\nE:ID_WWN=0x5000\nE:ID_PATH=pci-0\nE:ID_REVISION=A1\n",
		"b253:0": "E:DM_NAME=vg-root\nE:DM_UUID=LVM-1\nE:DM_VG_NAME=vg\nE:DM_LV_NAME=root\nE:ID_FS_TYPE=ext4\nE:ID_FS_USAGE=filesystem\nE:ID_FS_UUID=u1\nE:ID_FS_VERSION=1.0\n",
	} {
		hostfstest.Write(t, root, "run/udev/data/"+name, properties)
	}
	return Options{Proc: "testdata/proc", Sys: "testdata/sys", RootFS: root}
}

type unchecked func(chan<- prometheus.Metric)

func (unchecked) Describe(chan<- *prometheus.Desc)      {}
func (u unchecked) Collect(ch chan<- prometheus.Metric) { u(ch) }

// gather runs the collector once. The registry reports a duplicate series.
func gather(t testing.TB, c *Collector) (map[string]*dto.MetricFamily, error) {
	t.Helper()
	var collectErr error
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(unchecked(func(ch chan<- prometheus.Metric) {
		collectErr = c.Collect(t.Context(), func(m prometheus.Metric) { ch <- m })
	}))
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	families := map[string]*dto.MetricFamily{}
	for _, f := range gathered {
		families[f.GetName()] = f
	}
	return families, collectErr
}

func TestExposition(t *testing.T) {
	const golden = "testdata/exposition.golden"
	families, err := gather(t, newCollector(roots(t), fakeKernel()))
	if err != nil {
		t.Fatal(err)
	}
	delete(families, "node_scrape_collector_duration_seconds")
	var out bytes.Buffer
	for _, name := range sortedKeys(families) {
		if _, err := expfmt.MetricFamilyToText(&out, families[name]); err != nil {
			t.Fatal(err)
		}
	}
	got := out.Bytes()
	metrictest.Golden(t, golden, got, *update, "'camelCase'", "node_entropy_")
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Every emitted family is described, with its type and labels. Only a kernel that is newer than the lists of fields
// can add families.
func TestEverythingIsDescribed(t *testing.T) {
	c := newCollector(roots(t), fakeKernel())
	described := map[string]*metric.Desc{}
	for _, d := range c.Describe() {
		if described[d.Name] != nil {
			t.Errorf("%s is described twice", d.Name)
		}
		described[d.Name] = d
		if !strings.HasPrefix(d.Name, "node_") || !strings.HasSuffix(d.Help, ".") {
			t.Errorf("%s: %q", d.Name, d.Help)
		}
		if (d.Kind == metric.Counter) != strings.HasSuffix(d.Name, "_total") || d.Kind == metric.Counter && d.Unit == "" {
			t.Errorf("%s is a %s of %q", d.Name, d.Kind, d.Unit)
		}
	}
	families, err := gather(t, c)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range families {
		d := described[name]
		if d == nil {
			if name != "node_memory_FromTheFuture_bytes" && name != "node_vmstat_pgmajfault_new" {
				t.Errorf("%s is not described", name)
			}
			continue
		}
		if kind := strings.ToLower(f.GetType().String()); kind != d.Kind.String() {
			t.Errorf("%s is a %s but is described as a %s", name, kind, d.Kind)
		}
	}
}

// lose makes a copy of the fake roots in which one file cannot be read: it is a directory.
func lose(t *testing.T, o Options, file string) Options {
	t.Helper()
	o = copyOf(t, o)
	path := filepath.Join(filepath.Dir(o.Proc), file)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return o
}

// copyOf makes a copy of the fake roots.
func copyOf(t *testing.T, o Options) Options {
	t.Helper()
	top := t.TempDir()
	if err := os.CopyFS(top, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	o.Proc, o.Sys = filepath.Join(top, "proc"), filepath.Join(top, "sys")
	return o
}

// Each file of /proc is made unreadable in turn. Only the part that reads it is missing then.
func TestOneFileCostsOnlyItsPart(t *testing.T) {
	o := roots(t)
	whole, err := gather(t, newCollector(o, fakeKernel()))
	if err != nil {
		t.Fatal(err)
	}
	for file, prefixes := range map[string][]string{
		"proc/stat":                             {"node_cpu_seconds", "node_cpu_guest", "node_intr", "node_context", "node_forks", "node_boot", "node_procs"},
		"proc/loadavg":                          {"node_load"},
		"proc/meminfo":                          {"node_memory_"},
		"proc/vmstat":                           {"node_vmstat_"},
		"proc/pressure/io":                      {"node_pressure_io_"},
		"proc/schedstat":                        {"node_schedstat_"},
		"proc/diskstats":                        {"node_disk_"},
		"proc/net/dev":                          {"node_network_"},
		"proc/net/snmp":                         {"node_netstat_Tcp_", "node_netstat_Udp_", "node_netstat_Icmp_", "node_netstat_Ip_"},
		"proc/net/snmp6":                        {"node_netstat_Icmp6_", "node_netstat_Ip6_", "node_netstat_Udp6_"},
		"proc/net/sockstat6":                    {"node_sockstat_TCP6_", "node_sockstat_UDP6_", "node_sockstat_FRAG6_"},
		"proc/net/softnet_stat":                 {"node_softnet_"},
		"proc/net/arp":                          {"node_arp_"},
		"proc/sys/fs/file-nr":                   {"node_filefd_"},
		"proc/1/mountinfo":                      {"node_filesystem_"},
		"sys/devices/system/node/node1/meminfo": {"node_memory_numa_"},
		"sys/devices/system/clocksource/clocksource0/current_clocksource": {"node_time_clocksource"},
		"proc/sys/kernel/random/entropy_avail":                            {"node_entropy_available"},
	} {
		t.Run(file, func(t *testing.T) {
			got, err := gather(t, newCollector(lose(t, o, file), fakeKernel()))
			if err == nil {
				t.Error("no error")
			}
			for name := range whole {
				mine := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
				if got[name] == nil && !mine {
					t.Errorf("%s is lost too (%v)", name, err)
				}
			}
		})
	}
}

// On roots that do not exist there is no panic, and the parts that read no files still work.
func TestNothingAtAll(t *testing.T) {
	families, err := gather(t, newCollector(Options{Proc: "testdata/none", Sys: "testdata/none", RootFS: "/"}, fakeKernel()))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
	if families["node_uname_info"] == nil || families["node_time_seconds"] == nil {
		t.Errorf("the parts that read no file are lost: %v", sortedKeys(families))
	}
	for name := range families {
		if strings.HasPrefix(name, "node_cpu") || strings.HasPrefix(name, "node_memory") {
			t.Errorf("%s is present", name)
		}
	}
}

// Users choose the names of mount points, which may be any bytes. Names that become equal as labels are emitted once,
// because a duplicate series would invalidate the exposition.
func TestHostileNames(t *testing.T) {
	top := t.TempDir()
	if err := os.CopyFS(top, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	var mounts, devices strings.Builder
	devices.WriteString("header\nheader\n")
	for _, name := range []string{"\xff", "\xfe", `"`, "{}", `\012`, `\134n`} {
		fmt.Fprintf(&mounts, "40 27 8:9 / /mnt/%s rw shared:1 - fuse.x x%s rw\n", name, name)
		fmt.Fprintf(&devices, "%s: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", name)
		if err := os.CopyFS(filepath.Join(top, "sys/class/net", name), os.DirFS("testdata/sys/class/net/lo")); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range map[string]string{"proc/1/mountinfo": mounts.String(), "proc/net/dev": devices.String()} {
		if err := os.WriteFile(filepath.Join(top, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Proc: filepath.Join(top, "proc"), Sys: filepath.Join(top, "sys"), RootFS: "/"}
	families, err := gather(t, newCollector(o, fakeKernel()))
	if err != nil {
		t.Error(err)
	}
	for name, want := range map[string]int{"node_filesystem_size_bytes": 5, "node_filesystem_mount_info": 5, "node_network_receive_bytes_total": 5, "node_network_up": 7} {
		if got := len(families[name].GetMetric()); got != want {
			t.Errorf("%s has %d series, want %d", name, got, want)
		}
	}
}

func TestPanicCostsOnlyItsPart(t *testing.T) {
	c := newCollector(roots(t), fakeKernel())
	c.parts[3].collect = func(context.Context, func(prometheus.Metric)) error { panic("a bug") }
	families, err := gather(t, c)
	if err == nil || !strings.Contains(err.Error(), c.parts[3].name+": panic: a bug") {
		t.Errorf("the error is %v", err)
	}
	if families["node_filesystem_size_bytes"] == nil {
		t.Error("the parts after it are lost")
	}
}

func TestCollectEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	err := New(Options{Proc: "/proc", Sys: "/sys", RootFS: "/"}).Collect(ctx, func(prometheus.Metric) { n++ })
	if !errors.Is(err, context.Canceled) || n != 0 {
		t.Errorf("%d samples and %v", n, err)
	}
}

// The collector reads the real /proc and /sys.
func TestThisMachine(t *testing.T) {
	families, err := gather(t, New(Options{Proc: "/proc", Sys: "/sys", RootFS: "/"}))
	if err != nil {
		t.Error(err)
	}
	for _, name := range []string{
		"node_cpu_seconds_total", "node_cpu_guest_seconds_total", "node_memory_MemAvailable_bytes", "node_memory_numa_MemTotal",
		"node_filesystem_avail_bytes", "node_disk_info", "node_network_receive_bytes_total", "node_network_up", "node_vmstat_pgfault",
		"node_load1", "node_boot_time_seconds", "node_uname_info", "node_filefd_allocated", "node_netstat_Tcp_CurrEstab", "node_sockstat_TCP_inuse",
	} {
		if families[name] == nil {
			t.Errorf("no %s", name)
		}
	}
	t.Logf("%d families", len(families))
}

func BenchmarkCollect(b *testing.B) {
	c := New(Options{Proc: "/proc", Sys: "/sys", RootFS: "/"})
	samples := 0
	b.ReportAllocs()
	for b.Loop() {
		samples = 0
		if err := c.Collect(b.Context(), func(prometheus.Metric) { samples++ }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(samples), "samples")
}

// In a container with its own network namespace, the network of the machine is read from the first process. Values that the
// kernel shows only for the network of the reader are absent.
func TestNetworkOfTheMachine(t *testing.T) {
	have := func(net string) map[string]bool {
		// Parts that do not find their files return errors, and the others still emit.
		families, _ := gather(t, newCollector(Options{Proc: "testdata/proc", Sys: "testdata/sys", RootFS: "/", Net: net}, fakeKernel()))
		names := map[string]bool{}
		for _, f := range families {
			names[f.GetName()] = len(f.GetMetric()) > 0
		}
		return names
	}
	own, first, none := have(""), have("testdata/proc"), have("testdata/none")
	for _, name := range []string{"node_network_receive_bytes_total", "node_netstat_Tcp_InSegs", "node_sockstat_sockets_used", "node_softnet_processed_total", "node_arp_entries"} {
		if !own[name] || !first[name] || none[name] {
			t.Errorf("%s: %v from /proc, %v from the first process, %v without its files", name, own[name], first[name], none[name])
		}
	}
	if name := "node_nf_conntrack_entries"; !own[name] || first[name] {
		t.Errorf("%s: %v, in a container %v", name, own[name], first[name])
	}
}

// On a confidential machine without steal time since its start, it is unknown whether the host reports steal time. After the
// first steal time it is known.
func TestStealOfAConfidentialMachine(t *testing.T) {
	steal := func(o Options) (n int) {
		families, err := gather(t, newCollector(o, fakeKernel()))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range families["node_cpu_seconds_total"].GetMetric() {
			for _, l := range m.Label {
				if l.GetName() == "mode" && l.GetValue() == "steal" {
					n++
				}
			}
		}
		return n
	}
	o := roots(t)
	o.Confidential = true
	if n := steal(o); n != 2 {
		t.Errorf("a machine that has lost time: %d series, want 2", n)
	}
	o = copyOf(t, o)
	text, err := os.ReadFile(filepath.Join(o.Proc, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	for cpu, without := range map[string]string{
		"cpu0 2000 30 600 45000 30 4 40 5 6 1": "cpu0 2000 30 600 45000 30 4 40 0 6 1",
		"cpu1 1000 10 400 45000 20 2 30 3 3 0": "cpu1 1000 10 400 45000 20 2 30 0 3 0",
	} {
		text = bytes.ReplaceAll(text, []byte(cpu), []byte(without))
	}
	if err := os.WriteFile(filepath.Join(o.Proc, "stat"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	for confidential, want := range map[bool]int{true: 0, false: 2} {
		o.Confidential = confidential
		if n := steal(o); n != want {
			t.Errorf("no lost time, confidential %t: %d series, want %d", confidential, n, want)
		}
	}
}
