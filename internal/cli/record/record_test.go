// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/runs"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/condition"
	"github.com/teescope/teescope/internal/run/outcome"
)

var began = time.UnixMilli(1_700_000_000_000)

// course makes the activity of a load with these calls per second, a sample each second.
func course(perSecond ...float64) []activity {
	all, calls := []activity{{at: began}}, 0.0
	for i, n := range perSecond {
		calls += n
		all = append(all, activity{at: began.Add(time.Duration(i+1) * time.Second), calls: calls})
	}
	return all
}

// level repeats a rate with the same noise of 4 % at most.
func level(rate float64, n int) []float64 {
	noise, all := rand.New(rand.NewPCG(1, 2)), make([]float64, n)
	for i := range all {
		all[i] = rate * (1 + 0.04*(2*noise.Float64()-1))
	}
	return all
}

func join(parts ...[]float64) (all []float64) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func TestOutlasts(t *testing.T) {
	for _, c := range []struct {
		name          string
		rates         []float64
		before, after time.Duration
	}{
		{"busy", level(1000, 30), 0, 0},
		{"too short to tell", join(level(1000, 3), level(0, 3)), 0, 0},
		{"idle at the end", join(level(1000, 20), level(2, 10)), 0, 10 * time.Second},
		{"idle at the start", join(level(0, 5), level(1000, 20)), 5 * time.Second, 0},
		{"a sixth has a load", join(level(1000, 6), level(2, 30)), 0, 30 * time.Second},
		{"two intervals of thirty with much more", join(level(1000, 14), level(50_000, 2), level(1000, 14)), 0, 0},
		{"a pause", join(level(1000, 10), level(0, 5), level(1000, 10)), 0, 0},
		{"a short end", join(level(1000, 30), level(0, 2)), 0, 0},
	} {
		if before, after := outlasts(course(c.rates...)); before != c.before || after != c.after {
			t.Errorf("%s: %s before and %s after, want %s and %s", c.name, before, after, c.before, c.after)
		}
	}
}

func TestSteadyFrom(t *testing.T) {
	for _, c := range []struct {
		name         string
		rates        []float64
		begin, later int
	}{
		{"steady", level(1000, 40), 0, 0},
		{"a start of 10 s", join(level(200, 10), level(1000, 40)), 10, 0},
		{"two levels before", join(level(50, 10), level(300, 10), level(1000, 60)), 20, 0},
		{"falls late", join(level(1000, 40), level(200, 20)), 0, 1},
	} {
		if begin, later := steadyFrom(c.rates); begin != c.begin || later != c.later {
			t.Errorf("%s: steady from %d and %d changes later, want %d and %d", c.name, begin, later, c.begin, c.later)
		}
	}
}

// fakeAgent answers with expositions in turn.
type fakeAgent struct {
	answers []string
	n       int
}

func (f *fakeAgent) scrape(context.Context) (answer, error) {
	if f.n == len(f.answers) {
		return answer{}, errors.New("gone")
	}
	f.n++
	at := began.Add(time.Duration(f.n) * time.Second)
	return answer{asked: at, answered: at.Add(time.Second / 5), text: []byte(f.answers[f.n-1])}, nil
}

func sampled(t *testing.T, chosen []string, late string, answers ...string) (*run.Run, observed) {
	t.Helper()
	s, file := newSampler(t, &fakeAgent{answers: answers}, chosen)
	_, err := s.begin(t.Context())
	for range len(answers) - 2 {
		if late != "" {
			s.chooser.choose(late, true)
		}
		err = errors.Join(err, s.tick(t.Context()))
	}
	_, state, err2 := s.end(t.Context())
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return readRun(t, file), state
}

// newSampler returns a sampler and its file.
func newSampler(t *testing.T, a source, chosen []string) (*sampler, *bytes.Buffer) {
	t.Helper()
	file := new(bytes.Buffer)
	out, err := run.NewWriter(file, run.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	return &sampler{source: a, chooser: newChooser(t.TempDir(), t.TempDir(), nil, chosen), counting: &counting{}, reader: newReader(), out: out, series: map[string]*run.Series{}, images: map[string]string{}, state: newObserved()}, file
}

func readRun(t *testing.T, file *bytes.Buffer) *run.Run {
	t.Helper()
	r, err := run.Read(file)
	if err != nil || r.Damaged != nil {
		t.Fatal(err, r.Damaged)
	}
	return r
}

// The enclaves of the command begin with the repetition, and those of a server that is watched have begun before.
func TestLateCounts(t *testing.T) {
	_, state := sampled(t, []string{"mine", "server"}, "", `sgx_workload_enclaves{workload="server"} 1
`, `sgx_workload_enclaves{workload="server"} 1
sgx_workload_enclaves{workload="mine"} 1
sgx_workload_enclaves{workload="ended"} 0
`)
	if got := lateCounted(state, map[string]bool{"mine": true, "ended": true}); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("counted late are %q", got)
	}
}

// What is unsteady is reported while it is recorded: after a few samples, and each reason once.
func TestUnsteadinessIsToldAtOnce(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	r := &recording{show: newProgress(write, ""), warned: map[string]bool{}, sampler: &sampler{state: newObserved()}}
	machine := &r.sampler.state.machine.Steadiness
	for n := range 2 * fewSamples {
		at := float64(n)
		machine.Add(condition.Sample{At: began.Add(time.Duration(n) * time.Second), Busy: at, Total: 2 * at, CPUs: 2, Steal: -1, Throttled: -1, Swapped: -1})
		r.sampler.state.samples++
		if told := len(r.warned) > 0; told != (n >= fewSamples) {
			t.Errorf("after %d samples it is reported: %v", n+1, told)
		}
		r.warn(r.sampler.warnings())
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(read)
	if want := "teescope: unsteady so far: other programs used 1.0 of 2 CPUs while this was recorded, and 1.0 in the busiest interval\n"; err != nil || string(text) != want {
		t.Errorf("%v: %q, want %q", err, text, want)
	}
}

// The image of a container is a condition of the program, by the container's name. Others on the machine have none.
func TestImagesOfContainers(t *testing.T) {
	text := `teescope_container_info{workload="app-1",container="app-1",name="web",image="localhost/web:2"} 1
teescope_container_info{workload="other",container="other",name="other",image="localhost/other:1"} 1
`
	s, _ := newSampler(t, &fakeAgent{answers: []string{text, text}}, []string{"app-1"})
	if _, err := s.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []run.Condition{{Name: "web.image", Value: "localhost/web:2", Kind: "program"}}
	if got := s.describeImages(); !reflect.DeepEqual(got, want) {
		t.Errorf("images are %+v, want %+v", got, want)
	}
}

// The families of control groups have no workload. Those of the chosen workloads are recorded, without which no rule judges limits.
func TestContainersOfChosenWorkloads(t *testing.T) {
	const info, throttled = `teescope_container_info{workload="%s",id="/box/%[1]s",name="%[1]s",image="app"} 1` + "\n",
		`container_cpu_cfs_throttled_seconds_total{id="/box/%s",name="x",image="app"} %d` + "\n"
	at := func(mine, other int) string {
		return "# TYPE container_cpu_cfs_throttled_seconds_total counter\n" + fmt.Sprintf(info, "mine") + fmt.Sprintf(info, "late") + fmt.Sprintf(info, "other") +
			fmt.Sprintf(throttled, "mine", mine) + fmt.Sprintf(throttled, "late", mine) + fmt.Sprintf(throttled, "other", other) +
			`container_cpu_cfs_throttled_seconds_total{name="x"} 7` + "\n"
	}
	r, _ := sampled(t, []string{"mine"}, "late", at(1, 5), at(2, 6), at(4, 7))
	for name, want := range map[string]float64{"mine": 3, "late": 2} {
		if got := total(t, r, `container_cpu_cfs_throttled_seconds_total{id="/box/`+name+`",image="app",name="x"}`); got != want {
			t.Errorf("%s was throttled for %v s, want %v", name, got, want)
		}
	}
	if len(r.Series) != 4 {
		t.Errorf("%d series, want two of each chosen workload", len(r.Series))
	}
}

func total(t *testing.T, r *run.Run, id string) float64 {
	t.Helper()
	for _, s := range r.Series {
		if s.ID() == id {
			sum := s.Total(0, len(r.Times))
			if math.IsNaN(sum) {
				t.Fatalf("%s has no total", id)
			}
			return sum
		}
	}
	t.Fatalf("no series %s", id)
	return 0
}

const types = "# TYPE teescope_syscalls_total counter\n# TYPE teescope_transition_seconds histogram\n# TYPE node_vmstat_pgfault untyped\n"

// Totals are exact for counters that begin within the phase, and for workloads that are found after its start.
func TestTotalsOfLateSeries(t *testing.T) {
	const a, b = `teescope_syscalls_total{workload="a",container="",syscall="read"} `, `teescope_syscalls_total{workload="b",syscall="read"} `
	r, state := sampled(t, []string{"a"}, "b",
		types+"node_vmstat_pgfault 5\n"+b+"100\n"+`teescope_syscalls_total{workload="c",syscall="read"} 7`+"\ngo_threads 3\n",
		types+"node_vmstat_pgfault 6\n"+b+"130\n"+a+"20\n",
		types+"node_vmstat_pgfault 9\n"+b+"150\n"+a+"50\n"+`teescope_transition_seconds_bucket{workload="a",le="0.1"} 4`+"\n")
	for id, want := range map[string]float64{
		`teescope_syscalls_total{syscall="read",workload="a"}`:      50, // there was none at the start
		`teescope_syscalls_total{syscall="read",workload="b"}`:      50, // from 100
		`teescope_transition_seconds_bucket{le="0.1",workload="a"}`: 4,
		`node_vmstat_pgfault`: 4,
	} {
		if got := total(t, r, id); got != want {
			t.Errorf("%s increased by %v, want %v", id, got, want)
		}
	}
	if len(r.Series) != 4 {
		t.Errorf("%d series, want those of a, b and the machine", len(r.Series))
	}
	if got := state.calls["a"]; got != (span{0, 50}) {
		t.Errorf("calls of a are %v", got)
	}
}

func TestSampledCountsAreNoted(t *testing.T) {
	const at = types + "# TYPE teescope_sampling_variance_total counter\n" +
		`teescope_syscalls_total{workload="a",syscall="read"} %d` + "\n" +
		`teescope_sampling_variance_total{workload="a",family="syscalls"} %d` + "\n" +
		`teescope_sampling_ratio{probe="syscall"} %s` + "\n"
	_, exact := sampled(t, []string{"a"}, "", fmt.Sprintf(at, 0, 0, "1"), fmt.Sprintf(at, 1000, 0, "1"))
	if notes := sampledNotes(exact); len(notes) > 0 {
		t.Errorf("exact counts: %q", notes)
	}
	// The deviation is 100, so the interval is 196 of 1000 each way.
	_, wide := sampled(t, []string{"a"}, "", fmt.Sprintf(at, 500, 300, "1"), fmt.Sprintf(at, 1500, 10_300, "0.25"))
	notes := strings.Join(sampledNotes(wide), "\n")
	for _, want := range []string{"at least 25 %", "system calls of a is an estimate: 1000 ± 196 (95 %)"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q lacks %q", notes, want)
		}
	}
}

func TestLabelsAreBounded(t *testing.T) {
	labels := map[string]string{}
	for i := range maxLabels + 1 {
		labels[strconv.Itoa(i)] = ""
	}
	o := Options{Command: []string{"true"}, Repeat: 1, Interval: time.Second, Labels: labels}
	if err := o.check(); err == nil || !strings.Contains(err.Error(), "101 labels: use at most 100") {
		t.Errorf("%v", err)
	}
	delete(labels, "0")
	if err := o.check(); err != nil {
		t.Error(err)
	}
}

func TestParseMatrix(t *testing.T) {
	got, err := ParseMatrix([]string{"a=1,2", "b=x"})
	if err != nil || len(got) != 2 || got[0].Values[1] != "2" {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range [][]string{{"a"}, {"=1"}, {"a="}, {"a=1,"}, {"a=1,1"}, {"a=1", "a=2"}, {"a b=1"}, {"{a}=1"}} {
		if got, err := ParseMatrix(bad); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
}

// Each combination is there as often as it is repeated, each in a file of its own, in an order that the seed decides.
func TestSpots(t *testing.T) {
	p := plan{Settings: []Setting{{Name: "a", Values: []string{"x/y", "x y", "z"}}, {Name: "b", Values: []string{"1", "2"}}}, Repeat: 3, Seed: 5}
	first, err := p.spots("d")
	if err != nil || len(first) != 18 {
		t.Fatal(len(first), err)
	}
	files, points := map[string]bool{}, map[string]int{}
	for _, s := range first {
		files[s.file] = true
		points[fmt.Sprint(s.values)]++
		if filepath.Dir(s.file) != "d" {
			t.Errorf("%s is elsewhere", s.file)
		}
	}
	if len(files) != 18 || len(points) != 6 {
		t.Errorf("%d files, %d points", len(files), len(points))
	}
	again, _ := p.spots("d")
	p.Seed = 6
	other, _ := p.spots("d")
	if fmt.Sprint(again) != fmt.Sprint(first) || fmt.Sprint(other) == fmt.Sprint(first) {
		t.Error("the order does not follow from the seed")
	}
	o := p.options(Options{Command: []string{"run", "--a={a}", "{b}{b}", "{c}"}, Setup: "s {b}", Labels: map[string]string{"l": "{a}"}}, spot{values: map[string]string{"a": "{b}", "b": "2"}})
	if strings.Join(o.Command, " ") != "run --a={b} 22 {c}" || o.Setup != "s 2" || o.Labels["l"] != "{b}" || o.Labels["b"] != "2" {
		t.Errorf("%q, %q, %v", o.Command, o.Setup, o.Labels)
	}
}

// The table of a sweep is what correlate reads. A run that was cut off is done again.
func TestTableAndResumption(t *testing.T) {
	dir := t.TempDir()
	p := plan{Settings: []Setting{{Name: "size", Values: []string{"10", "2,0", "30"}}}, Repeat: 1, Seed: 1}
	spots, err := p.spots(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range spots {
		w, err := run.Create(at.file, run.Meta{})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Outcome(run.Outcome{Name: "score", Value: float64(i) + 0.5})
		if i < 2 {
			err = errors.Join(err, w.Close(run.End{Reason: "done"}))
		} // the last one was killed
		if err != nil {
			t.Fatal(err)
		}
	}
	tab := &table{dir: dir, settings: p.Settings, rows: map[string]row{}}
	missing, err := tab.resume(spots)
	if err != nil || len(missing) != 1 || missing[0].file != spots[2].file {
		t.Fatal(missing, err)
	}
	if _, err := os.Stat(spots[2].file + ".incomplete-1"); err != nil {
		t.Error(err)
	}
	if err := tab.write(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, tableFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	read, err := runs.Read("table", f)
	if err != nil || len(read) != 2 {
		t.Fatal(read, err)
	}
	for _, r := range read {
		want := spots[int(r.Outcomes["score"])]
		if r.Settings["size"] != want.values["size"] {
			t.Errorf("%v, want the size %s", r, want.values["size"])
		}
	}
}

// A recorder that was killed leaves the directory of its socket. The next one removes it, but not one in use.
func TestStaleDirectories(t *testing.T) {
	temp, later := t.TempDir(), time.Now().Add(2*agentStart+time.Second)
	for _, name := range []string{"killed", "used", "empty"} {
		dir := filepath.Join(temp, socketDir+name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if name == "empty" {
			continue
		}
		l, err := net.Listen("unix", filepath.Join(dir, socketName))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if name == "killed" {
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			l.Close()
		}
	}
	left := func() string {
		all, _ := filepath.Glob(filepath.Join(temp, "*"))
		return strings.ReplaceAll(strings.Join(all, " "), filepath.Join(temp, socketDir), "")
	}
	if removeStale(temp, time.Now()); left() != "empty killed used" {
		t.Errorf("of new ones %q is left", left())
	}
	if removeStale(temp, later); left() != "used" {
		t.Errorf("of old ones %q is left", left())
	}
}

func TestSafe(t *testing.T) {
	for in, want := range map[string]string{"redis-benchmark": "redis-benchmark", "../a b\n": "_a_b_", "-x": "x", "ü": "_"} {
		if got := safe(in); got != want {
			t.Errorf("safe(%q) is %q, want %q", in, got, want)
		}
	}
}

// FuzzRead: a faulty agent cannot end the recorder or damage its file.
func FuzzRead(f *testing.F) {
	f.Add("# TYPE a counter\na{workload=\"b\"} 3\n")
	f.Add(types + "teescope_transition_seconds_bucket{workload=\"a\",le=\"0.1\"} 4 1700000000000\n{} 1\n")
	f.Add("# HELP a b\n{} 1\na{b=\"}\",c=\"\\\"\"} NaN\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := newReader()
		first, err := r.read([]byte(text))
		if (err == nil) != (len(first) > 0) {
			t.Fatalf("%d values and %v", len(first), err)
		}
		if err != nil {
			return
		}
		second, err := r.read([]byte(text))
		if err != nil || len(second) != len(first) {
			t.Fatalf("%d values, then %d: %v", len(first), len(second), err)
		}
		var file bytes.Buffer
		w, err := run.NewWriter(&file, run.Meta{})
		if err != nil {
			t.Fatal(err)
		}
		var values []run.Value
		for _, p := range first {
			values = append(values, run.Value{Series: p.series, Value: p.value})
		}
		if _, err := w.Sample(began, values); err != nil {
			t.Fatal(err)
		}
	})
}

// Valgrind prints its counts on the standard error, also if a benchmark prints on the standard output.
func TestOutcomesOfBothOutputs(t *testing.T) {
	c := &child{cmd: exec.Command("true"), out: &outcome.Capture{}, errs: &outcome.Capture{}}
	fmt.Fprint(c.out, "This is ApacheBench, Version 2.3\nRequests per second:    10.00 [#/sec] (mean)\n")
	fmt.Fprint(c.errs, "==1== Callgrind, x\n==1== Events    : Ir\n==1== Collected : 130589\nBenchmarkBeside 5 7 ns/op\n")
	found := map[string]float64{}
	for _, o := range (&recording{Options: &Options{}}).outcomes(c) {
		found[o.Name] = o.Value
	}
	if found["throughput"] != 10 || found["instructions"] != 130589 || len(found) != 5 { // with wall_time, cpu_time and non_2xx
		t.Errorf("outcomes are %v", found)
	}
}
