// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/lib/promql"
	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/server/prom"
)

const (
	recordings = "recorded/"
	// queued is the average number of threads of a workload that wait for a CPU, by /proc, from which on the CPU limits it, even
	// if its label says otherwise. Without the wait, a thread would do 20 % more, as for the shares of internal/analysis/rules.
	queued = 1.0 / 6
	// sgxPrefix begins the names of recordings of the virtual SGX machine. All of its processors share one thread.
	sgxPrefix = "sgx-"
	// emulatedCrossing is the time of a crossing in the virtual SGX machine, which emulates it (docs/decisions/diagnosis.md, n=42,000).
	emulatedCrossing = 8e-6
	// heldOutKey is the variable with which .ci/run scores the recordings that are held out.
	heldOutKey = "CI_HELD_OUT"
)

// A recordedLabel is the known truth about a recording: see recorded/labels.yaml.
type recordedLabel struct {
	About    string             `yaml:"about"`
	HeldOut  bool               `yaml:"held_out"`
	Workload string             `yaml:"workload"`
	Find     []string           `yaml:"find"`
	Allow    []string           `yaml:"allow"`
	Limits   []engine.LimitKind `yaml:"limits"`
}

// A procTruth is what /proc said about the threads of a workload: how many ran, waited for a CPU and for a disk on average.
type procTruth struct{ Ran, Queued, Disk float64 }

// A recording is the series of real programs.
type recording struct {
	recordedLabel
	name       string
	run        *run.Run
	truth      map[string]procTruth // by workload
	source     query.Source
	start, end time.Time
}

func strict(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(recordings + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := decode(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// recorded returns the recordings, sorted by name.
func recorded(t *testing.T) (all []recording) {
	t.Helper()
	var labels map[string]recordedLabel
	strict(t, "labels.yaml", &labels)
	files, err := filepath.Glob(recordings + "*.tsrun")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings", err)
	}
	for _, file := range files {
		one := recording{name: strings.TrimSuffix(filepath.Base(file), ".tsrun")}
		var known bool
		if one.recordedLabel, known = labels[one.name]; !known {
			t.Errorf("%s has no label", file)
			continue
		}
		if one.run, err = run.Open(file); err != nil || one.run.Damaged != nil || one.run.End == nil {
			t.Fatalf("%s: %v", file, err)
		}
		if !strings.HasPrefix(one.name, sgxPrefix) {
			strict(t, one.name+".truth", &one.truth)
		}
		one.start, one.end = one.run.Times[0], one.run.Times[len(one.run.Times)-1]
		one.source = one.store(t)
		all = append(all, one)
	}
	return all
}

// store returns the series of the recording, as an analysis of the file has them.
func (r recording) store(t *testing.T) query.Source {
	t.Helper()
	db := prom.NewStore()
	for _, s := range r.run.Series {
		labels := maps.Clone(s.Labels)
		if labels == nil {
			labels = make(map[string]string)
		}
		labels["__name__"], labels["instance"] = s.Name, host
		if err := db.AddSeries(labels, r.run.Times, s.Values); err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
	}
	if strings.HasPrefix(r.name, sgxPrefix) { // as an operator of that machine sets transitions.cost
		for _, bound := range []string{"low", "high"} {
			labels := map[string]string{"__name__": "teescope_enclave_crossing_seconds", "instance": host, "bound": bound}
			if err := db.AddSeries(labels, r.run.Times, slices.Repeat([]float64{emulatedCrossing}, len(r.run.Times))); err != nil {
				t.Fatal(err)
			}
		}
	}
	source, err := db.Source()
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func (r recording) judge(t *testing.T, window time.Duration, at time.Time) engine.Result {
	t.Helper()
	result, err := engine.Evaluate(t.Context(), r.source, rules.All(), engine.Options{Window: window, At: at, Limiter: rules.Limits()})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// window is the last part of a short recording: its beginning has the start of the programs.
func (r recording) window() time.Duration {
	return (r.end.Sub(r.start) * 4 / 5).Truncate(time.Second)
}

// competes reports whether threads of a workload waited much for CPUs. Where /proc says nothing, such as of processes that ended, they
// did not.
func (r recording) competes(workload string) bool {
	if r.truth == nil {
		return true
	}
	return r.truth[workload].Queued >= queued
}

// permitted reports whether a finding above info may be right.
func (r recording) permitted(f analysis.Finding) bool {
	if f.Rule == "not-the-tee" && r.competes(f.Workload) {
		return true
	}
	return (r.Workload == "" || f.Workload == r.Workload) && (slices.Contains(r.Find, f.Rule) || slices.Contains(r.Allow, f.Rule))
}

// A recordedScore adds up results.
type recordedScore struct {
	right, wrong    int // findings above info
	clean           int // recordings without a wrong one
	found, wanted   int // recordings whose cause must be found
	stated, misled  int // limits
	unknown         int
	complaints      []string
	falseByRule     map[string]int
	workloads, runs int
}

// score compares a result with the label.
func (r recording) score(result engine.Result, s *recordedScore) {
	complain := func(format string, args ...any) {
		s.complaints = append(s.complaints, r.name+": "+fmt.Sprintf(format, args...))
	}
	s.runs++
	found, before := false, s.wrong
	for _, f := range result.Findings {
		switch {
		case f.Severity == analysis.Info || r.Workload != "" && f.Workload != r.Workload && f.Workload != "":
		case r.permitted(f):
			s.right++
			found = found || slices.Contains(r.Find, f.Rule)
		default:
			s.wrong++
			s.falseByRule[f.Rule]++
			complain("%s at %q, which is not there: %s (%s)", f.Rule, f.Workload, f.Cause, f.Severity)
		}
	}
	if s.wrong == before {
		s.clean++
	}
	if len(r.Find) > 0 {
		s.wanted++
		if found {
			s.found++
		} else {
			complain("none of %q is found", r.Find)
		}
	}
	judged := r.Workload == ""
	for _, l := range result.Limits {
		judged = judged || l.Workload == r.Workload
		switch {
		case r.Workload == "" || l.Workload != r.Workload:
		case l.Limit == engine.LimitUnknown:
			s.unknown++
			complain("the limit is unknown: %s", l.Because)
		case slices.Contains(r.Limits, l.Limit), l.Limit == engine.LimitCPU && r.competes(l.Workload):
			s.stated++
		default:
			s.stated++
			s.misled++
			complain("it is limited by %s because %s, and not by one of %q", l.Limit, l.Because, r.Limits)
		}
	}
	if !judged {
		s.misled++
		complain("%s is not judged: is it in the recording?", r.Workload)
	}
}

// String gives shares with their exact 95 % intervals.
func (s recordedScore) String() string {
	share := func(what string, part, whole int) string {
		if whole == 0 {
			return what + ": none"
		}
		i := stat.Proportion(float64(part)/float64(whole), float64(whole), 0.95)
		return fmt.Sprintf("%s: %d of %d (%.2f to %.2f)", what, part, whole, i.Low, i.High)
	}
	return strings.Join([]string{
		share("precision", s.right, s.right+s.wrong), share("recall", s.found, s.wanted),
		share("recordings without a false finding", s.clean, s.runs),
		share("limits that are true", s.stated-s.misled, s.stated), share("limits that are stated", s.stated, s.stated+s.unknown),
	}, "\n")
}

func scored(t *testing.T, heldOut bool) recordedScore {
	t.Helper()
	s := recordedScore{falseByRule: make(map[string]int)}
	for _, r := range recorded(t) {
		if r.HeldOut == heldOut && r.name != healthy {
			r.score(r.judge(t, r.window(), r.end), &s)
		}
	}
	return s
}

// TestRecordings judges the recordings of real programs that are not held out.
func TestRecordings(t *testing.T) {
	s := scored(t, false)
	t.Logf("recordings to learn from\n%s\n%s", s, strings.Join(s.complaints, "\n"))
	if s.wrong > 0 || s.found < s.wanted || s.misled > 0 {
		t.Errorf("%d false findings, %d of %d causes found, %d wrong limits", s.wrong, s.found, s.wanted, s.misled)
	}
}

// TestRecordingsHeldOut scores the others, and does not report single ones, because rules must not be fitted to them. A single false finding,
// cause that is not found, or wrong limit is an error, and so is an unknown limit of half of them. See recorded/README.md for what this shows.
func TestRecordingsHeldOut(t *testing.T) {
	if os.Getenv(heldOutKey) == "" {
		t.Skipf("%s is not set: only CI scores what is held out", heldOutKey)
	}
	s := scored(t, true)
	t.Logf("recordings that are held out\n%s", s)
	if wrong := s.refuted(); len(wrong) > 0 {
		t.Errorf("recordings that are held out: %s", strings.Join(wrong, ", "))
	}
}

// refuted returns the parts of a score that are worse than allowed. An interval cannot decide this: of six, it contains 95 %
// until three are wrong.
func (s recordedScore) refuted() (why []string) {
	for what, n := range map[string]int{"false findings": s.wrong, "causes that are not found": s.wanted - s.found, "wrong limits": s.misled} {
		if n > 0 {
			why = append(why, fmt.Sprintf("%d %s", n, what))
		}
	}
	if s.unknown > 0 && s.unknown >= s.stated {
		why = append(why, fmt.Sprintf("%d limits are unknown, and %d are stated", s.unknown, s.stated))
	}
	slices.Sort(why)
	return why
}

// TestScoresCanBeRefuted: each kind of error fails, also a single one, and the CPU is not true of programs that hardly wait for it.
func TestScoresCanBeRefuted(t *testing.T) {
	for _, tt := range []struct {
		score recordedScore
		want  string
	}{
		{recordedScore{runs: 6, stated: 5, unknown: 1, wanted: 2, found: 2, right: 2}, ""},
		{recordedScore{runs: 6, stated: 6, misled: 1}, "1 wrong limits"},
		{recordedScore{runs: 6, stated: 6, wrong: 1}, "1 false findings"},
		{recordedScore{runs: 6, stated: 6, wanted: 3, found: 2}, "1 causes that are not found"},
		{recordedScore{runs: 6, stated: 3, unknown: 3}, "3 limits are unknown, and 3 are stated"},
	} {
		if got := strings.Join(tt.score.refuted(), ", "); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.score, got, tt.want)
		}
	}
	r := recording{truth: map[string]procTruth{"quiet": {Ran: 0.001, Queued: 0.009}, "ended": {}, "queued": {Ran: 0.05, Queued: 0.8}}}
	for workload, want := range map[string]bool{"quiet": false, "ended": false, "absent": false, "queued": true} {
		if r.competes(workload) != want {
			t.Errorf("%s competes: %v", workload, !want)
		}
	}
}

// healthy is the long recording of servers with little to do.
const healthy = "healthy"

// TestRecordedHealthyServers looks each minute at a long recording, as a server does, and gives the false findings of each rule
// by workload and day. Nothing of it has a cause above info, except what other programs on the machine took. Looks a minute apart
// share most of their window, so the interval is narrower than one of independent looks.
func TestRecordedHealthyServers(t *testing.T) {
	all := recorded(t)
	i := slices.IndexFunc(all, func(r recording) bool { return r.name == healthy })
	if i < 0 {
		t.Fatalf("there is no recording %s", healthy)
	}
	r, s := all[i], recordedScore{falseByRule: make(map[string]int)}
	const window = 5 * time.Minute
	looks := 0
	for at := r.start.Add(window); !at.After(r.end); at = at.Add(time.Minute) {
		result := r.judge(t, window, at)
		r.score(result, &s)
		s.workloads += result.Workloads
		looks++
	}
	if looks < 5 || s.workloads < 2*looks {
		t.Fatalf("%d looks at %d workloads", looks, s.workloads)
	}
	days := float64(s.workloads) / (24 * 60)
	for _, rule := range rules.All() {
		n := float64(s.falseByRule[rule.Name])
		t.Logf("%-22s %.2g false findings for each workload and day, at most %.2g", rule.Name, n/days, poissonUpper(n)/days)
	}
	if s.wrong > 0 {
		t.Errorf("%d false findings in %d looks:\n%s", s.wrong, looks, strings.Join(s.complaints, "\n"))
	}
}

// poissonUpper is the upper end of the exact one-sided 95 % interval of the mean of a Poisson count (Garwood 1936).
func poissonUpper(n float64) float64 {
	low, high := n, 10+3*n
	for range 60 {
		mean, term, sum := (low+high)/2, 0.0, 0.0
		term = math.Exp(-mean)
		for k := 0.0; k <= n; k++ {
			sum += term
			term *= mean / (k + 1)
		}
		if sum > 0.05 {
			low = mean
		} else {
			high = mean
		}
	}
	return low
}

// TestRecordingsAreWhatProcSaid compares the CPU time of recordings with what /proc said in another way about the same time,
// except where processes ended meanwhile: their time in /proc is gone with them.
func TestRecordingsAreWhatProcSaid(t *testing.T) {
	compared := 0
	for _, r := range recorded(t) {
		for workload, truth := range r.truth {
			if truth.Ran <= 0 || r.counted("teescope_exits_total", workload) > 0 {
				continue
			}
			used := r.counted("teescope_cpu_seconds_total", workload) / r.end.Sub(r.start).Seconds()
			compared++
			if math.Abs(used-truth.Ran) > 0.02+0.25*truth.Ran {
				t.Errorf("%s: %s used %.3f CPUs by the recording, and %.3f by /proc", r.name, workload, used, truth.Ran)
			}
		}
	}
	if compared == 0 {
		t.Error("nothing is compared")
	}
}

// counted returns the increase of a counter of a workload.
func (r recording) counted(metric, workload string) (total float64) {
	for _, s := range r.run.Series {
		if s.Name == metric && s.Labels["workload"] == workload {
			total += s.Total(0, len(s.Values)-1)
		}
	}
	return total
}

var trim = flag.Bool("trim", false, "remove from the recordings what no rule reads, and what they say about the machine")

// TestRecordingsHaveWhatRulesRead: recordings have no series that an analysis does not read. Such series are large, and name disks, networks
// and folders of the machine.
func TestRecordingsHaveWhatRulesRead(t *testing.T) {
	reads := make(map[string]bool)
	all := recorded(t)
	for _, r := range all {
		a := &asked{Source: r.source, queries: map[string]bool{}}
		r.source = a
		r.judge(t, r.window(), r.end)
		for expr := range a.queries {
			for _, name := range promql.Metrics(expr) {
				reads[name] = true
			}
		}
	}
	needless := func(s *run.Series) bool { return !reads[s.Name] }
	for _, r := range all {
		before := len(r.run.Series)
		if *trim {
			r.run.Series = slices.DeleteFunc(r.run.Series, needless)
			r.run.Meta.Host, r.run.Meta.Command, r.run.Meta.Conditions = host, nil, nil
			file := recordings + r.name + ".tsrun"
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := run.Save(file, r.run); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %d of %d series are left", r.name, len(r.run.Series), before)
		} else if i := slices.IndexFunc(r.run.Series, needless); i >= 0 {
			t.Errorf("%s: no rule reads %s: run this test with -trim", r.name, r.run.Series[i].ID())
		} else if len(r.run.Meta.Conditions)+len(r.run.Meta.Command) > 0 || r.run.Meta.Host != host {
			t.Errorf("%s names its machine: run this test with -trim", r.name)
		}
	}
}

// TestRecordingsAreSmallAndLabelled: all recordings together have at most a megabyte, half of those with a label of their own are
// held out, and labels name rules that exist.
func TestRecordingsAreSmallAndLabelled(t *testing.T) {
	files, _ := filepath.Glob(recordings + "*")
	size := int64(0)
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	t.Logf("%d files with %d bytes", len(files), size)
	if size > 1_000_000 {
		t.Errorf("%d bytes", size)
	}
	var labels map[string]recordedLabel
	strict(t, "labels.yaml", &labels)
	heldOut := 0
	for name, l := range labels {
		if l.HeldOut {
			heldOut++
		}
		for _, rule := range slices.Concat(l.Find, l.Allow) {
			if !slices.ContainsFunc(rules.All(), func(r engine.Rule) bool { return r.Name == rule }) {
				t.Errorf("%s names no rule: %s", name, rule)
			}
		}
	}
	if short := len(labels) - 1; heldOut < short/2 || heldOut > (short+1)/2 {
		t.Errorf("%d of %d are held out", heldOut, short)
	}
}
