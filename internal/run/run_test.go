// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

var began = time.UnixMilli(1_700_000_000_000).UTC()

func second(n float64) time.Time { return began.Add(time.Duration(n * float64(time.Second))) }

var (
	calls  = &Series{Name: "calls_total", Labels: map[string]string{"workload": "a \"b\"\n", "syscall": "read"}, Kind: Counter, Unit: "calls"}
	memory = &Series{Name: "memory_bytes", Kind: Gauge, Unit: "bytes"}
)

// example writes a run of four samples. Calls restart from zero in the third, and memory is gone in it.
func example(t *testing.T, out io.Writer) {
	t.Helper()
	w, err := NewWriter(out, Meta{Started: began, Command: []string{"redis-benchmark", "-q"}, Interval: 1})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	for n, v := range [][]Value{
		{{calls, 100}, {memory, 5}},
		{{calls, 160}, {memory, 5}},
		{{calls, 7}, {&Series{Name: "late", Kind: Gauge}, math.Inf(1)}},
		{{calls, 17}, {memory, 8}},
	} {
		_, err := w.Sample(second(float64(n)), v)
		must(err)
	}
	must(w.Phase(Phase{Name: Whole, Repetition: 1, From: second(0), To: second(3)}))
	must(w.Outcome(Outcome{Repetition: 1, Name: "throughput", Unit: "operations_per_second", Value: 43010, Better: "higher", From: "redis-benchmark"}))
	must(w.Note("the load was short"))
	must(w.SetMeta(Meta{Started: began, Command: []string{"redis-benchmark", "-q"}, Interval: 1, Conditions: []Condition{{Name: "kernel", Value: "6.12", Kind: "identity"}}}))
	must(w.Close(End{Time: second(3), Reason: "done", Status: []int{0}}))
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	var file bytes.Buffer
	example(t, &file)
	r, err := Read(&file)
	if err != nil || r.Damaged != nil {
		t.Fatal(err, r.Damaged)
	}
	if len(r.Series) != 2 || r.Series[0].ID() != `calls_total{syscall="read",workload="a \"b\"\n"}` || r.Series[0].Kind != Counter || r.Series[1].Unit != "bytes" {
		t.Errorf("series %+v", r.Series)
	}
	if want := []float64{100, 160, 7, 17}; !reflect.DeepEqual(r.Series[0].Values, want) {
		t.Errorf("calls are %v, want %v", r.Series[0].Values, want)
	}
	if v := r.Series[1].Values; v[0] != 5 || v[1] != 5 || !math.IsNaN(v[2]) || v[3] != 8 {
		t.Errorf("memory is %v, want 5, 5, none, 8", v)
	}
	if !r.Times[3].Equal(second(3)) || r.Meta.Conditions[0].Value != "6.12" || r.Outcomes[0].Value != 43010 || r.Notes[0] != "the load was short" ||
		r.End == nil || r.End.Reason != "done" || !r.Phases[0].To.Equal(second(3)) {
		t.Errorf("read %+v", r)
	}
}

func TestTotals(t *testing.T) {
	var file bytes.Buffer
	example(t, &file)
	r, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	none := math.NaN()
	for _, c := range []struct {
		series, from, to int
		want             float64
	}{
		{0, 0, 4, 77},   // 60, then 7 after a restart, then 10
		{0, 1, 2, none}, // one sample says no increase
		{0, 1, 3, 7},
		{0, 2, 2, none},
		{1, 0, 4, 6}, // mean of 5, 5 and 8
		{1, 2, 3, none},
	} {
		if got := r.Series[c.series].Total(c.from, c.to); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("series %d from %d to %d: %v, want %v", c.series, c.from, c.to, got, c.want)
		}
	}
}

// A counter that the agent did not export at first was zero, if the recorder says so. Its first increase counts.
func TestSeriesThatBeginLate(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, Meta{})
	if err != nil {
		t.Fatal(err)
	}
	zero := 0.0
	late := &Series{Name: "late_total", Kind: Counter, Before: &zero}
	unknown := &Series{Name: "unknown_total", Kind: Counter}
	for n, v := range [][]Value{{{memory, 5}}, {{memory, 5}, {late, 7}, {unknown, 7}}, {{late, 9}, {unknown, 9}}} {
		if _, err := w.Sample(second(float64(n)), v); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Read(&file)
	if err != nil || len(r.Series) != 3 {
		t.Fatal(err, r)
	}
	for i, want := range []float64{9, 2} {
		if got := r.Series[1+i].Total(0, 3); got != want {
			t.Errorf("%s increased by %v, want %v", r.Series[1+i].Name, got, want)
		}
	}
}

// If any number of bytes reached the disk, the samples in them are read.
func TestCutFilesAreRead(t *testing.T) {
	var file bytes.Buffer
	example(t, &file)
	whole, samples := file.Bytes(), 0
	for n := range whole {
		r, err := Read(bytes.NewReader(whole[:n]))
		if err != nil {
			if samples > 0 || !errors.Is(err, errFormat) {
				t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
			}
			continue
		}
		if len(r.Times) < samples || r.End != nil {
			t.Fatalf("%d of %d bytes have %d samples, fewer bytes had %d; end %v", n, len(whole), len(r.Times), samples, r.End)
		}
		samples = len(r.Times)
	}
	if samples != 4 {
		t.Errorf("all bytes but one have %d samples, want 4", samples)
	}
}

// The documented format is what other programs see: JSON lines, compressed with zstd.
func TestOtherProgramsReadIt(t *testing.T) {
	file := t.TempDir() + "/run"
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	example(t, f) // closes it
	cmd := exec.Command("sh", "-c", `zstd -dc <"$1" | jq -sr '[.[0].teescope_run, ([.[] | .sample // empty] | length), (.[] | .outcome // empty | .value)] | map(tostring) | join(" ")'`, "sh", file)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "1 4 43010" {
		t.Errorf("%v: %s, want 1 4 43010", err, out)
	}
}

// Files of this and every older version stay readable.
func TestOlderFiles(t *testing.T) {
	r, err := Open("testdata/v1.tsrun")
	if err != nil || r.Damaged != nil {
		t.Fatal(err, r)
	}
	if len(r.Times) != 4 || len(r.Series) != 2 || r.Series[0].Values[1] != 160 || r.End == nil {
		t.Errorf("read %+v", r)
	}
}

func TestDoesNotReplace(t *testing.T) {
	name := t.TempDir() + "/run"
	for i, want := range []bool{true, false} {
		w, err := Create(name, Meta{})
		if (err == nil) != want {
			t.Fatalf("%d: %v", i, err)
		}
		if err == nil {
			if err := w.Close(End{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// pack makes a file of lines.
func pack(t testing.TB, text string) []byte {
	t.Helper()
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	return e.EncodeAll([]byte(text), nil)
}

func TestAnEmptyFile(t *testing.T) {
	if _, err := Read(strings.NewReader("")); !errors.Is(err, errFormat) || err.Error() != "not a run file of teescope: it is empty" {
		t.Error(err)
	}
}

func TestBadFiles(t *testing.T) {
	const head = `{"teescope_run":1}` + "\n" + `{"series":[{"name":"a","kind":"gauge"}]}` + "\n"
	for _, c := range []struct{ text, want string }{
		{"", "not a run file"},
		{"{}\n", "not a run file"},
		{"hello\n", "not a run file"},
		{`{"teescope_run":2}` + "\n", "version 2"},
		{head + `{"sample":{"t":1,"ids":[1],"values":[1]}}` + "\n", "line 3: a sample of series 1 of 1"},
		{head + `{"sample":{"t":1,"ids":[-1],"values":[1]}}` + "\n", "line 3: a sample of series -1 of 1"},
		{head + `{"sample":{"t":1,"ids":[0],"values":[]}}` + "\n", "line 3: a sample of 1 series with 0 values"},
		{head + `{"sample":{"t":2}}` + "\n" + `{"sample":{"t":2}}` + "\n", "line 4: a sample that is not later"},
		{head + `{"series":[null]}` + "\n", "line 3: a series without a name"},
		{head + "{\n", "line 3: "},
	} {
		r, err := Read(bytes.NewReader(pack(t, c.text)))
		if err == nil {
			err = r.Damaged
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := Read(strings.NewReader("no zstd")); !errors.Is(err, errFormat) {
		t.Errorf("text: %v", err)
	}
}

// A small file must not become a large amount of memory or time.
func TestBombs(t *testing.T) {
	const head = `{"teescope_run":1}` + "\n"
	for name, text := range map[string]string{
		"a line without end": head + strings.Repeat(" ", maxLine+1<<20),
		"series":             head + strings.Repeat(`{"series":[`+strings.Repeat(`{"name":"a"},`, 9999)+`{"name":"a"}]}`+"\n", 11),
		"notes":              head + strings.Repeat(`{"note":"a"}`+"\n", maxOthers+1),
	} {
		began := time.Now()
		r, err := Read(bytes.NewReader(pack(t, text)))
		if err == nil {
			err = r.Damaged
		}
		if err == nil || time.Since(began) > time.Minute {
			t.Errorf("%s: %v after %v", name, err, time.Since(began))
		}
	}
}

// Samples without a series, and records with many members that are not read, do not evade the limits of a reader.
func TestBombsOfSamples(t *testing.T) {
	const head = `{"teescope_run":1}` + "\n"
	within := Limits{File: 8 << 20, Line: 4 << 20, Text: 8 << 20, All: 16 << 20, Samples: 160_000}
	var times, ballast strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&times, `{"sample":{"t":%d}}`+"\n", i+1)
	}
	for i := range 20 {
		fmt.Fprintf(&ballast, `{"sample":{"t":%d},"x":"%s"}`+"\n", i+1, strings.Repeat("x", 1<<20))
	}
	for text, want := range map[string]string{times.String(): "more than 160000 values", ballast.String(): "more than 16 MiB after unpacking"} {
		r, err := ReadWithin(bytes.NewReader(pack(t, head+text)), within)
		if err != nil || r.Damaged == nil || !strings.Contains(r.Damaged.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	var file bytes.Buffer
	w, err := NewWriter(&file, Meta{})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := w.Sample(began, []Value{{memory, 1}}); err != nil {
		f.Fatal(err)
	}
	f.Add(`{"teescope_run":1}` + "\n" + `{"series":[{"name":"a","kind":"gauge"}]}` + "\n" + `{"sample":{"t":1,"ids":[0],"values":[1]}}` + "\n")
	f.Add(`{"teescope_run":1}` + "\n" + `{"phase":{"name":"run","repetition":1}}` + "\n" + `{"end":{"reason":"done"}}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, data := range [][]byte{[]byte(text), pack(t, text)} {
			r, err := Read(bytes.NewReader(data))
			if err != nil {
				continue
			}
			for _, s := range r.Series {
				if len(s.Values) != len(r.Times) {
					t.Fatalf("%d values for %d times", len(s.Values), len(r.Times))
				}
				s.Total(0, len(r.Times))
			}
		}
	})
}

// A line of 60 MB can have 20 million objects, which took gigabytes of memory from a file of 5 kB.
func TestBombsOfObjects(t *testing.T) {
	read := func(lines ...string) error {
		r, err := Read(bytes.NewReader(pack(t, `{"teescope_run":1}`+"\n"+strings.Join(lines, "\n")+"\n")))
		if err != nil {
			t.Fatal(err)
		}
		return r.Damaged
	}
	list := func(before, one, after string, n int) string {
		return before + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + after
	}
	for what, lines := range map[string][]string{
		"conditions": {list(`{"meta":{"conditions":[`, "{}", "]}}", maxObjects)},
		"series":     {list(`{"series":[`, "{}", "]}", maxObjects)},
		"functions":  {list(`{"profile":{"functions":[`, "{}", "]}}", maxObjects)},
		"arguments":  {list(`{"meta":{"command":[`, `""`, "]}}", maxQuotes/2)},
		"records":    strings.Split(strings.Repeat(list(`{"profile":{"functions":[`, "{}", "]}}", maxObjects-10)+"\n", 1+maxAllObjects/maxObjects), "\n")[:1+maxAllObjects/maxObjects],
	} {
		if err := read(lines...); !errors.Is(err, errParts) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := read(list(`{"series":[`, `{"name":"x","labels":{"workload":"a","syscall":"read","container":"","pod":"","namespace":""},"kind":"counter","unit":"calls"}`, "]}", MaxSeries)); err != nil {
		t.Errorf("as many series as a file may have: %v", err)
	}
}
