// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"

	"github.com/teescope/teescope/internal/run/profile"
)

func zipped(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func read(s string) (*profile.Profile, error) {
	return Read(strings.NewReader(s), Options{}, profile.DefaultLimits())
}

func TestFolded(t *testing.T) {
	p, err := read("# a comment\n\nmain;f;read_[k] 3\r\nmain;f 2\nmain;f;read_[k] 4\nmain;[unknown] 1\nmain;[unknown] (/lib/a b.so) 1.6\nmain;operator new(int, char) 5\n")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, s := range p.Samples {
		var names []string
		for _, f := range s.Stack {
			names = append(names, fmt.Sprintf("%s/%v", p.Frames[f].Name(), p.Frames[f].Kernel))
		}
		got[strings.Join(names, " ")] = s.Values[0]
	}
	want := map[string]int64{
		"read/true f/false main/false": 7, "f/false main/false": 2, "[unknown]/false main/false": 1, "[unknown] (/lib/a b.so)/false main/false": 2,
		"operator new(int, char)/false main/false": 5,
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s is %d, want %d", k, got[k], v)
		}
	}
	if len(got) != len(want) || p.Format != "folded stacks" {
		t.Errorf("%s: %v", p.Format, got)
	}
}

// realPprof is a profile with inlined functions, labels, several values, and a location without a function.
func realPprof() *pprof.Profile {
	lib := &pprof.Mapping{ID: 1, File: "/bin/server", HasFunctions: true}
	kernel := &pprof.Mapping{ID: 2, File: "[kernel.kallsyms]"}
	fn := func(id uint64, name string) *pprof.Function {
		return &pprof.Function{ID: id, Name: name, Filename: "a.go"}
	}
	f, g, h := fn(1, "f"), fn(2, "g"), fn(3, "h")
	locations := []*pprof.Location{
		{ID: 1, Mapping: lib, Line: []pprof.Line{{Function: g, Line: 3}, {Function: f, Line: 7}}}, // g is inlined into f
		{ID: 2, Mapping: kernel, Line: []pprof.Line{{Function: h}}},
		{ID: 3, Mapping: lib, Address: 0x1234},
	}
	return &pprof.Profile{
		SampleType: []*pprof.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Sample: []*pprof.Sample{
			{Location: []*pprof.Location{locations[1], locations[0]}, Value: []int64{3, 30e6}, Label: map[string][]string{"process": {"server"}}, NumLabel: map[string][]int64{"tid": {12}}},
			{Location: []*pprof.Location{locations[2]}, Value: []int64{1, 10e6}},
		},
		Location: locations, Function: []*pprof.Function{f, g, h}, Mapping: []*pprof.Mapping{lib, kernel},
	}
}

func encoded(t testing.TB, p *pprof.Profile, compress bool) string {
	t.Helper()
	var b bytes.Buffer
	write := p.WriteUncompressed
	if compress {
		write = p.Write
	}
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPprof(t *testing.T) {
	for _, compress := range []bool{true, false} {
		p, err := read(encoded(t, realPprof(), compress))
		if err != nil {
			t.Fatal(err)
		}
		s := &p.Samples[0]
		want := []profile.Frame{
			{Function: "h", Library: "[kernel.kallsyms]", File: "a.go", Kernel: true},
			{Function: "g", Library: "/bin/server", File: "a.go", Line: 3}, {Function: "f", Library: "/bin/server", File: "a.go", Line: 7},
		}
		for i, f := range s.Stack {
			if p.Frames[f] != want[i] {
				t.Errorf("frame %d is %+v, want %+v", i, p.Frames[f], want[i])
			}
		}
		if ns, ok := p.Nanoseconds(); !ok || ns != 40e6 || p.Taken() != 4 {
			t.Errorf("%d ns, %v, of %v samples", ns, ok, p.Taken())
		}
		if p.Label(s, profile.Process) != "server" || p.Label(s, profile.Thread) != "12" {
			t.Errorf("labels are %v", p.LabelSets[s.Labels])
		}
		if f := p.Frames[p.Samples[1].Stack[0]]; f.Resolved() || f.Library != "/bin/server" {
			t.Errorf("a location without a function is %+v", f)
		}
	}
}

// TestUnknownFiles: the message of each file that is not a profile says what to do.
func TestUnknownFiles(t *testing.T) {
	recording, err := os.ReadFile("testdata/shapes-flat.txt")
	if err != nil {
		t.Fatal(err)
	}
	bomb := realPprof()
	for len(bomb.Comments) < 4 {
		bomb.Comments = append(bomb.Comments, "x")
	}
	deep := strings.Repeat("a;", 5000) + "a 1\n"
	for name, tt := range map[string]struct{ in, want string }{
		"empty":              {"", "it is empty: use a recording of perf"},
		"only comments":      {"# a\n\n", "it is empty"},
		"prose":              {"Hello, world\n", "unknown format: use a recording of perf"},
		"JSON":               {`{"$schema":"https://www.speedscope.app/file-format-schema.json"}`, "unknown format"},
		"perf.data":          {"PERFILE2\x68\x00\x00", "it ends within its header"},
		"ELF":                {"\x7fELF\x02\x01\x01\x00\x00\x00\x00", "unknown format"},
		"broken gzip":        {zipped(t, "main 1\n")[:15], "decompressing: unexpected EOF"},
		"no gzip":            {"\x1f\x8b\x00", "it begins like a file of gzip"},
		"no count":           {"main;f 1\nmain;f\n", `line 2: "main;f" has no count`},
		"no number":          {"main;f 1\nmain;f x\n", `line 2: "main;f x": the count is not a number`},
		"negative":           {"main;f 1\nmain;f -1\n", "line 2: a value is negative"},
		"huge":               {"main;f 2000000000000000000\nmain;f 2000000000000000000\n", "line 2: the values add up to more than 2^61"},
		"huge fraction":      {"main;f 1\nmain;f 1e300\n", "line 2: "},
		"deep":               {deep, "line 1: a stack of more than 4096 frames: too large"},
		"long line":          {"main 1\n" + strings.Repeat("x", 2<<20), "line 2: it has more than 1024 KiB, too large"},
		"cut perf script":    {string(recording[:200]) + "\ngarbage here\n", "is not the output of perf script"},
		"terminal":           {"main 1\n\x1b[31m\xff\u202e\n", "line 2: \"\uFFFD[31m\uFFFD\uFFFD\" has no count"},
		"pprof without type": {encoded(t, &pprof.Profile{Comments: []string{"x"}}, false) + "\x00", "unknown format"},
		"only zeros":         {"main 0\n", "a profile without any sample"},
		"two events":         {"a 1 1.0: 1 x: \n\t1 f (l)\n\na 1 1.0: 1 y: \n\t1 f (l)\n", `it has several events: choose x or y with --event`},
	} {
		_, err := read(tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, err := Read(strings.NewReader("a 1 1.0: 1 x: \n\t1 f (l)\n"), Options{Event: "z"}, profile.DefaultLimits()); err == nil || err.Error() != `it has no event "z": choose x with --event` {
		t.Errorf("an event that is not there: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

// TestHostilePprof: what expands when it is parsed is refused before.
func TestHostilePprof(t *testing.T) {
	start := encoded(t, realPprof(), false)
	for name, in := range map[string]string{
		"empty samples":          start + strings.Repeat("\x12\x00", 6<<20),
		"many numbers":           start + "\x12\x85\x80\x80\x20\x0a\x80\x80\x80\x20" + strings.Repeat("\x01", 64<<20),
		"more bytes than a file": start + strings.Repeat("\x48\x01", 64<<20),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(strings.NewReader(in), Options{}, profile.DefaultLimits())
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "memory") && !strings.Contains(err.Error(), "limit") {
			t.Errorf("%s: %v", name, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<30 {
			t.Errorf("%s: %d MiB were allocated", name, got>>20)
		}
	}
}

// TestLimits: each limit ends the reading with an error that names the line.
func TestLimits(t *testing.T) {
	in := "a;b;c 1\nd;e;f 1\ng;h 1\n"
	for name, change := range map[string]func(*profile.Limits){
		"different stacks":            func(l *profile.Limits) { l.Stacks = 2 },
		"a stack of more":             func(l *profile.Limits) { l.Depth = 2 },
		"different frames":            func(l *profile.Limits) { l.Frames = 4 },
		"its stacks and names have":   func(l *profile.Limits) { l.Bytes = 1000 },
		"different threads or labels": nil,
		"":                            func(*profile.Limits) {},
	} {
		limits, text := profile.DefaultLimits(), in
		if change == nil {
			limits.Labels, text = 2, "a 1 1.0: 1 x: \n\t1 f (l)\n\na 2 1.0: 1 x: \n\t1 f (l)\n"
		} else {
			change(&limits)
		}
		_, err := Read(strings.NewReader(text), Options{}, limits)
		if name == "" && err != nil || name != "" && (!errors.Is(err, profile.ErrLimit) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "line ") && name != "different threads or labels") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
