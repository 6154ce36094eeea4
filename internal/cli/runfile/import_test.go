// SPDX-License-Identifier: Apache-2.0

package runfile

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/goldentest"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/compare"
)

var update = flag.Bool("update", false, "write the golden files again")

// stored returns a run as a reader of its file has it.
func stored(t testing.TB, r *run.Run) *run.Run {
	t.Helper()
	var file bytes.Buffer
	if err := run.Write(&file, r); err != nil {
		t.Fatal(err)
	}
	read, err := run.Read(&file)
	if err != nil || read.Damaged != nil {
		t.Fatal(err, read)
	}
	return read
}

// unlike returns what differs between two runs. Two absent values are equal.
func unlike(a, b *run.Run) string {
	one, other := *a, *b
	one.Series, other.Series = nil, nil
	if !reflect.DeepEqual(one, other) {
		return fmt.Sprintf("%+v\nis not\n%+v", one, other)
	}
	if len(a.Series) != len(b.Series) {
		return fmt.Sprintf("%d series are not %d", len(a.Series), len(b.Series))
	}
	for i, s := range a.Series {
		x, y := *s, *b.Series[i]
		for at, v := range x.Values {
			if w := y.Values[at]; v != w && !(math.IsNaN(v) && math.IsNaN(w)) {
				return fmt.Sprintf("%s at %d is %v and %v", s.ID(), at, v, w)
			}
		}
		if x.Values, y.Values = nil, nil; !reflect.DeepEqual(x, y) {
			return fmt.Sprintf("%+v is not %+v", x, y)
		}
	}
	return ""
}

// anyRun is a random run with what a recorder can write.
func anyRun(t testing.TB, random *rand.Rand) *run.Run {
	word := func() string {
		letters := []rune("aZ_09=\"\\\n ,{}'+-@#éß€")
		var b strings.Builder
		for range random.IntN(6) {
			b.WriteRune(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	number := func() float64 {
		switch random.IntN(5) {
		case 0:
			return 0
		case 1:
			return float64(random.IntN(1e6))
		case 2:
			return -random.ExpFloat64()
		case 3:
			return math.Float64frombits(random.Uint64N(math.Float64bits(math.MaxFloat64)))
		}
		return random.NormFloat64()
	}
	names := map[string]run.Kind{
		"teescope_syscalls_total": run.Counter, "teescope_ocall_seconds_sum": run.Counter, "node_vmstat_pgfault": run.Counter, "a_seconds_bucket": run.Counter,
		"teescope_processes": run.Gauge, "x_total_bytes": run.Gauge, "odd_total": run.Gauge, "odd_sum": run.Gauge, "node_load1": run.Gauge,
	}
	r := &run.Run{Meta: run.Meta{
		Teescope: "1", Started: time.UnixMilli(1_700_000_000_123).UTC(), Command: []string{word(), word()}, Interval: random.Float64(),
		Labels: map[string]string{"a": word()}, Conditions: []run.Condition{{Name: "kernel", Value: word(), Kind: "identity"}},
	}}
	at := int64(1_700_000_000_000)
	for range random.IntN(6) {
		at += 1 + random.Int64N(100_000)
		r.Times = append(r.Times, time.UnixMilli(at).UTC())
	}
	taken := map[string]bool{}
	for name, kind := range names {
		for range random.IntN(3) {
			s := &run.Series{Name: name, Kind: kind, Unit: run.Unit(name), Values: []float64{}}
			for _, label := range []string{"workload", "x"} {
				if v := word(); v != "" {
					if s.Labels == nil {
						s.Labels = map[string]string{}
					}
					s.Labels[label] = v
				}
			}
			if taken[s.ID()] {
				continue
			}
			taken[s.ID()] = true
			if random.IntN(4) == 0 {
				before := number()
				s.Before = &before
			}
			for range r.Times {
				v := number()
				if random.IntN(3) == 0 {
					v = math.NaN()
				}
				s.Values = append(s.Values, v)
			}
			r.Series = append(r.Series, s)
		}
	}
	if n := len(r.Times); n > 1 {
		r.Phases = append(r.Phases, run.Phase{Name: run.Whole, Repetition: 1, From: r.Times[0], To: r.Times[n/2]}, run.Phase{Name: run.Whole, Repetition: 2, From: r.Times[n/2], To: r.Times[n-1]})
	}
	for i := range random.IntN(4) {
		r.Outcomes = append(r.Outcomes, run.Outcome{Repetition: 1 + i%2, Name: "o" + word(), Unit: word(), Value: number(), Better: "higher", From: "x", Note: word()})
	}
	if random.IntN(2) == 0 {
		r.Notes = append(r.Notes, "note "+word())
		r.Profiles = append(r.Profiles, run.Profile{Type: "pprof", Data: []byte(word() + "x")})
		r.End = &run.End{Time: time.UnixMilli(at).UTC(), Reason: "done", Status: []int{0, 1}}
	}
	return stored(t, r)
}

// What is exported as JSON and imported is the same run. What is exported as text and imported is exported the same, and
// has the same values.
func TestWhatIsExportedIsImported(t *testing.T) {
	for seed := range uint64(400) {
		r := anyRun(t, rand.New(rand.NewPCG(seed, 1)))
		got, err := parse([]byte(exported(t, r, "json")), "json")
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := unlike(r, stored(t, got)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		for _, format := range []string{"openmetrics", "csv"} {
			text := exported(t, r, format)
			got, err := parse([]byte(text), format)
			if err != nil && err.Error() == "it has no samples" && len(slices.Concat(valuesOf(r)...)) == 0 {
				continue
			}
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, text)
			}
			got = stored(t, got)
			if again := exported(t, got, format); again != text {
				t.Fatalf("seed %d:\n%s\nbecomes\n%s", seed, text, again)
			}
			sameValues(t, r, got)
		}
	}
}

// valuesOf returns the values of each series that are there.
func valuesOf(r *run.Run) [][]float64 {
	var all [][]float64
	for _, s := range r.Series {
		all = append(all, slices.DeleteFunc(slices.Clone(s.Values), math.IsNaN))
	}
	return all
}

// sameValues checks that a run has each value of another, with the kind and the unit of its series.
func sameValues(t *testing.T, r, got *run.Run) {
	t.Helper()
	at, series := map[int64]int{}, map[string]*run.Series{}
	for i, when := range got.Times {
		at[when.UnixMilli()] = i
	}
	for _, s := range got.Series {
		series[s.ID()] = s
	}
	for _, s := range r.Series {
		for i, v := range s.Values {
			if math.IsNaN(v) {
				continue
			}
			same := series[s.ID()]
			if same == nil || same.Kind != s.Kind || same.Unit != s.Unit || same.Values[at[r.Times[i].UnixMilli()]] != v {
				t.Fatalf("%s is %v at %v: %+v", s.ID(), v, r.Times[i], same)
			}
		}
	}
}

// The recorded file of the package run, in each format. The golden files also show what other programs get.
func TestGoldenExports(t *testing.T) {
	r, err := run.Open("../../run/testdata/v1.tsrun")
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"openmetrics", "csv", "json"} {
		golden := filepath.Join("testdata", "v1."+format)
		text := exported(t, r, format)
		goldentest.Check(t, golden, text, *update)
		got, err := importFile(golden, "")
		if err != nil {
			t.Fatal(err)
		}
		if again := exported(t, stored(t, got), format); again != text {
			t.Errorf("%s: the golden file becomes\n%s", format, again)
		}
		if format == "json" {
			if diff := unlike(r, stored(t, got)); diff != "" {
				t.Error(diff)
			}
		}
	}
}

// Text of other programs: that of promtool tsdb dump-openmetrics, which has no types, and the text of Prometheus, whose
// times are milliseconds.
func TestImportsOfOtherPrograms(t *testing.T) {
	for name, text := range map[string]string{
		"OpenMetrics": "up{instance=\"a:1\"} 1 1700000000.5\nup{instance=\"a:1\"} 0 1700000001.5\n" +
			"calls_total{x=\"} 1\"} 5 1.7000000005e9 # {trace_id=\"}\"} 0.67\nup{instance=\"a:1\"} NaN 1700000002.5\n# EOF\n",
		"Prometheus": "# TYPE up gauge\nup {instance=\"a:1\",empty=\"\"} 1 1700000000500\ncalls_total{x=\"} 1\"} 5 1700000000500\r\nup{instance=\"a:1\"} 0 1700000001500\n",
	} {
		r, err := parse([]byte(text), recognise([]byte(text)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(r.Times) != 2 || r.Times[1].UnixMilli() != 1_700_000_001_500 || len(r.Series) != 2 || r.Series[0].ID() != `calls_total{x="} 1"}` ||
			r.Series[0].Kind != run.Counter || r.Series[1].Kind != run.Gauge || r.Series[1].Values[1] != 0 || !math.IsNaN(r.Series[0].Values[1]) || r.Meta.Interval != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// Each line of a Go benchmark is a repetition, so that two plain outputs compare. The second has half the time, and 8
// repetitions are enough to say so.
func TestBenchmarkOutputsCompare(t *testing.T) {
	output := func(scale float64) string {
		var b strings.Builder
		b.WriteString("goos: linux\ngoarch: amd64\npkg: example.org/x\ncpu: Some CPU @ 2.00GHz\n")
		for i := range 8 {
			fmt.Fprintf(&b, "BenchmarkGet-2   \t 1000\t %g ns/op\t 16 B/op\n", scale*float64(1000+i))
		}
		for i := range 7 {
			fmt.Fprintf(&b, "BenchmarkSet-2   \t 1000\t %g ns/op\t 16 B/op\n", float64(2000+i))
		}
		b.WriteString("PASS\nok  \texample.org/x\t1.0s\n")
		return b.String()
	}
	var records []*compare.Record
	folder := t.TempDir()
	for i, scale := range []float64{1, 0.5} {
		file := filepath.Join(folder, fmt.Sprintf("%d.txt", i))
		if err := os.WriteFile(file, []byte(output(scale)), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := importFile(file, "")
		if err != nil {
			t.Fatal(err)
		}
		if r.Meta.Started.IsZero() || len(r.Phases) != 8 || len(r.Outcomes) != 15*3 {
			t.Errorf("%+v", r)
		}
		records = append(records, compare.Extract(stored(t, r), file, nil))
	}
	sets, err := compare.Split(records, []string{"", ""}, "")
	if err != nil {
		t.Fatal(err)
	}
	table, err := compare.Compare(sets[0], compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]compare.Verdict{}
	for _, row := range table.Rows {
		verdicts[row.Metric.ID()] = row.Cells[1].Change.Verdict
	}
	if verdicts["Get.time_per_operation"] != compare.Better || verdicts["Set.time_per_operation"] != compare.Noise || len(table.Differences) != 0 {
		t.Errorf("%v, %+v", verdicts, table.Differences)
	}
}

func TestWrongImports(t *testing.T) {
	const head = "time,repetition,series,kind,unit,value\n"
	for _, c := range []struct{ format, text, want string }{
		{"", "", "it is empty"},
		{"", "\x28\xb5\x2f\xfd...", "unpack the file with zstd -d"},
		{"", "hello\n", "line 1: a sample is a series, a value and a time"},
		{"xml", "a", "use one of openmetrics"},
		{"", "a 1\n", "line 1: a has no time"},
		{"", "a 1 2\n\na x 3\n", `line 3: the value "x" is not a number`},
		{"", "a 1 1e300\n", `line 1: the time "1e300" is not a number`},
		{"", "a 1 -5\n", "line 1: the time is not between 1970 and 2106"},
		{"", "a{b=} 1 2\n", "line 1: \"a{b=}\" is not a name with labels"},
		{"", "a{b=\"c\" 1 2\n", "line 1: a sample is"},
		{"", "a 1 5\na 2 5\n", "a has two values at 1970-01-01T00:00:00.005Z: 1 and 2"},
		{"", "# EOF\n", "it has no samples"},
		{"csv", "a,b\n", "the first line is not time,"},
		{"", head + "x,,a,gauge,,1\n", `line 2: the time "x"`},
		{"", head + "2026-01-02T03:04:05Z,0,a,gauge,,1\n", `line 2: the repetition "0"`},
		{"", head + "2026-01-02T03:04:05Z,,a,rate,,1\n", `line 2: the kind "rate" is unknown`},
		{"", head + "2026-01-02T03:04:05Z,,a,gauge,,1\n2026-01-02T03:04:06Z,,a,counter,,1\n", "line 3: a was of the kind gauge"},
		{"", head + ",1,p99,outcome,seconds,NaN\n", "line 2: the outcome p99 has no finite value"},
		{"", head + "a,b\n", "record on line 2: wrong number of fields"},
		{"json", "{\n  x", "line 2: "},
		{"json", `{"times":["2026-01-02T03:04:05Z"],"series":[{"name":"a","values":[]}]}`, "the series a has 0 values for 1 times"},
		{"json", `{"series":[{"values":[]}]}`, "series 1 has no name"},
		{"benchfmt", "hello", "no known benchmark wrote it"},
	} {
		format := c.format
		if format == "" {
			format = recognise([]byte(c.text))
		}
		if r, err := parse([]byte(c.text), format); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, %+v, want %q", c.text, err, r, c.want)
		}
	}
	if _, err := importFile(t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), "importing a run") {
		t.Errorf("%v", err)
	}
}

// Text with many series at different times would be large in memory, and is refused before.
func TestImportsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 8000 {
		fmt.Fprintf(&b, "a{x=\"%d\"} 1 %d\n", i, i+1)
	}
	if r, err := parse([]byte(b.String()), "openmetrics"); err == nil || !strings.Contains(err.Error(), "absent ones included") {
		t.Errorf("%v, %v", err, r != nil)
	}
}

func FuzzImport(f *testing.F) {
	for _, format := range []string{"openmetrics", "csv", "json", "benchfmt"} {
		f.Add([]byte(exported(f, example(), format)))
	}
	f.Add([]byte("# TYPE a counter\na_total {x=\"}\"} 1 1.5 # {y=\"z\"} 1\n# EOF\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parse(data, recognise(data))
		if err != nil {
			for _, c := range err.Error() {
				if c < ' ' && c != '\n' {
					t.Fatalf("the error has control characters: %q", err)
				}
			}
			return
		}
		var file bytes.Buffer
		if run.Write(&file, r) != nil {
			return // it says what a reader would refuse
		}
		got, err := run.Read(&file)
		if err != nil || got.Damaged != nil || len(got.Series) != len(r.Series) || len(got.Times) != len(r.Times) {
			t.Fatalf("what is written cannot be read: %v, %+v", err, got)
		}
	})
}
