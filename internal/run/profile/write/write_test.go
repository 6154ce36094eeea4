// SPDX-License-Identifier: Apache-2.0

package write

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
)

// recorded is a recording of perf, see the tests of package read.
func recorded(t *testing.T, name string) *profile.Profile {
	t.Helper()
	p, err := read.Open("../read/testdata/"+name, read.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func written(t *testing.T, format string, p *profile.Profile) []byte {
	t.Helper()
	f, err := Choose(format, "")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b, p, "a title"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// goTool runs "go tool pprof -top" and returns flat and cumulative nanoseconds by function.
func goTool(t *testing.T, file string) map[string][2]string {
	t.Helper()
	cmd := exec.Command("go", "tool", "pprof", "-top", "-nodecount=0", "-nodefraction=0", "-unit=ns", "-symbolize=none", file)
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	row := regexp.MustCompile(`(?m)^\s*([0-9.]+)(?:ns)?\s+\S+%\s+\S+%\s+([0-9.]+)(?:ns)?\s+\S+%\s+(.+)$`)
	values := map[string][2]string{}
	for _, m := range row.FindAllStringSubmatch(string(out), -1) {
		values[strings.TrimSuffix(m[3], " (inline)")] = [2]string{m[1], m[2]}
	}
	if len(values) == 0 {
		t.Fatalf("no rows: %s", out)
	}
	return values
}

// TestGoToolPprofAgrees compares the time of each function with what go tool pprof reads from the written file.
func TestGoToolPprofAgrees(t *testing.T) {
	for _, name := range []string{"shares.txt.gz", "python.txt.gz", "shapes-srcline.txt.gz"} {
		p := recorded(t, name)
		file := filepath.Join(t.TempDir(), "out.pb.gz")
		if err := os.WriteFile(file, written(t, "pprof", p), 0o600); err != nil {
			t.Fatal(err)
		}
		got := goTool(t, file)
		table := p.By("function", 0, profile.Whole{})
		for _, r := range table.Rows {
			if r.Kind != profile.Named {
				if row := got[profile.Unknown]; r.Self > 0 && row[0] != fmt.Sprint(r.Self) {
					t.Errorf("%s: unresolved is %v, want %d", name, row, r.Self)
				}
				continue
			}
			// pprof shortens C++ names: no arguments, templates as <...>.
			if strings.ContainsAny(r.Name, "<(") {
				continue
			}
			if want := [2]string{fmt.Sprint(r.Self), fmt.Sprint(r.Inclusive)}; got[r.Name] != want {
				t.Errorf("%s: %s has %v, want %v", name, r.Name, got[r.Name], want)
			}
		}
	}
}

// TestReadAgain: what is written can be read with the same figures, and pprof also with the same labels and frames.
func TestReadAgain(t *testing.T) {
	for _, name := range []string{"shares.txt.gz", "python.txt.gz", "shapes-srcline.txt.gz", "shapes-flat.txt"} {
		p := recorded(t, name)
		for format, dimensions := range map[string][]string{"pprof": profile.Dimensions(), "folded": {"function"}} {
			again, err := read.Read(bytes.NewReader(written(t, format, p)), read.Options{}, profile.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			for _, by := range dimensions {
				want, got := map[string]profile.Row{}, again.By(by, 0, profile.Whole{})
				for _, r := range p.By(by, 0, profile.Whole{}).Rows {
					want[r.Name] = r
				}
				for _, r := range got.Rows {
					if w := want[r.Name]; r.Self != w.Self || r.Inclusive != w.Inclusive {
						if format == "folded" && p.Label(&p.Samples[0], profile.Process) != "" && r.Self == 0 {
							continue // the process is the outermost frame
						}
						t.Errorf("%s as %s by %s: %+v, want %+v", name, format, by, r, w)
					}
				}
				if got.Total != p.Total() {
					t.Errorf("%s as %s: %d, want %d", name, format, got.Total, p.Total())
				}
			}
		}
	}
}

// TestFoldedLines: the lines are those that stackcollapse-perf.pl --kernel writes for the same stacks, with nanoseconds.
// Notes are comments of a pprof file. Comments of other programs are no notes.
func TestNotesAreKept(t *testing.T) {
	b := profile.NewBuilder("test", []profile.ValueType{{Type: "samples", Unit: "count"}}, profile.DefaultLimits())
	if err := b.Add(nil, nil, 1); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 5000)
	for _, n := range append([]string{"12 % are unresolved", "note: twice", "a\x1b[31m", long}, make([]string, 40)...) {
		b.Note(n)
	}
	p := b.Profile()
	for range 2 { // what was read is written and read again
		again, err := read.Read(bytes.NewReader(written(t, "pprof", p)), read.Options{}, profile.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		p = again
		if n := p.Notes; len(n) < 4 || len(n) > 16 || n[0] != "12 % are unresolved" || n[1] != "note: twice" || strings.Contains(n[2], "\x1b") || len(n[3]) > 600 {
			t.Fatalf("%.100q", n)
		}
	}
}

func TestFoldedLines(t *testing.T) {
	got := string(written(t, "folded", recorded(t, "shapes-flat.txt")))
	want := "shapes;(anonymous namespace)::Box<unsigned long, 3>::operator() 50505050\nshapes;__memcmp_evex_movbe 20202020\nshapes;cfree@GLIBC_2.2.5 10101010\n" +
		"shapes;dput_[k] 10101010\nshapes;inlines 30303030\nshapes;maps 10101010\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A process can choose a name that begins like a comment. Its samples are read again.
func TestFoldedLinesAreNoComments(t *testing.T) {
	const text = "            #spy 1 0.0: 1 cpu-clock: 1000 work\n"
	p, err := read.Read(strings.NewReader(text), read.Options{}, profile.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	again, err := read.Read(bytes.NewReader(written(t, "folded", p)), read.Options{}, profile.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if s := again.Samples; len(s) != 1 || again.Frames[s[0].Stack[len(s[0].Stack)-1]].Function != "#spy" {
		t.Errorf("%+v, %+v", s, again.Frames)
	}
}

// TestSpeedscope reads the fields that the schema of speedscope requires.
func TestSpeedscope(t *testing.T) {
	p := recorded(t, "shares.txt.gz")
	var file struct {
		Schema string `json:"$schema"`
		Shared struct {
			Frames []struct{ Name string }
		}
		Profiles []struct {
			Type, Name, Unit     string
			StartValue, EndValue int64
			Samples              [][]int
			Weights              []int64
		}
	}
	if err := json.Unmarshal(written(t, "speedscope", p), &file); err != nil {
		t.Fatal(err)
	}
	one := file.Profiles[0]
	if file.Schema != "https://www.speedscope.app/file-format-schema.json" || one.Type != "sampled" || one.Unit != "nanoseconds" || one.EndValue != p.Total() || len(one.Samples) != len(one.Weights) {
		t.Errorf("the profile is %+v", one)
	}
	var sum, three int64
	for i, s := range one.Samples {
		sum += one.Weights[i]
		if file.Shared.Frames[s[len(s)-1]].Name == "three" { // the innermost frame is the last
			three += one.Weights[i]
		}
	}
	if sum != p.Total() || three != 186*5025125 {
		t.Errorf("weights add up to %d of %d, those of three to %d", sum, p.Total(), three)
	}
}

// hostileNames are names of functions that are something else in one of the formats.
var hostileNames = []string{
	`<script>alert(1)</script>`, `"onload="alert(1)`, `</title></svg><img src=x onerror=alert(1)>`, `]]>`, `a;b 100`, "x\n1;2 3", "\x1b[31m\xff", "&amp;&#x3c;", "-->", "javascript:alert(1)",
	strings.Repeat("long", 3000),
}

func hostile(t *testing.T) *profile.Profile {
	t.Helper()
	b := profile.NewBuilder("test", []profile.ValueType{{Type: "samples", Unit: "count"}}, profile.DefaultLimits())
	for _, name := range hostileNames {
		var stack []uint32
		for _, f := range []profile.Frame{{Function: name, Library: name, File: name}, {Function: "main"}} {
			i, err := b.Frame(f)
			if err != nil {
				t.Fatal(err)
			}
			stack = append(stack, i)
		}
		if err := b.Add(stack, []profile.Label{{Key: profile.Process, Value: name}}, 1000); err != nil {
			t.Fatal(err)
		}
	}
	return b.Profile()
}

// TestHostileNamesAreText parses the written files: there is no element, attribute, line or frame that a name made.
func TestHostileNamesAreText(t *testing.T) {
	p := hostile(t)
	svg := written(t, "svg", p)
	elements, titles := map[string]int{}, 0
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
			for _, a := range e.Attr {
				if !slices.Contains(strings.Fields("xmlns viewBox width height role aria-label class x y data-name"), a.Name.Local) {
					t.Errorf("attribute %s", a.Name.Local)
				}
			}
			if e.Name.Local == "title" {
				titles++
			}
		}
	}
	if titles != len(hostileNames)+1 || elements["g"] != titles || elements["rect"] != titles+1 || len(elements) != 6 {
		t.Errorf("elements are %v", elements)
	}
	page := string(written(t, "html", p))
	if strings.Count(page, "<script>") != 1 || strings.Contains(page, "<img") || !strings.Contains(page, "default-src 'none'") {
		t.Error("a name became a part of the page")
	}
	if lines := bytes.Count(written(t, "folded", p), []byte("\n")); lines != len(hostileNames) {
		t.Errorf("%d lines of folded stacks, want %d", lines, len(hostileNames))
	}
	if data := written(t, "speedscope", p); !json.Valid(data) || bytes.Contains(data, []byte("<script>")) {
		t.Error("the file of speedscope is not valid, or has a name that is HTML")
	}
}

// TestFlameGraph: widths are shares, and each frame is above its caller and within it.
func TestFlameGraph(t *testing.T) {
	p := recorded(t, "python.txt.gz")
	l := layout(p)
	bars, least, depth := l.bars, l.least, l.depth
	total := p.Total()
	value := func(b bar) int64 { return b.values[p.Main] }
	if least != 15348 || depth < 10 { // total / 6000
		t.Errorf("frames of %d and more are drawn, %d rows", least, depth)
	}
	var root int64
	for i, b := range bars {
		if b.depth == 0 {
			root += value(b)
			continue
		}
		parent := bars[i-1]
		for j := i - 1; parent.depth >= b.depth; j-- {
			parent = bars[j]
		}
		if parent.depth != b.depth-1 || b.from < parent.from || b.from+value(b) > parent.from+value(parent) {
			t.Errorf("%+v is not within %+v", b, parent)
		}
	}
	if root != total {
		t.Errorf("the lowest row is %d of %d", root, total)
	}
	// A million narrow frames: the narrowest are omitted, and the caption says so.
	wide := profile.NewBuilder("test", []profile.ValueType{{Type: "samples", Unit: "count"}}, profile.DefaultLimits())
	for i := range 5000 {
		var stack []uint32
		for d := range 20 {
			f, err := wide.Frame(profile.Frame{Function: fmt.Sprint(i, " ", d)})
			if err != nil {
				t.Fatal(err)
			}
			stack = append(stack, f)
		}
		if err := wide.Add(stack, nil, int64(1000+i%2*1000)); err != nil {
			t.Fatal(err)
		}
	}
	l = layout(wide.Profile())
	least = l.least
	if len(l.bars) > mostBars || least < 2000 || !strings.Contains(caption(wide.Profile(), least), "are not drawn") {
		t.Errorf("%d frames of at least %d", len(l.bars), least)
	}
}

func TestChoose(t *testing.T) {
	for file, want := range map[string]string{"a.pb.gz": "pprof", "a.folded": "folded", "a.otlp": "otlp", "a.speedscope.json": "speedscope", "a.svg": "svg", "b/a.html": "html"} {
		if f, err := Choose("", file); err != nil || f.Name != want {
			t.Errorf("%s is %s, %v", file, f.Name, err)
		}
	}
	if _, err := Choose("", "a.doc"); err == nil || !strings.Contains(err.Error(), "use --format with one of pprof, folded, otlp, speedscope, svg, html") {
		t.Errorf("an unknown extension: %v", err)
	}
	if _, err := Choose("pdf", "a.svg"); err == nil || !strings.Contains(err.Error(), `--format "pdf"`) {
		t.Errorf("an unknown format: %v", err)
	}
}
