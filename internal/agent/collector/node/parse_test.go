// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

func TestParse(t *testing.T) {
	meminfo := func(suffix string) func([]byte) ([]field, error) {
		return func(data []byte) ([]field, error) { return parseMeminfo(data, suffix) }
	}
	for name, tt := range map[string]struct {
		parse func([]byte) ([]field, error)
		text  string
		want  []field
		fails bool
	}{
		"meminfo":               {meminfo("_bytes"), "MemTotal: 2 kB\nHugePages_Total: 3\nInactive(file): 4 kB\n", []field{{"MemTotal_bytes", 2048}, {"HugePages_Total", 3}, {"Inactive_file_bytes", 4096}}, false},
		"a node's meminfo":      {meminfo(""), "\nNode 0 MemTotal: 2 kB\nNode 0 Active(anon):  0 kB\n", []field{{"MemTotal", 2048}, {"Active_anon", 0}}, false},
		"meminfo, a bad line":   {meminfo(""), "A: 1\nB: x\nC: 3 MB\nD 4\nE:\nF: 6\n", []field{{"A", 1}, {"F", 6}}, true},
		"meminfo, a name twice": {meminfo(""), "A: 1\nA: 2\n", []field{{"A", 1}}, false},
		"meminfo, a bad name":   {meminfo(""), "A-b: 1\n: 2\n", nil, true},
		"pairs":                 {parsePairs, "a 1\n\nb -2\nc 18446744073709551615\n", []field{{"a", 1}, {"b", -2}, {"c", 18446744073709551615}}, false},
		"pairs, bad lines":      {parsePairs, "a\nb 2 3\nc 1.5\nd\xff 1\ne 5", []field{{"e", 5}}, true},
		"netstat":               {parseNetstat, "Tcp: A B\nTcp: 1 -1\nUdp: C\nUdp: 3\n", []field{{"Tcp_A", 1}, {"Tcp_B", -1}, {"Udp_C", 3}}, false},
		"netstat, one line":     {parseNetstat, "Tcp: A B\nUdp: C\nUdp: 3\n", []field{{"Udp_C", 3}}, true},
		"netstat, too short":    {parseNetstat, "Tcp: A B\nTcp: 1\n", nil, true},
		"netstat, no number":    {parseNetstat, "Tcp: A B\nTcp: x 2\n", []field{{"Tcp_B", 2}}, true},
		"snmp6":                 {parseSNMP6, "Ip6InOctets \t 7\nIcmp6OutType133 2\nNoSix 3\n", []field{{"Ip6_InOctets", 7}, {"Icmp6_OutType133", 2}}, false},
	} {
		got, err := tt.parse([]byte(tt.text))
		if !slices.Equal(got, tt.want) || (err != nil) != tt.fails {
			t.Errorf("%s: %v, %v; want %v", name, got, err, tt.want)
		}
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	for _, size := range []int{0, 1, 511, 512, 513, 5000, maxFile, maxFile + 1} {
		path := filepath.Join(dir, strconv.Itoa(size))
		if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o644); err != nil {
			t.Fatal(err)
		}
		if data, err := readFile(path); err != nil || len(data) != min(size, maxFile) {
			t.Errorf("%d bytes: %d were read, %v", size, len(data), err)
		}
	}
	if _, err := readFile(dir, "none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	if _, err := readFile(dir); !errors.Is(err, unix.EISDIR) {
		t.Errorf("of a directory: %v", err)
	}
	if _, err := readNumber(dir, "1"); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "1")) {
		t.Errorf("a file without a number: %v", err)
	}
	device, err := hostfs.At(dir).OpenDir()
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	if s, err := readWord(device, "none"); s != "" || err != nil {
		t.Errorf("a word without a file: %q, %v", s, err)
	}
}

func TestParseFileNr(t *testing.T) {
	for text, want := range map[string][2]float64{
		"1024\t0\t1631329\n":        {1024, 1631329},
		"9\t0\t9223372036854775807": {9, 9223372036854775807},
	} {
		have, most, err := parseFileNr([]byte(text))
		if err != nil || have != want[0] || most != want[1] {
			t.Errorf("parseFileNr(%q) = %v, %v, %v", text, have, most, err)
		}
	}
	for _, text := range []string{"", "1 2", "x 0 1", "1 0 x", "1 2 3 4"} {
		if _, _, err := parseFileNr([]byte(text)); err == nil {
			t.Errorf("parseFileNr(%q) has no error", text)
		}
	}
}

func TestParseUdev(t *testing.T) {
	got := parseUdev([]byte("S:disk/by-id\nE:A=1\nE:B=x=y\nE:C\nN:vda\nE:D=\xff"))
	if want := map[string]string{"A": "1", "B": "x=y", "D": "\uFFFD"}; !maps.Equal(got, want) {
		t.Errorf("parseUdev() = %q, want %q", got, want)
	}
}

func TestParseARP(t *testing.T) {
	data, err := os.ReadFile("testdata/proc/net/arp")
	if err != nil {
		t.Fatal(err)
	}
	if got := parseARP(data); !maps.Equal(got, map[string]int{"eth0": 2}) {
		t.Errorf("parseARP() = %v", got)
	}
	if got := parseARP([]byte("header\nshort line\n")); len(got) != 0 {
		t.Errorf("parseARP() of a short line = %v", got)
	}
}

func TestUnescape(t *testing.T) {
	for text, want := range map[string]string{
		"/plain": "/plain", `/a\040b`: "/a b", `/a\134040`: `/a\040`, `/\011\012`: "/\t\n", `/\777`: `/\777`,
	} {
		if got := unescape(text); got != want {
			t.Errorf("unescape(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestStrip(t *testing.T) {
	for root, want := range map[string]string{
		"/": "/host/data", "": "/host/data", "/host": "/data", "/host/": "/data", "/host/data": "/", "/ho": "/host/data", "/other": "/host/data",
	} {
		fs := filesystem{opts: Options{RootFS: root}}
		if got := fs.strip("/host/data"); got != want {
			t.Errorf("under %q: %q, want %q", root, got, want)
		}
	}
}

// Old kernels have fewer columns. Missing values are absent, not zero.
func TestDiskCounts(t *testing.T) {
	for columns, want := range map[int]int{14: 11, 18: 15, 20: 17, 25: 17, 0: 0} {
		got := diskCounts(&blockdevice.Diskstats{IoStatsCount: columns})
		if len(got) != want {
			t.Errorf("%d columns give %d counts, want %d", columns, len(got), want)
		}
	}
}

func TestHold(t *testing.T) {
	read := func(user, idle float64) map[int64]procfs.CPUStat {
		return map[int64]procfs.CPUStat{0: {User: user, Idle: idle}}
	}
	var held map[int64]cpuTimes
	for _, step := range []struct{ user, idle, wantUser, wantIdle float64 }{
		{10, 100, 10, 100},
		{11, 99.5, 11, 100}, // the kernel's idle time decreases a little
		{11, 101, 11, 101},
		{2, 5, 2, 5}, // the CPU was unplugged and plugged in again
	} {
		held = hold(held, read(step.user, step.idle))
		if got := held[0]; got[0] != step.wantUser || got[modeIdle] != step.wantIdle {
			t.Errorf("after %v: user %v idle %v", step, got[0], got[modeIdle])
		}
	}
	if held = hold(held, nil); len(held) != 0 {
		t.Errorf("removed CPUs are kept: %v", held)
	}
}

// A file with invented fields does not create an unlimited number of families.
func TestFieldsAreBounded(t *testing.T) {
	f := newFields(manyFields(maxFields-1), nil, untypedTest)
	if f.of("one_more") == nil || f.of("too_many") != nil || f.of("one_more") == nil {
		t.Error("the limit does not hold")
	}
	if len(f.known) != maxFields-1 {
		t.Errorf("%d fields are known", len(f.known))
	}
}

func manyFields(n int) []string {
	var names []string
	for i := range n {
		names = append(names, "f"+strconv.Itoa(i))
	}
	return names
}

// Fields that only other kernels have are also described, in order and once.
func TestKnownFields(t *testing.T) {
	for _, known := range [][]string{meminfoKnown, numaKnown, netstatKnown, socketsKnown} {
		if u := slices.Compact(slices.Sorted(slices.Values(known))); len(u) != len(known) {
			t.Errorf("duplicate name in: %v", known)
		}
	}
	for _, name := range netstatKnown {
		if !netstatWanted().MatchString(name) {
			t.Errorf("%s is described but never emitted", name)
		}
	}
}
