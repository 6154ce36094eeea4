// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/profiletest"
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
	if err := os.WriteFile(filepath.Join(dir, "opt/forks/forks"), unpacked(t, "forks"), 0o755); err != nil {
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
			// perf looks for an eBPF program when it prints. The one of another program may have ended then.
			if strings.HasPrefix(p.Frames[i].Function, "bpf_prog_") {
				p.Frames[i].Function = ""
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

// unpacked returns a stored recording as it was written.
func unpacked(t testing.TB, name string) []byte {
	t.Helper()
	return profiletest.Unzipped(t, "perfdata/testdata/"+name+".gz")
}

// A recording chooses the paths in notes. They reach no terminal unchanged.
func TestNotesCanBePrinted(t *testing.T) {
	data := bytes.ReplaceAll(unpacked(t, "gramine-flat.data"), []byte("/opt/forks/forks"), []byte("/opt/\x1b[31m/forks"))
	p := open(t, data, Options{Names: &names.Finder{Root: t.TempDir()}})
	if all := strings.Join(p.Notes, ""); !text.IsLabel(all) || !strings.Contains(all, "[31m/forks") {
		t.Errorf("%q", p.Notes)
	}
}

// TestGramine reads files that the source of Gramine's profiler has written. The files of all versions from 1.0 to 1.9 are equal,
// except those that SIGUSR1 begins in 1.8 and 1.9, which do not name the process.
func TestGramine(t *testing.T) {
	dir := root(t)
	want := map[string]int64{"alpha": 2, "beta": 1, "deep": 1, "main": 1, "": 1}
	for _, name := range []string{"gramine-flat", "gramine-flat-again", "gramine-stack", "gramine-stack-again"} {
		p := open(t, stored(t, name+".data"), Options{Names: &names.Finder{Root: dir}})
		got := map[string]int64{}
		for _, s := range p.Samples {
			if len(s.Stack) != 1 {
				t.Errorf("%s: a stack of %d frames", name, len(s.Stack))
			}
			f := p.Frames[s.Stack[0]]
			got[f.Function] += s.Values[0]
			if library := map[bool]string{true: "/usr/lib/gramine/runtime/glibc/libc.so.6", false: "/opt/forks/forks"}[f.Function == ""]; f.Library != library {
				t.Errorf("%s: %+v, want the library %s", name, f, library)
			}
		}
		equal(t, got, want)
		if p.Format != Gramine || p.Values[p.Main].String() != "samples (count)" || p.Total() != 6 || !p.Select("cpu") || p.Total() != 120e6 {
			t.Errorf("%s: %s, %v, total %d", name, p.Format, p.Values, p.Total())
		}
		notes := strings.Join(p.Notes, "")
		if said := strings.Contains(notes, "not unwound"); said != strings.Contains(name, "stack") || !strings.Contains(notes, "does not say its mode") {
			t.Errorf("%s: notes %q", name, p.Notes)
		}
	}
	// perf reads its own files with the same event, and without times, as time.
	own := bytes.Clone(unpacked(t, "gramine-flat.data"))
	binary.LittleEndian.PutUint64(own[16:], 128+16)
	if p := open(t, own, Options{}); p.Format == Gramine || p.Total() != 120e6 {
		t.Errorf("a file of perf: %s, total %d", p.Format, p.Total())
	}
}
