// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/metric/metrictest"
)

func untypedTest(name string) *metric.Desc {
	return untyped("node_test_"+name, "A test.", "nowhere")
}

// FuzzParsers passes the same bytes to all parsers of this package.
func FuzzParsers(f *testing.F) {
	for _, name := range []string{"meminfo", "vmstat", "net/snmp", "net/snmp6", "net/arp", "sys/fs/file-nr"} {
		data, err := os.ReadFile(filepath.Join("testdata/proc", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: b c\na: 1 2\nNode 0 x(y): 1 kB\nE:A=1\nE:B=\n"))
	f.Add([]byte(`/a\040b\134`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, parse := range map[string]func([]byte) ([]field, error){
			"meminfo": func(data []byte) ([]field, error) { return parseMeminfo(data, "_bytes") },
			"pairs":   parsePairs, "netstat": parseNetstat, "snmp6": parseSNMP6,
		} {
			all, err := parse(data)
			if len(all) > len(data) {
				t.Errorf("%s: %d fields of %d bytes", name, len(all), len(data))
			}
			if err != nil && !isLine(err.Error()) {
				t.Errorf("%s: the error is %q", name, err)
			}
			for _, one := range all {
				if !isName(one.name) || notFinite(one.value) {
					t.Errorf("%s: the field %q is %v", name, one.name, one.value)
				}
				untypedTest(one.name).Value(one.value)
			}
		}
		for device, n := range parseARP(data) {
			if device == "" || n < 1 || !utf8.ValidString(device) {
				t.Errorf("%d entries of %q", n, device)
			}
		}
		for name, value := range parseUdev(data) {
			if !utf8.ValidString(value) || strings.Contains(value, "\n") {
				t.Errorf("%s is %q", name, value)
			}
		}
		if have, most, err := parseFileNr(data); err == nil && (notFinite(have) || notFinite(most)) {
			t.Errorf("%v of %v", have, most)
		}
		if path := string(data); unescape(mangle.Replace(path)) != path {
			t.Errorf("%q is escaped, and unescaped as %q", path, unescape(mangle.Replace(path)))
		}
	})
}

// mangle escapes paths as the kernel does.
var mangle = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`)

func isLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' }) && len(s) < 1000
}

// readers maps the files of the fake machine to the parts that read them, mostly through procfs.
func readers() []reader {
	stat := func(o Options) []part { cpu, rest := newStat(o); return []part{cpu, rest} }
	one := func(make func(Options) part) func(Options) []part {
		return func(o Options) []part { return []part{make(o)} }
	}
	disk, netclass, sockstat, pressure := one(newDisk), one(newNetclass), one(newSockstat), one(newPressure)
	return []reader{
		{"proc/stat", stat},
		{"sys/devices/system/cpu/isolated", stat},
		{"sys/devices/system/cpu/cpu1/online", stat},
		{"sys/devices/system/cpu/cpu1/topology/core_id", stat},
		{"sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", stat},
		{"proc/cpuinfo", one(func(o Options) part { return newFrequency(o, fakeKernel()) })},
		{"sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq", one(func(o Options) part { return newFrequency(o, fakeKernel()) })},
		{"proc/loadavg", one(newLoad)},
		{"proc/meminfo", one(newMeminfo)},
		{"sys/devices/system/node/node0/meminfo", one(newNUMA)},
		{"sys/devices/system/node/node0/numastat", one(newNUMA)},
		{"proc/vmstat", one(newVmstat)},
		{"proc/pressure/cpu", pressure},
		{"proc/pressure/memory", pressure},
		{"proc/schedstat", one(newSchedstat)},
		{"proc/diskstats", disk},
		{"run/udev/data/b8:0", disk},
		{"sys/block/sda/queue/rotational", disk},
		{"proc/net/dev", one(newNetdev)},
		{"sys/class/net/eth0/operstate", netclass},
		{"sys/class/net/eth0/flags", netclass},
		{"sys/class/net/eth0/speed", netclass},
		{"sys/class/net/eth0/ifalias", netclass},
		{"proc/net/netstat", one(newNetstat)},
		{"proc/net/snmp6", one(newNetstat)},
		{"proc/net/sockstat", sockstat},
		{"proc/net/sockstat6", sockstat},
		{"proc/net/softnet_stat", one(newSoftnet)},
		{"proc/net/arp", one(newARP)},
		{"proc/sys/net/netfilter/nf_conntrack_count", one(newConntrack)},
		{"proc/sys/fs/file-nr", one(newFilefd)},
		{"proc/sys/kernel/random/poolsize", one(newEntropy)},
		{"sys/devices/system/clocksource/clocksource0/available_clocksource", one(func(o Options) part { return newTime(o, fakeKernel()) })},
		{"proc/1/mountinfo", one(func(o Options) part { return newFilesystem(o, fakeKernel()) })},
	}
}

type reader struct {
	file  string
	parts func(Options) []part
}

// FuzzParts replaces one file of the fake machine and runs the parts that read it. A panic of procfs may end only this
// part. The exposition must stay valid.
func FuzzParts(f *testing.F) {
	root := roots(f).RootFS
	if err := os.CopyFS(root, os.DirFS("testdata")); err != nil {
		f.Fatal(err)
	}
	o := Options{Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys"), RootFS: root}
	all := readers()
	whole := make([][]byte, len(all))
	for i, r := range all {
		data, err := os.ReadFile(filepath.Join(root, r.file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			f.Fatal(err)
		}
		whole[i] = data
		f.Add(byte(i), data)
		f.Add(byte(i), slices.Concat(data, data)) // each line twice
	}
	for i, r := range all {
		switch r.file {
		case "proc/loadavg":
			f.Add(byte(i), []byte("nan -inf 1 1/2 3\n"))
		case "proc/stat":
			f.Add(byte(i), []byte("cpu0 nan inf 0x1p-2 1 1 1 1 1 1 1\n"))
		case "proc/1/mountinfo":
			f.Add(byte(i), []byte("27 1 8:\xff / / rw - \xff \xff rw\n"))
		case "sys/devices/system/cpu/isolated":
			f.Add(byte(i), []byte("1-3,2\n"))
		}
	}
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		i := int(which) % len(all)
		path := filepath.Join(root, all[i].file)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		metrictest.Samples(t, 100+10*len(data), func(emit func(prometheus.Metric)) {
			for _, p := range all[i].parts(o) {
				err := p.run(t.Context(), emit)
				if err != nil && strings.HasPrefix(err.Error(), "panic:") && !strings.Contains(err.Error(), "github.com/prometheus/procfs") {
					t.Errorf("%s: %v", p.name, err)
				}
			}
		})
		if err := os.WriteFile(path, whole[i], 0o644); err != nil {
			t.Fatal(err)
		}
	})
}
