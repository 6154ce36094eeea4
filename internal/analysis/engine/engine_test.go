// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/query"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// fake is a source with canned answers by query. Workloads exist for all of the window unless there says otherwise.
type fake struct {
	answers map[string][]query.Sample
	errs    map[string]error
	slow    map[string]bool
	there   map[string]float64 // share of the window, by workload
	asked   map[string]int
}

// workloads is the matcher of a query about some workloads, which has the answer of the query about all.
var workloads = regexp.MustCompile(`\{workload=~"[^"]*\|?"\}`)

func (f *fake) Instant(ctx context.Context, query string, _ time.Time) ([]query.Sample, error) {
	query = workloads.ReplaceAllString(query, "")
	if f.asked == nil {
		f.asked = make(map[string]int)
	}
	f.asked[query]++
	if f.slow[query] {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return f.answers[query], f.errs[query]
}

func (f *fake) Range(_ context.Context, expr string, start, end time.Time, step time.Duration) ([]query.Series, error) {
	if err := f.errs[expr]; err != nil {
		return nil, err
	}
	seen := make(map[query.Target]bool)
	var all []query.Series
	for _, samples := range f.answers {
		for _, s := range samples {
			p := query.TargetOf(s.Labels)
			if seen[p] {
				continue
			}
			seen[p] = true
			share, some := f.there[p.Workload]
			if !some {
				share = 1
			}
			series := query.Series{Labels: s.Labels}
			for at := start; !at.After(end) && float64(at.Sub(start)) < share*float64(end.Sub(start)+step); at = at.Add(step) {
				series.Points = append(series.Points, query.Point{Time: at, Value: float64(at.Unix())})
			}
			all = append(all, series)
		}
	}
	return all, nil
}

func sample(workload string, value float64, labels ...string) query.Sample {
	s := query.Sample{Labels: map[string]string{"instance": "a"}, Time: now, Value: value}
	if workload != "" {
		s.Labels["workload"] = workload
	}
	for i := 0; i < len(labels); i += 2 {
		s.Labels[labels[i]] = labels[i+1]
	}
	return s
}

// above returns a rule that finds a signal above a limit, with this share as its gain.
func above(name, query string, limit, share float64) Rule {
	return Rule{
		Name: name, Title: "too much", Sources: []string{"a test"},
		Signals: []Signal{{Name: "it", Query: query, Unit: "1/s"}},
		Judge: func(w Workload) *Verdict {
			v, ok := w.Value(Signal{Name: "it"})
			if !ok || v <= limit {
				return nil
			}
			return &Verdict{Cause: "it is above", Confidence: analysis.Measured, Evidence: []string{"it"}, Advice: []string{"less"}, Gain: estimate.Amdahl("x", share, share, "none")}
		},
	}
}

func evaluate(t *testing.T, f query.Source, rules []Rule, o Options) Result {
	t.Helper()
	o.At = now
	r, err := Evaluate(t.Context(), f, rules, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func names(r Result) string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, f.Rule+"@"+f.Workload)
	}
	return strings.Join(all, " ")
}

func problems(r Result) string {
	var all []string
	for _, p := range r.Problems {
		all = append(all, string(p.Kind)+":"+p.Query+":"+p.Workload+":"+strings.Join(p.Rules, ","))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestFindingsRankByGainAndQueriesAreAskedOnce(t *testing.T) {
	f := &fake{answers: map[string][]query.Sample{"q[5m]": {sample("w", 5), sample("v", 1)}, "r": {sample("w", 5)}}}
	r := evaluate(t, f, []Rule{above("small", "q[$window]", 2, 0.1), above("large", "q[$window]", 2, 0.5), above("third", "r", 2, 0.03)}, Options{})
	if got, want := names(r), "large@w small@w third@w"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
	if f.asked["q[5m]"] != 1 {
		t.Errorf("the query was asked %d times", f.asked["q[5m]"])
	}
	var severities []analysis.Severity
	for _, f := range r.Findings {
		severities = append(severities, f.Severity)
	}
	if want := []analysis.Severity{analysis.High, analysis.Medium, analysis.Low}; !slices.Equal(severities, want) {
		t.Errorf("severities %v, want %v", severities, want)
	}
	if r.Workloads != 2 || len(r.Checked) != 3 || len(r.Skipped) != 0 {
		t.Errorf("%d workloads, checked %v, skipped %v", r.Workloads, r.Checked, r.Skipped)
	}
	e := r.Findings[0].Evidence[0]
	if e.Value != 5 || e.Unit != "1/s" || e.Query != "q[5m]" {
		t.Errorf("evidence %+v", e)
	}
}

// TestWhatCannotBeAskedIsAProblem and no finding, for the rules that need it alone.
func TestWhatCannotBeAskedIsAProblem(t *testing.T) {
	rules := []Rule{above("good", "q", 2, 0.5), above("hit", "bad", 2, 0.5), above("gone", "absent", -1, 0.5)}
	for name, spoil := range map[string]func(*fake){
		"an error":    func(f *fake) { f.errs = map[string]error{"bad": errors.New("503")} },
		"no answer":   func(f *fake) { f.slow = map[string]bool{"bad": true} },
		"an overflow": func(f *fake) { f.answers["bad"] = slices.Repeat([]query.Sample{sample("w", 9)}, 11) },
	} {
		f := &fake{answers: map[string][]query.Sample{"q": {sample("w", 5)}, "bad": {sample("w", 9)}}}
		spoil(f)
		r := evaluate(t, f, rules, Options{PerQuery: time.Second, MaxSamples: 10})
		if got := names(r); got != "good@w" {
			t.Errorf("%s: found %s", name, got)
		}
		if got := problems(r); !strings.Contains(got, ":bad::hit") || !strings.Contains(got, "absent:absent::gone") {
			t.Errorf("%s: problems %s", name, got)
		}
		if r.Knows("hit", "w", "a") || !r.Knows("good", "w", "a") || !r.Knows("gone", "w", "a") {
			t.Errorf("%s: what is known is wrong", name)
		}
		if len(r.Skipped) != 2 {
			t.Errorf("%s: skipped %v", name, r.Skipped)
		}
	}
}

// TestNothingIsJudgedBlindly: without knowing what was there, or whether the clock was set, there is no finding.
func TestNothingIsJudgedBlindly(t *testing.T) {
	steps := strings.ReplaceAll(stepsQuery, "$window", "5m")
	for name, f := range map[string]*fake{
		"presence unknown": {errs: map[string]error{pulseQuery: errors.New("503")}},
		"clock unknown":    {errs: map[string]error{steps: errors.New("503")}},
		"clock set":        {answers: map[string][]query.Sample{steps: {sample("", 1)}}},
		"a new workload":   {there: map[string]float64{"w": 0.4}},
	} {
		if f.answers == nil {
			f.answers = make(map[string][]query.Sample)
		}
		f.answers["q"] = []query.Sample{sample("w", 5)}
		r := evaluate(t, f, []Rule{above("rule", "q", 2, 0.5)}, Options{})
		if len(r.Findings) > 0 || len(r.Problems) == 0 || r.Knows("rule", "w", "a") {
			t.Errorf("%s: found %s, problems %s, known %v", name, names(r), problems(r), r.Knows("rule", "w", "a"))
		}
	}
	f := &fake{answers: map[string][]query.Sample{"q": {sample("w", 5)}}, there: map[string]float64{"w": 0.6}}
	if r := evaluate(t, f, []Rule{above("rule", "q", 2, 0.5)}, Options{}); names(r) != "rule@w" {
		t.Errorf("there for 60 %% of the window: found %q, problems %s", names(r), problems(r))
	}
}

func TestNumbersThatAreNone(t *testing.T) {
	f := &fake{answers: map[string][]query.Sample{"q": {sample("w", math.NaN()), sample("v", math.Inf(1)), sample("u", 3)}}}
	if r := evaluate(t, f, []Rule{above("rule", "q", 2, 0.5)}, Options{}); names(r) != "rule@u" {
		t.Errorf("found %s", names(r))
	}
}

func TestWhoSeesWhat(t *testing.T) {
	f := &fake{answers: map[string][]query.Sample{
		"own":     {sample("w", 1), sample("kernel", 1), sample("other", 1), sample("w", 10, "instance", "b")},
		"machine": {sample("", 100), sample("", 1000, "instance", "b")},
		"ported":  {sample("", 3, "instance", "x:9100")},
		"ours":    {sample("p", 1, "instance", "x:9750")},
	}}
	seen := make(map[string]float64)
	rule := Rule{Name: "r", Signals: []Signal{{Name: "own", Query: "own"}, {Name: "machine", Query: "machine"}, {Name: "ported", Query: "ported"}, {Name: "ours", Query: "ours"}}}
	rule.Judge = func(w Workload) *Verdict {
		for _, s := range rule.Signals {
			if v, ok := w.Value(s); ok {
				seen[w.Name+"@"+w.Instance] += v
			}
		}
		return nil
	}
	evaluate(t, f, []Rule{rule}, Options{})
	if len(seen) != 3 || seen["w@a"] != 101 || seen["w@b"] != 1010 || seen["p@x:9750"] != 4 {
		t.Errorf("seen %v", seen)
	}
	clear(seen)
	rule.Machine = true
	evaluate(t, f, []Rule{rule}, Options{})
	if seen["@a"] != 100 || seen["@b"] != 1000 || seen["@x:9750"] != 3 {
		t.Errorf("machines saw %v", seen)
	}
	clear(seen)
	rule.Machine = false
	if r := evaluate(t, f, []Rule{rule}, Options{Workload: "w"}); r.Workloads != 2 || seen["p@x:9750"] != 0 {
		t.Errorf("%d workloads, seen %v", r.Workloads, seen)
	}
	clear(seen)
	if r := evaluate(t, f, []Rule{rule}, Options{MaxWorkloads: 1}); r.Workloads != 1 || !strings.Contains(problems(r), "bounded") {
		t.Errorf("%d workloads, problems %s", r.Workloads, problems(r))
	}
}

func TestOneExplainsAnother(t *testing.T) {
	f := &fake{answers: map[string][]query.Sample{"q": {sample("w", 5)}}}
	explains := func(r Rule, others ...string) Rule {
		judge := r.Judge
		r.Judge = func(w Workload) *Verdict {
			v := judge(w)
			v.Supersedes = others
			return v
		}
		return r
	}
	a, b, c := above("a", "q", 2, 0.5), above("b", "q", 2, 0.3), above("c", "q", 2, 0.2)
	for want, rules := range map[string][]Rule{
		"a@w b@w c@w": {a, b, c},
		"b@w c@w":     {a, explains(b, "a"), c},
		"c@w":         {a, explains(b, "a"), explains(c, "b")},
		"a@w c@w":     {explains(a, "b"), explains(b, "a"), c},
	} {
		r := evaluate(t, f, rules, Options{})
		if got := names(r); got != want {
			t.Errorf("found %s, want %s", got, want)
		}
		explained := 0
		for _, f := range r.Findings {
			explained += len(f.Explains)
		}
		if explained+len(r.Findings) != len(rules) {
			t.Errorf("%s: %d of %d are reported as consequences", want, explained, len(rules)-len(r.Findings))
		}
	}
}

// TestVerdictsThatCannotBe are no findings.
func TestVerdictsThatCannotBe(t *testing.T) {
	good := func() *Verdict {
		return &Verdict{Cause: "c", Evidence: []string{"it"}, Advice: []string{"a"},
			Saving: estimate.Saves(0.1, 0.2, "x"), Gain: &estimate.Gain{Low: 1, High: 2, Limit: "x", Assumptions: []string{"x"}}}
	}
	for name, change := range map[string]func(*Verdict){
		"no cause":            func(v *Verdict) { v.Cause = "" },
		"no advice":           func(v *Verdict) { v.Advice = nil },
		"no evidence":         func(v *Verdict) { v.Evidence = nil },
		"unknown signal":      func(v *Verdict) { v.Evidence = []string{"that"} },
		"malformed evidence":  func(v *Verdict) { v.Evidence = []string{"it{x}"} },
		"absent evidence":     func(v *Verdict) { v.Evidence = []string{"it{syscall=none}"} },
		"unknown severity":    func(v *Verdict) { v.Severity = "grave" },
		"unknown confidence":  func(v *Verdict) { v.Confidence = "sure" },
		"gain without reason": func(v *Verdict) { v.Gain.Assumptions = nil },
		"gain without limit":  func(v *Verdict) { v.Gain.Limit = "" },
		"saving upside down":  func(v *Verdict) { v.Saving.Low = 3 },
		"saving of NaN":       func(v *Verdict) { v.Saving.High = math.NaN() },
		"endless saving":      func(v *Verdict) { v.Saving.High = math.Inf(1) },
		"baseless saving":     func(v *Verdict) { v.Saving.Assumptions = nil },
		"gain of NaN":         func(v *Verdict) { v.Gain.High = math.NaN() },
		"gain upside down":    func(v *Verdict) { v.Gain.Low = 3 },
		"loss":                func(v *Verdict) { v.Gain.Low = -1 },
		"gain beyond bounds":  func(v *Verdict) { v.Gain.High = 20 },
		"panic":               func(v *Verdict) { panic("index out of range") },
	} {
		f := &fake{answers: map[string][]query.Sample{"q": {sample("w", 5, "syscall", "futex")}}}
		rule := above("rule", "q", 2, 0.5)
		rule.Judge = func(Workload) *Verdict { v := good(); change(v); return v }
		r := evaluate(t, f, []Rule{rule}, Options{})
		if len(r.Findings) > 0 || len(r.Problems) != 1 || r.Problems[0].Kind != query.Broken {
			t.Errorf("%s: found %s, problems %+v", name, names(r), r.Problems)
		}
		rule.Judge = func(Workload) *Verdict { v := good(); v.Evidence = []string{"it{syscall=futex}"}; return v }
		if r := evaluate(t, f, []Rule{rule}, Options{}); len(r.Findings) != 1 || r.Findings[0].Evidence[0].Value != 5 {
			t.Fatalf("the good one: found %s, problems %+v", names(r), r.Problems)
		}
	}
}

func TestListsOfRulesThatCannotBe(t *testing.T) {
	good := above("a", "q", 2, 0.5)
	nameless, mute, twice := good, good, good
	nameless.Name, mute.Judge = "", nil
	twice.Signals = append(slices.Clone(good.Signals), good.Signals...)
	for name, rules := range map[string][]Rule{"nameless": {nameless}, "mute": {mute}, "two of a name": {good, good}, "two signals": {twice}} {
		if _, err := Evaluate(t.Context(), &fake{}, rules, Options{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Evaluate(ctx, &fake{}, []Rule{good}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestCoverageKnowsSlowScrapes(t *testing.T) {
	e := Options{Window: 5 * time.Minute, At: now}
	every := func(interval float64, n int) (points []query.Point) {
		for i := range n {
			at := float64(now.Unix()) - float64(i)*interval
			points = append(points, query.Point{Value: at}, query.Point{Value: at}) // seen at two steps
		}
		return points
	}
	for _, c := range []struct {
		interval float64
		n        int
		want     float64
	}{{5, 60, 1}, {60, 5, 1}, {15, 20, 1}, {5, 15, 0.25}, {60, 2, 0.4}, {5, 1, 1.0 / 60}, {5, 0, 0}, {120, 200, 1}} {
		if got := e.presence(every(c.interval, c.n), 5*time.Second).share; math.Abs(got-c.want) > 0.01 {
			t.Errorf("%d samples %v s apart cover %.3f, want %.3f", c.n, c.interval, got, c.want)
		}
	}
}

// An agent that started 28 s ago has many samples of its first seconds. They do not cover the time before.
func TestCoverageBeginsWithTheFirstSample(t *testing.T) {
	e := Options{Window: time.Minute, At: now}
	var points []query.Point
	for _, ago := range []float64{28, 27.5, 27, 26, 25, 20, 15, 10, 5, 0} {
		points = append(points, query.Point{Value: float64(now.Unix()) - ago})
	}
	there := e.presence(points, time.Second)
	if want := (28.0 + 5) / 60; math.Abs(there.share-want) > 0.01 || there.age != 28*time.Second || !there.unbroken {
		t.Errorf("%+v, want a share of %.3f", there, want)
	}
}
