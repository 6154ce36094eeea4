// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/compare"
	"github.com/teescope/teescope/internal/run/runtest"
)

// around returns a factor for a repetition. Their median over 11 is 1, and neighbours do not resemble each other.
func around(i int) float64 { return 1 + float64(i*7%11-5)/1000 }

// ops is the number of operations of a repetition.
const ops = 1000

// tls is a program with a share of CPU time in three system calls, in seconds for each repetition of 100 s.
func tls(total float64, shares map[string]float64) (s runtest.Spec) {
	for i := range 11 {
		r := runtest.Repetition{Seconds: 100, Outcomes: []run.Outcome{{Name: "operations", Value: ops}}, Counters: []runtest.Value{
			runtest.Counter(total*around(i), "teescope_cpu_seconds_total", "mode", "system"),
			runtest.Counter(0, "teescope_cpu_seconds_total", "mode", "user"),
		}}
		for name, share := range shares {
			r.Counters = append(r.Counters, runtest.Counter(total*share*around(i), "teescope_syscall_seconds_total", "syscall", name),
				runtest.Counter(10*ops, "teescope_syscalls_total", "syscall", name))
		}
		s.Repetitions = append(s.Repetitions, r)
	}
	return s
}

func create(t testing.TB, name string, s runtest.Spec) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := runtest.Create(file, s); err != nil {
		t.Fatal(err)
	}
	return file
}

func report(t testing.TB, o compare.Options, conditions []string, files ...string) *Report {
	t.Helper()
	records, names, err := Load(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	var bounds []compare.Condition
	for _, c := range conditions {
		one, err := compare.ParseCondition(c)
		if err != nil {
			t.Fatal(err)
		}
		bounds = append(bounds, one)
	}
	r, err := Make(records, names, "", o, bounds)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// One program on two machines takes 5 % and 20 % of a CPU. Of these, ECDH has 15 % and 50 %, RSA 55 % and 40 %, and others
// 30 % and 10 %: 0.75, 2.75 and 1.5 s of 100 s, against 10, 8 and 2 s. Of the 15 s more, ECDH is 9.25/15, RSA 5.25/15 and
// others 0.5/15.
func TestBlameOfTwoMachines(t *testing.T) {
	intel := create(t, "intel", tls(5, map[string]float64{"ecdh": 0.15, "rsa": 0.55, "rest": 0.30}))
	arm := create(t, "arm", tls(20, map[string]float64{"ecdh": 0.50, "rsa": 0.40, "rest": 0.10}))
	blame := report(t, compare.Options{}, nil, intel, arm).Tables[0].Blames[0]
	if blame.Reason != "" || len(blame.Views) != 2 || blame.Unit != "s/op" {
		t.Fatalf("%+v", blame)
	}
	close := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	close("the whole before", blame.Whole.Before, 100./ops)
	system := blame.Views[0].Components[1]
	close("system CPU time of Intel", system.Before, 5./ops)
	close("its difference", system.Difference.Value, 15./ops)
	for _, v := range blame.Views {
		sum := v.Rest.Difference.Value
		for _, s := range v.Components {
			sum += s.Difference.Value
		}
		close(v.Name+", added up", sum, blame.Whole.Difference.Value)
	}
	want := map[string][2]float64{"in ecdh": {0.75, 10}, "in rsa": {2.75, 8}, "in rest": {1.5, 2}}
	for _, s := range blame.Views[1].Components[1:] {
		w := want[s.Name]
		close(s.Name+" of Intel", s.Before, w[0]/ops)
		close(s.Name+" of ARM", s.After, w[1]/ops)
		close(s.Name+" of the difference", s.Difference.Value/system.Difference.Value, (w[1]-w[0])/15)
		if !s.Sure {
			t.Errorf("%s: %+v", s.Name, s)
		}
	}
	// The wall-clock time is the same, so what there is more of work there is less of waiting.
	close("the rest", blame.Views[0].Rest.Difference.Value, -15./ops)
}

// The seed's table again, from profiles in run files: 5 and 20 s of CPU time in 100 s, and the shares of functions in samples.
func TestBlameOfFunctions(t *testing.T) {
	with := func(name string, cpu, faulting float64, shares map[string]float64) string {
		r, err := runtest.Run(tls(cpu, map[string]float64{"read": 1}))
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Phases {
			p := run.Profile{Type: "pprof", Repetition: r.Phases[i].Repetition}
			for function, share := range shares {
				p.Functions = append(p.Functions, run.Function{Workload: "w", Name: function, Seconds: share * cpu * 1.1}) // sampled
			}
			p.Faults = []run.WorkloadTime{{Workload: "w", Seconds: faulting * cpu * 1.1}}
			r.Profiles = append(r.Profiles, p)
		}
		file := filepath.Join(t.TempDir(), name+".tsrun")
		if err := run.Save(file, r); err != nil {
			t.Fatal(err)
		}
		return file
	}
	intel := with("intel", 5, 0, map[string]float64{"ecdh": 0.15, "rsa": 0.55, "[unresolved]": 0.30})
	arm := with("arm", 20, 0.25, map[string]float64{"ecdh": 0.50, "rsa": 0.40, "[unresolved]": 0.10})
	table := report(t, compare.Options{}, nil, intel, arm).Tables[0]
	for _, r := range table.Rows {
		if r.Metric.Area == "" || r.Metric.Series == "" && r.Metric.Area != compare.Outcome {
			t.Errorf("the row %q is of no metric", r.Metric.ID())
		}
	}
	blame := table.Blames[0]
	at := slices.IndexFunc(blame.Views, func(v compare.View) bool { return v.Name == "functions" })
	if at < 0 {
		t.Fatalf("%+v", blame)
	}
	view := blame.Views[at]
	// The last figure is the part of the change: 9.25, 5.25 and 0.5 of 15 s.
	want, sum := map[string][3]float64{"ecdh": {0.75, 10, 37. / 60}, "rsa": {2.75, 8, 21. / 60}, "[unresolved]": {1.5, 2, 2. / 60}}, 0.0
	for _, s := range view.Components {
		w := want[s.Name]
		if math.Abs(s.Before*ops-w[0]) > 1e-9 || math.Abs(s.After*ops-w[1]) > 1e-9 || math.Abs(s.Share-w[2]) > 1e-9 || !s.Sure {
			t.Errorf("%s: %g and %g s with the share %g, want %v; sure: %v", s.Name, s.Before*ops, s.After*ops, s.Share, w, s.Sure)
		}
		sum += s.Difference.Value
	}
	if c := view.Whole; math.Abs(c.Before*ops-5) > 1e-9 || math.Abs(c.After*ops-20) > 1e-9 || math.Abs(sum-c.Difference.Value) > 1e-9 || len(view.Parts()) != 3 {
		t.Errorf("%d parts add up to %g of %+v", len(view.Parts()), sum, c)
	}
	went := blame.Views[slices.IndexFunc(blame.Views, func(v compare.View) bool { return v.Name == "what it went to" })]
	faults := went.Components[slices.IndexFunc(went.Components, func(s compare.Component) bool { return s.Name == "page faults" })]
	if faults.Before != 0 || math.Abs(faults.After*ops-5) > 1e-9 || !faults.Sure {
		t.Errorf("page faults take %g and %g s, want 0 and 5; sure: %v", faults.Before*ops, faults.After*ops, faults.Sure)
	}
}

// A function that a run does not list may be among the others there, so a note bounds it. The others are 5 s, and each is at most as
// large as the smallest that is listed, of 1 s.
func TestFunctionsThatOnlyOneRunLists(t *testing.T) {
	with := func(name string, functions map[string]float64) string {
		r, err := runtest.Run(tls(20, map[string]float64{"read": 1}))
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Phases {
			p := run.Profile{Type: "pprof", Repetition: r.Phases[i].Repetition}
			for function, seconds := range functions {
				p.Functions = append(p.Functions, run.Function{Workload: "w", Name: function, Seconds: seconds})
			}
			r.Profiles = append(r.Profiles, p)
		}
		file := filepath.Join(t.TempDir(), name+".tsrun")
		if err := run.Save(file, r); err != nil {
			t.Fatal(err)
		}
		return file
	}
	short := with("short", map[string]float64{"serve": 14, "parse": 1, run.Others: 5})
	grown := with("grown", map[string]float64{"serve": 10, "parse": 2, "ecdh": 3, run.Others: 5})
	complete := with("complete", map[string]float64{"serve": 18, "parse": 2})
	for _, tt := range []struct {
		before, after, note string
	}{
		{short, grown, "short.tsrun: ecdh is not among the functions that its runs list, so it may have up to 0.001 s/op there, which count as [others]"},
		{grown, short, "short.tsrun: ecdh is not among"},
		{complete, grown, ""}, // it has no others
	} {
		notes := strings.Join(report(t, compare.Options{}, nil, tt.before, tt.after).Tables[0].Blames[0].Notes, "\n")
		if tt.note == "" && strings.Contains(notes, "is not among") || !strings.Contains(notes, tt.note) {
			t.Errorf("notes %q, want %q", notes, tt.note)
		}
	}
}

// A program with two busy threads does twice the work in the same time. Its times are divided by two.
func TestBlameOfThreads(t *testing.T) {
	busy := func(threads, ops float64) (s runtest.Spec) {
		for i := range 8 {
			s.Repetitions = append(s.Repetitions, runtest.Repetition{
				Outcomes: []run.Outcome{{Name: "operations", Value: ops * around(i)}},
				Counters: []runtest.Value{
					runtest.Counter(6*threads, "teescope_cpu_seconds_total", "mode", "user"), runtest.Counter(3*threads, "teescope_cpu_seconds_total", "mode", "system"),
					runtest.Counter(1*threads, "teescope_run_queue_wait_seconds_total"),
				},
			})
		}
		return s
	}
	view := report(t, compare.Options{}, nil, create(t, "one", busy(1, 1000)), create(t, "two", busy(2, 2000))).Tables[0].Blames[0].Views[0]
	for i, want := range []float64{0.6, 0.3, 0.1} {
		if s := view.Components[i]; math.Abs(s.Share-want) > 1e-9 {
			t.Errorf("%s has %v of the difference, want %v", s.Name, s.Share, want)
		}
	}
	if view.Rest.Difference.Value != 0 || view.Rest.Sure {
		t.Errorf("rest %+v", view.Rest)
	}
}

// The interval of 11 and 11 values is from the 31st smallest of 121 ratios, because the critical U is 30. Of the differences
// of two factors, 28 are at most -0.4 % and 36 are at most -0.3 %. So it is 10 % less and more 0.3 %.
func TestGate(t *testing.T) {
	before, after := create(t, "before", tls(5, map[string]float64{"read": 1})), create(t, "after", tls(5.5, map[string]float64{"read": 1, "write": 0.1}))
	for condition, want := range map[string]string{
		"syscalls_per_op > +5%":            "syscalls_per_op changed by +100.0% (interval +100.0% to +100.0%, n=11+11), which is beyond +5.0%",
		"syscalls_per_op > +100%":          "", // not beyond
		"syscalls_per_op{write} > +1%":     "syscalls_per_op{write} rose from 0 to 10 calls/op",
		"cpu_seconds_per_op > +9%":         "cpu_seconds_per_op changed by +10.0% (interval +9.7% to +10.3%, n=11+11), which is beyond +9.0%",
		"cpu_seconds_per_op > +9.9%":       "", // 10 %, and the interval reaches below it
		"cpu_seconds_per_op < -1%":         "",
		"syscall_seconds_per_op{read}<-0%": "",
	} {
		r := report(t, compare.Options{PerOp: 1}, []string{condition}, before, after)
		got := ""
		for _, f := range r.Failures {
			got += f.Reason
		}
		if got != want {
			t.Errorf("%s: %q, want %q", condition, got, want)
		}
	}
	r := report(t, compare.Options{PerOp: 1}, []string{"syscalls_per_op > +5%"}, before, after)
	var github, gitlab strings.Builder
	if err := r.Annotate(&github, "github"); err != nil || github.String() != "::error title=teescope compare::after: syscalls_per_op changed by +100.0%25 (interval +100.0%25 to +100.0%25, n=11+11), which is beyond +5.0%25\n" {
		t.Errorf("%v: %s", err, github.String())
	}
	var issues []struct {
		Description, Fingerprint, Severity string
		Location                           struct{ Path string }
	}
	if err := r.Annotate(&gitlab, "gitlab"); err != nil || json.Unmarshal([]byte(gitlab.String()), &issues) != nil || len(issues) != 1 ||
		!strings.HasPrefix(issues[0].Description, "after: syscalls_per_op changed") || issues[0].Location.Path != after || len(issues[0].Fingerprint) != 32 {
		t.Errorf("%v: %s", err, gitlab.String())
	}
}

// Every format is written of a comparison with a name that is not a good anywhere.
func TestFormats(t *testing.T) {
	const evil = "=1</td><script>alert(1)</script>|`\x1b[31m"
	spec := tls(5, map[string]float64{evil: 0.5, "read": 0.5})
	spec.Labels = map[string]string{"commit": "old"}
	after := tls(9, map[string]float64{evil: 0.9, "read": 0.5})
	after.Labels = map[string]string{"commit": evil}
	r := report(t, compare.Options{PerOp: 1}, nil, create(t, "a", spec), create(t, "b", after))
	for _, format := range Formats() {
		var b bytes.Buffer
		if err := r.Write(&b, format); err != nil {
			t.Fatal(err)
		}
		out := b.String()
		for _, bad := range map[string][]string{"text": {"\x1b"}, "markdown": {"\x1b", "<script"}, "html": {"\x1b", "<script"}, "csv": {"\x1b"}, "benchfmt": {"\x1b", "</td><script>alert(1)</script>|` "}}[format] {
			if strings.Contains(out, bad) {
				t.Errorf("%s has %q:\n%s", format, bad, out)
			}
		}
		switch format {
		case "json":
			var all struct {
				Tables []struct{ Metrics []struct{ Metric string } }
			}
			if err := json.Unmarshal(b.Bytes(), &all); err != nil || len(all.Tables[0].Metrics) < 8 {
				t.Errorf("%v: %s", err, out)
			}
		case "csv":
			lines, err := csv.NewReader(&b).ReadAll()
			if err != nil || len(lines) < 9 {
				t.Fatalf("%v: %s", err, out)
			}
			for _, l := range lines[1:] {
				if strings.HasPrefix(l[1], "=") {
					t.Errorf("a formula: %q", l)
				}
			}
		case "benchfmt":
			// The grammar: Benchmark and a name, a count, and pairs of a value and a unit.
			line := regexp.MustCompile(`^Benchmark[A-Z]\S*( +[0-9]+)( +[-+0-9.eE]+ \S+)+$`)
			for l := range strings.Lines(out) {
				if !line.MatchString(strings.TrimSuffix(l, "\n")) {
					t.Errorf("no benchmark: %q", l)
				}
			}
			if strings.Count(out, "\n") != 22 || !strings.HasPrefix(out, "BenchmarkRun/group=old 1 ") || !strings.Contains(out, "1000 operations ") {
				t.Errorf("benchmarks:\n%s", out)
			}
		case "html":
			charts(t, out)
		case "text":
			t.Logf("\n%s", out)
			for _, want := range []string{"old: 11 repetitions in ", "CPU", "~", "Also", "what threads did"}[:2] {
				if !strings.Contains(out, want) {
					t.Errorf("the text has no %q:\n%s", want, out)
				}
			}
		}
	}
}

// 50 runs of 10 repetitions with 500 series take less than two seconds of CPU time, which neighbours hardly change. The
// fastest of three counts.
func TestManyRunsAreFast(t *testing.T) {
	folder := t.TempDir()
	for group := range 2 {
		s := runtest.Spec{Labels: map[string]string{"commit": fmt.Sprint(group)}, Samples: 6}
		for k := range 10 {
			r := runtest.Repetition{Outcomes: []run.Outcome{runtest.Throughput(1000 * around(k))}}
			for n := range 500 {
				r.Counters = append(r.Counters, runtest.Counter(float64(100+n*k+group), "teescope_syscalls_total", "syscall", fmt.Sprint("call", n%50), "n", fmt.Sprint(n)))
			}
			s.Repetitions = append(s.Repetitions, r)
		}
		var file bytes.Buffer
		if err := runtest.Write(&file, s); err != nil {
			t.Fatal(err)
		}
		for i := range 25 {
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprint(group, "-", i, Extension)), file.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	best := time.Hour
	for range 3 {
		began := cpuTime(t)
		var b bytes.Buffer
		r := report(t, compare.Options{PerOp: 1}, nil, folder)
		if err := r.Write(&b, "html"); err != nil || r.Tables[0].Groups[1].Repetitions != 250 {
			t.Fatal(err, r.Tables[0].Groups)
		}
		best = min(best, cpuTime(t)-began)
	}
	t.Logf("50 runs take %s of CPU time", best)
	if best > 2*time.Second {
		t.Errorf("50 runs take %s of CPU time, want less than 2 s", best)
	}
}

func cpuTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// charts checks that the charts of a page are well-formed, and that what they draw is within them.
func charts(t *testing.T, page string) {
	t.Helper()
	found := regexp.MustCompile(`(?s)<svg viewBox="0 0 (\d+) (\d+)".*?</svg>`).FindAllStringSubmatch(page, -1)
	if len(found) < 3 {
		t.Errorf("%d charts in\n%s", len(found), page)
	}
	for _, chart := range found {
		var w, h float64
		if _, err := fmt.Sscan(chart[1], &w); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(chart[2], &h); err != nil {
			t.Fatal(err)
		}
		shapes := 0
		for d := xml.NewDecoder(strings.NewReader(chart[0])); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, chart[0])
			}
			start, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			for _, a := range start.Attr {
				limit := map[string]float64{"x": w, "x1": w, "x2": w, "cx": w, "y": h, "y1": h, "y2": h, "cy": h}[a.Name.Local]
				var v float64
				if limit == 0 {
					continue
				}
				shapes++
				if _, err := fmt.Sscan(a.Value, &v); err != nil || math.IsNaN(v) || v < 0 || v > limit {
					t.Errorf("%s of %s is %s, beyond %v in\n%s", a.Name.Local, start.Name.Local, a.Value, limit, chart[0])
				}
			}
		}
		if shapes < 8 {
			t.Errorf("%d positions in\n%s", shapes, chart[0])
		}
	}
}

// The chart of a sweep and that of a history are drawn too.
func TestOtherCharts(t *testing.T) {
	folder := t.TempDir()
	for i, commit := range []string{"a", "b"} {
		for _, size := range []string{"8", "80", "320"} {
			s := tls(5+float64(i), map[string]float64{"read": 1})
			s.Labels, s.Started = map[string]string{"commit": commit, "size": size}, runtest.Began.Add(time.Duration(i)*time.Hour)
			if err := runtest.Create(filepath.Join(folder, commit+size+Extension), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	records, names, err := Load([]string{folder}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Make(records, names, "commit", compare.Options{}, nil)
	if err != nil || len(r.Tables) != 3 || r.Tables[2].Title != "size=320" {
		t.Fatal(err, r)
	}
	h, err := compare.HistoryOf(records, compare.HistoryOptions{Metric: "cpu_seconds_per_second"})
	if err != nil || len(h.Changes) != 1 {
		t.Fatal(err, h)
	}
	var sweep, history strings.Builder
	if err := r.Write(&sweep, "html"); err != nil {
		t.Fatal(err)
	}
	if err := WriteHistory(&history, h, "html"); err != nil {
		t.Fatal(err)
	}
	charts(t, sweep.String())
	charts(t, history.String()+sweep.String())
	if !strings.Contains(history.String(), "A change begins at b: +20.0%") || strings.Count(history.String(), "<svg") != 1 {
		t.Error(history.String())
	}
}
