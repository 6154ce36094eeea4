// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read/names"
)

// byStack counts samples by thread and functions. Names that are not of the program become *, if it has only some.
func byStack(p *profile.Profile, own []string) map[string]int64 {
	counts := map[string]int64{}
	for _, s := range p.Samples {
		line := p.Label(&s, profile.Process) + " " + p.Label(&s, profile.Thread)
		for _, f := range s.Stack {
			name := p.Frames[f].Function
			if own != nil && !slices.Contains(own, name) {
				name = "*"
			}
			line += ";" + name
		}
		counts[line] += s.Values[0]
	}
	return counts
}

// equal compares the samples of two profiles.
func equal(t *testing.T, got, want map[string]int64) {
	t.Helper()
	bad := 0
	for _, side := range []map[string]int64{got, want} {
		for line := range side {
			if got[line] != want[line] && bad < 10 {
				t.Errorf("%d samples, perf has %d: %s", got[line], want[line], line)
				bad++
			}
		}
	}
}

// stored returns a compressed file of the recordings. Read decompresses it.
func stored(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("perfdata/testdata/" + name + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// root has the program of the stored recordings where they name it.
func root(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "opt/forks"), 0o755); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(stored(t, "forks")))
	if err != nil {
		t.Fatal(err)
	}
	program, err := io.ReadAll(z)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "opt/forks/forks"), program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var ofForks = []string{"spin", "alpha", "beta", "deep", "worker", "main", "_start"}

func open(t *testing.T, data []byte, o Options) *profile.Profile {
	t.Helper()
	p, err := Read(bytes.NewReader(data), o, profile.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestStoredRecordings compares recordings with perf's answers about them. The machine of the test has the program only.
func TestStoredRecordings(t *testing.T) {
	dir := root(t)
	for name, event := range map[string]string{"file": "", "compressed": "", "stream": "", "packed-stream": "", "events": "cpu-clock"} {
		t.Run(name, func(t *testing.T) {
			got := open(t, stored(t, name+".data"), Options{Event: event, Names: &names.Finder{Root: dir}})
			want := byStack(open(t, stored(t, name+".txt"), Options{Event: event}), ofForks)
			equal(t, byStack(got, ofForks), want)
			if v := got.Values[got.Main]; v.Type != "cpu" || v.Unit != "nanoseconds" || len(want) < 20 {
				t.Errorf("%v, %d stacks", v, len(want))
			}
			if name == "file" && got.Total() != 95*5025125 {
				t.Errorf("%d ns, want 95 samples of 1/199 s", got.Total())
			}
		})
	}
}

// Another program at the same path has a build ID of its own, and gives no names.
func TestOtherProgramGivesNoNames(t *testing.T) {
	dir := root(t)
	other, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "opt/forks/forks"), other, 0o755); err != nil {
		t.Fatal(err)
	}
	p := open(t, stored(t, "file.data"), Options{Names: &names.Finder{Root: dir}})
	for _, f := range p.Frames {
		if f.Function != "" && f.Library == "/opt/forks/forks" {
			t.Errorf("%+v", f)
		}
	}
	if !strings.Contains(strings.Join(p.Notes, "; "), "/opt/forks/forks: the file is not the one that was recorded") {
		t.Errorf("%q", p.Notes)
	}
}

// TestNamesAreThoseOfPerf records here and compares all names, also those of the kernel and of libraries.
func TestNamesAreThoseOfPerf(t *testing.T) {
	if _, err := exec.LookPath("perf"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	program, file := filepath.Join(dir, "forks"), filepath.Join(dir, "perf.data")
	out, err := exec.Command("gcc", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread", "-o", program, "perfdata/testdata/forks.c").CombinedOutput()
	if err != nil {
		t.Skipf("%v: %s", err, out)
	}
	cache := filepath.Join(dir, "cache")
	if out, err := exec.Command("perf", "--buildid-dir", cache, "record", "-q", "-e", "cpu-clock", "-F", "499", "-g", "-o", file, program, "0.1").CombinedOutput(); err != nil {
		t.Skipf("perf cannot record here: %v: %s", err, out)
	}
	script, err := exec.Command("perf", "--buildid-dir", cache, "script", "--no-inline", "-i", file, "-F", "comm,tid,time,event,ip,sym").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	finder := names.Host()
	finder.Cache = cache
	got, want := open(t, data, Options{Names: finder}), open(t, script, Options{})
	alias := aliases(t)
	alias["@plt"] = "" // perf's name of an entry of the table whose relocation has no symbol (R_X86_64_IRELATIVE)
	for _, p := range []*profile.Profile{got, want} {
		for i := range p.Frames {
			if one, ok := alias[p.Frames[i].Function]; ok {
				p.Frames[i].Function = one
			}
		}
	}
	equal(t, byStack(got, nil), byStack(want, nil))
	t.Logf("%d different stacks, %d frames, notes %q", len(got.Samples), len(got.Frames), got.Notes)
}

// aliases gives functions of the kernel at the same address one name.
func aliases(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		t.Skip(err)
	}
	first, names := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if strings.Trim(f[0], "0") == "" || !slices.Contains([]string{"t", "T", "w", "W"}, f[1]) {
			continue
		}
		if first[f[0]] == "" {
			first[f[0]] = f[2]
		} else {
			names[f[2]] = first[f[0]]
		}
	}
	return names
}

// gramine writes the file of Gramine's profiler as its source does (pal/src/host/linux-sgx/host_perf_data.c): no time, MMAP and
// not MMAP2, and an attr_size without the section of IDs. Samples are in the loader at 0x1000 and in the enclave at 0x2000.
func gramine(withStack bool) []byte {
	const attr = 128
	le := binary.LittleEndian
	var data []byte
	put := func(kind uint32, misc uint16, body ...any) {
		var b bytes.Buffer
		for _, v := range body {
			_ = binary.Write(&b, le, v) // into memory
		}
		data = le.AppendUint32(data, kind)
		data = le.AppendUint16(data, misc)
		data = le.AppendUint16(data, uint16(8+b.Len()))
		data = append(data, b.Bytes()...)
	}
	put(3, 0, uint32(7), uint32(7), []byte("pal-sgx\x00"))
	put(1, 2, uint32(7), uint32(7), uint64(0x400000), uint64(0x10000), uint64(0), []byte("/opt/forks/forks\x00\x00\x00\x00\x00\x00\x00\x00"))
	format := uint64(0x103)
	for i := range 5 {
		body := []any{uint64(0x4011f0 + i), uint32(7), uint32(7), uint64(20000000)}
		if withStack {
			format = 0x3123
			body = append(body, uint64(0), uint64(2), make([]uint64, 18), uint64(64), make([]byte, 64), uint64(64))
		}
		put(9, 2, body...)
	}
	head := []byte("PERFILE2")
	for _, v := range []uint64{104, attr, 104, attr, 0xf8, uint64(len(data)), 0, 0, 0x40, 0, 0, 0} {
		head = le.AppendUint64(head, v)
	}
	one := make([]byte, attr+16)
	le.PutUint32(one, 1)
	le.PutUint32(one[4:], attr)
	le.PutUint64(one[24:], format)
	le.PutUint64(one[40:], 1<<10) // freq
	if withStack {
		le.PutUint64(one[80:], 0xff03ff)
	}
	arch := append(le.AppendUint32(nil, 64), make([]byte, 64)...)
	copy(arch[4:], "x86_64")
	all := slices.Concat(head, one, data)
	all = le.AppendUint64(all, uint64(len(all)+16))
	all = le.AppendUint64(all, uint64(len(arch)))
	return append(all, arch...)
}

// A recording chooses the paths in notes. They reach no terminal unchanged.
func TestNotesCanBePrinted(t *testing.T) {
	data := bytes.ReplaceAll(gramine(false), []byte("/opt/forks/forks"), []byte("/opt/\x1b[31m/forks"))
	p := open(t, data, Options{Names: &names.Finder{Root: t.TempDir()}})
	if all := strings.Join(p.Notes, ""); !text.IsLabel(all) || !strings.Contains(all, "[31m/forks") {
		t.Errorf("%q", p.Notes)
	}
}

func TestGramine(t *testing.T) {
	for _, withStack := range []bool{false, true} {
		data := gramine(withStack)
		p := open(t, data, Options{})
		if p.Format != "sgx-perf.data" || p.Values[p.Main].String() != "samples (count)" || p.Total() != 5 || !p.Select("cpu") || p.Total() != 100e6 {
			t.Errorf("%s, %v, total %d", p.Format, p.Values, p.Total())
		}
		if said := strings.Contains(strings.Join(p.Notes, ""), "not unwound"); said != withStack {
			t.Errorf("copies of stacks %t, notes %q", withStack, p.Notes)
		}
		if f := p.Frames[p.Samples[0].Stack[0]]; f.Library != "/opt/forks/forks" || !strings.Contains(strings.Join(p.Notes, ""), "does not say its mode") {
			t.Errorf("%+v, %q", f, p.Notes)
		}
		if _, err := exec.LookPath("perf"); err != nil {
			t.Skip(err)
		}
		file := filepath.Join(t.TempDir(), "sgx-perf.data")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("perf", "script", "-i", file, "-G", "-F", "comm,tid,event,ip").CombinedOutput()
		if err != nil || strings.Count(string(out), "pal-sgx") != 5 || !strings.Contains(string(out), fmt.Sprintf("%x", 0x4011f4)) && !strings.Contains(string(out), "11f4") {
			t.Errorf("perf reads it as %v %s", err, out)
		}
	}
}
