// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/lib/proctest"
)

var nowL = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// always stands for an evaluation that judged everything.
func always(_, _, _ string) bool { return true }

// scribe is a ledger and its reported events.
type scribe struct {
	*Ledger
	t    *testing.T
	path string
	log  bytes.Buffer
	told []string
	at   time.Time
}

func newScribe(t *testing.T) *scribe {
	s := &scribe{t: t, path: filepath.Join(t.TempDir(), "findings.json"), at: nowL}
	s.reopen()
	return s
}

// reopen simulates a restart.
func (s *scribe) reopen() {
	s.t.Helper()
	var err error
	s.Ledger, err = Open(s.path, slog.New(slog.NewTextHandler(&s.log, nil)), func(e Event) {
		s.told = append(s.told, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Kind, e.Finding.Rule, e.Was)))
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func finding(rule string, severity analysis.Severity, at time.Time) analysis.Finding {
	return analysis.Finding{ID: analysis.ID(rule, "w", "a"), Rule: rule, Workload: "w", Instance: "a", Severity: severity, FirstSeen: at, LastSeen: at,
		Evidence: []analysis.Evidence{{Name: "it", Value: 1, Unit: "1/s", Query: "q"}}, Gain: estimate.Amdahl("one thread", 0.1, 0.2, "x")}
}

// minute advances the time by a minute and reports these findings.
func (s *scribe) minute(change func(*Observation), rules ...string) {
	s.t.Helper()
	s.at = s.at.Add(time.Minute)
	r := Observation{At: s.at, Window: 5 * time.Minute, Knows: always}
	for _, rule := range rules {
		name, severity, _ := strings.Cut(rule, "/")
		if severity == "" {
			severity = string(analysis.Medium)
		}
		r.Findings = append(r.Findings, finding(name, analysis.Severity(severity), s.at))
	}
	if change != nil {
		change(&r)
	}
	if err := s.Update(r); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scribe) check(what string, told ...string) {
	s.t.Helper()
	if !slices.Equal(s.told, told) {
		s.t.Errorf("%s: reported %q, want %q", what, s.told, told)
	}
	s.told = nil
}

func TestAFindingLives(t *testing.T) {
	s := newScribe(t)
	s.minute(nil, "a", "b")
	first := s.at
	s.check("the first minute", "opened a", "opened b")
	s.minute(nil, "b", "a")
	s.check("confirmed", "severity b low", "severity a low")
	for range 20 {
		s.minute(nil, "b", "a")
		s.reopen()
	}
	s.check("the same for twenty minutes with restarts")
	open := s.Open()
	if len(open) != 2 || open[0].Rule != "b" || !open[0].FirstSeen.Equal(first) || !open[0].LastSeen.Equal(s.at) {
		t.Errorf("open: %+v", open)
	}
	for range 10 {
		s.minute(nil, "b")
	}
	s.check("missing for nine minutes")
	s.minute(nil, "b")
	s.check("missing for ten minutes", "closed a")
	if closed := s.Closed(); len(closed) != 1 || !closed[0].Closed.Equal(s.at) || !closed[0].FirstSeen.Equal(first) {
		t.Errorf("closed: %+v", closed)
	}
	s.reopen()
	s.minute(nil, "a", "b")
	s.check("found again after it was closed", "opened a")
	if len(s.Closed()) != 1 {
		t.Error("what was closed is forgotten by a restart")
	}
}

// TestAFindingOpensWhenTwoOfThreeLooksAgree: after the first look, one look is not enough.
func TestAFindingOpensWhenTwoOfThreeLooksAgree(t *testing.T) {
	s := newScribe(t)
	s.minute(nil)
	for range 5 { // every third look
		s.minute(nil, "a")
		s.minute(nil)
		s.minute(nil)
	}
	s.check("one of three looks")
	s.minute(nil, "a")
	s.minute(nil)
	s.minute(nil, "a")
	s.check("two of three looks", "opened a")
	if f := s.Open()[0]; f.Severity != analysis.Medium || f.Unconfirmed {
		t.Errorf("opened as %+v", f)
	}
	s.minute(nil, "a", "b")
	s.minute(func(r *Observation) { r.Knows = func(rule, _, _ string) bool { return rule != "b" } }, "a")
	s.minute(func(r *Observation) { r.Knows = func(rule, _, _ string) bool { return rule != "b" } }, "a")
	s.check("not known whether there is b")
	s.minute(nil, "a", "b")
	s.check("looks that know nothing do not count", "opened b")
	s.minute(func(r *Observation) {
		e := finding("e", analysis.High, s.at)
		r.Findings, r.AtOnce = append(r.Findings, e), map[string]bool{e.ID: true}
	}, "a", "b")
	s.check("an event", "opened e")
}

// TestWhatComesEveryHourIsToldTwice: a finding that opens again within a day stays open over the next hours, also after a
// restart. One of severity info raises no alert and closes as usual.
func TestWhatComesEveryHourIsToldTwice(t *testing.T) {
	s := newScribe(t)
	s.minute(nil)
	for hour := range 12 {
		for minute := range 60 {
			if minute < 15 {
				s.minute(nil, "a", "i/info")
			} else {
				s.minute(nil)
			}
			if hour == 0 && minute == 30 {
				s.check("the first hour", "opened a", "opened i", "closed a", "closed i")
				s.reopen()
				s.minute(nil)
			}
		}
	}
	n := 0
	for _, told := range s.told {
		if told == "opened a" {
			n++
		}
	}
	if n != 1 || len(s.told) < 20 {
		t.Errorf("a was opened %d times in the next hours: %v", n, s.told)
	}
	s.told = nil
	for range 4 * 60 {
		s.minute(nil)
	}
	s.check("four hours later", "closed a")
	s.at = s.at.Add(25 * time.Hour)
	s.minute(nil, "a")
	s.minute(nil, "a")
	for range 11 {
		s.minute(nil)
	}
	s.check("two days later", "opened a", "closed a")
}

// TestAnAlertDoesNotFlap: the severity info has no alert, so a severity that falls to it is like an end.
func TestAnAlertDoesNotFlap(t *testing.T) {
	s := newScribe(t)
	s.minute(nil, "a/info")
	for range 5 {
		for range 20 {
			s.minute(nil, "a/low")
		}
		for range 30 {
			s.minute(nil, "a/info")
		}
	}
	s.check("low for 20 minutes and info for 30, again and again", "opened a", "severity a info", "severity a low", "severity a info")
	for range 4 * 60 {
		s.minute(nil, "a/info")
	}
	s.check("info for hours", "severity a low")
}

// TestTheFirstLookIsCareful: what it finds is low and possible, until another look confirms it or does not find it.
func TestTheFirstLookIsCareful(t *testing.T) {
	s := newScribe(t)
	s.minute(nil, "a/high", "b/high", "c/info")
	for _, f := range s.Open() {
		if !f.Unconfirmed || f.Confidence != analysis.Possible || f.Severity.AtLeast(analysis.Medium) || f.Rule == "c" && f.Severity != analysis.Info {
			t.Errorf("the first look opens %+v", f)
		}
	}
	s.minute(nil, "a/high", "c/info")
	s.check("the second look", "opened a", "opened b", "opened c", "severity a low", "closed b")
	if f := s.Open()[0]; f.Unconfirmed || f.Severity != analysis.High || f.Confidence == analysis.Possible {
		t.Errorf("confirmed as %+v", f)
	}
	s.minute(nil, "c/info")
	if f := s.Open()[1]; f.Rule != "a" || !f.AbsentSince.Equal(s.at) || f.Unconfirmed {
		t.Errorf("after it was missing: %+v", f)
	}
	s.reopen()
	s.minute(nil, "a/high")
	s.check("found again after a restart")
	if f := s.Open()[0]; !f.AbsentSince.IsZero() || f.Severity != analysis.High {
		t.Errorf("found again: %+v", f)
	}
}

// TestLooksAreForgotten: the memory of looks does not grow with causes that come and go, or of which nothing is known.
func TestLooksAreForgotten(t *testing.T) {
	s := newScribe(t)
	for i := range 100 {
		s.minute(func(r *Observation) {
			r.Knows = func(rule, _, _ string) bool { return !strings.HasPrefix(rule, "dark") }
		}, fmt.Sprint("a", i), fmt.Sprint("dark", i))
	}
	if n := len(s.looks); n > 20 {
		t.Errorf("%d causes are remembered", n)
	}
}

// TestWhatIsNotLookedAtStays: a failing source or a restart of the agent does not close a finding.
func TestWhatIsNotLookedAtStays(t *testing.T) {
	s := newScribe(t)
	s.minute(nil, "a")
	s.minute(nil, "a")
	s.check("found", "opened a", "severity a low")
	for name, change := range map[string]func(*Observation){
		"a blind evaluation": func(r *Observation) { r.Knows = func(_, _, _ string) bool { return false } },
		"a query that fails": func(r *Observation) { r.Knows = func(rule, _, _ string) bool { return rule != "a" } },
		"a gap": func(r *Observation) {
			r.Knows = func(_, workload, instance string) bool { return workload != "w" || instance != "a" }
		},
	} {
		for range 30 {
			s.minute(change)
		}
		s.check(name)
		for range 9 { // too few alone, and earlier ones do not count
			s.minute(nil)
		}
		s.check("after " + name)
		s.minute(change)
	}
	s.minute(nil, "a")
	s.check("found again")
}

func TestSeverityIsToldWhenItLasts(t *testing.T) {
	s := newScribe(t)
	s.minute(nil, "a")
	s.minute(nil, "a")
	s.check("found twice", "opened a", "severity a low")
	s.minute(nil, "a/high")
	s.check("worse in one look")
	s.minute(nil, "a/high")
	s.check("worse in two looks", "severity a medium")
	for range 10 {
		s.minute(nil, "a/low")
		s.minute(nil, "a/high")
	}
	s.check("to and fro")
	for range 10 {
		s.minute(nil, "a/low")
	}
	s.check("milder for nine minutes")
	if got := s.Open()[0].Severity; got != analysis.High {
		t.Errorf("severity %s before it is reported", got)
	}
	s.minute(nil, "a/low")
	s.check("milder for ten minutes", "severity a high")
}

func TestClockSetBack(t *testing.T) {
	s := newScribe(t)
	s.minute(nil, "a/low", "b/low")
	s.minute(nil, "a/low", "b/low")
	s.minute(nil, "a/low")
	s.at = s.at.Add(-24 * time.Hour)
	s.minute(nil, "a/low")
	s.check("set back by a day", "opened a", "opened b")
	if f := s.Open()[0]; f.FirstSeen.After(f.LastSeen) {
		t.Errorf("first seen %s, last seen %s", f.FirstSeen, f.LastSeen)
	}
	for range 11 {
		s.minute(nil, "a/low")
	}
	s.check("missing for ten minutes", "closed b")
}

func TestUnreadableFilesAreSetAside(t *testing.T) {
	good := func() string {
		s := newScribe(t)
		s.minute(nil, "a")
		s.minute(nil, "a")
		text, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}()
	for name, text := range map[string]string{
		"empty":         "",
		"cut":           good[:len(good)/2],
		"a new version": strings.Replace(good, `"version":1`, `"version":2`, 1),
		"another ID":    strings.Replace(good, `"rule":"a"`, `"rule":"b"`, 1),
		"no severity":   strings.Replace(good, `"medium"`, `"grave"`, 1),
	} {
		s := newScribe(t)
		if err := os.WriteFile(s.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.reopen()
		kept, err := os.ReadFile(s.path + ".bad")
		if err != nil || string(kept) != text || !strings.Contains(s.log.String(), "has been renamed") || len(s.Open()) != 0 {
			t.Errorf("%s: %v, open %v, log %s", name, err, s.Open(), s.log.String())
		}
		s.minute(nil, "a")
		s.reopen()
		if len(s.Open()) != 1 {
			t.Errorf("%s: does not continue afterwards", name)
		}
	}
}

func TestALedgerHasBounds(t *testing.T) {
	s := newScribe(t)
	many := func(prefix string) (rules []string) {
		for i := range maxOpen + 10 {
			rules = append(rules, fmt.Sprintf("%s%d", prefix, i))
		}
		return rules
	}
	s.minute(nil, many("a")...)
	if got := len(s.Open()); got != maxOpen {
		t.Errorf("%d open, want at most %d", got, maxOpen)
	}
	s.minute(nil)
	s.at = s.at.Add(time.Hour)
	s.minute(nil)
	if open, closed := len(s.Open()), len(s.Closed()); open != 0 || closed != maxClosed {
		t.Errorf("%d open and %d closed, want 0 and %d", open, closed, maxClosed)
	}
	s.reopen()
	if len(s.Closed()) != maxClosed {
		t.Error("a full ledger cannot be read: " + s.log.String())
	}
}

func TestALedgerWithoutAPlaceToWriteGoesOn(t *testing.T) {
	s := newScribe(t)
	if err := os.Mkdir(s.path+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	r := Observation{At: nowL, Window: time.Minute, Knows: always, Findings: []analysis.Finding{finding("a", analysis.High, nowL)}}
	r.AtOnce = map[string]bool{r.Findings[0].ID: true}
	for range 2 {
		if err := s.Update(r); err == nil || !strings.Contains(err.Error(), "writing the findings") {
			t.Errorf("error %v", err)
		}
	}
	s.check("no room", "opened a")
}

// TestMain is also the process that [TestKilledLedgerIsReadable] kills.
func TestMain(m *testing.M) {
	if path := os.Getenv("TEESCOPE_TEST_LEDGER"); path != "" {
		l, err := Open(path, slog.Default(), func(e Event) { fmt.Println(e.Kind, e.Finding.Rule) })
		for i := 0; err == nil; i++ {
			at := nowL.Add(time.Duration(i) * time.Minute)
			r := Observation{At: at, Window: time.Minute, Knows: always, Findings: []analysis.Finding{finding("a", analysis.High, at), finding(fmt.Sprint("b", i), analysis.Low, at)}}
			r.AtOnce = map[string]bool{r.Findings[0].ID: true, r.Findings[1].ID: true}
			err = l.Update(r)
		}
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestKilledLedgerIsReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "findings.json")
	for round := range 3 {
		text := proctest.KillAfter(t, "TEESCOPE_TEST_LEDGER="+path, 30*(round+1))
		if n := strings.Count(text, "opened a\n"); n != map[bool]int{true: 1}[round == 0] {
			t.Errorf("round %d: the open finding was reported %d times", round, n)
		}
		var log bytes.Buffer
		l, err := Open(path, slog.New(slog.NewTextHandler(&log, nil)), nil)
		if err != nil || log.Len() > 0 || len(l.Open()) == 0 || l.Open()[0].Rule != "a" {
			t.Fatalf("round %d: %v, %s", round, err, log.String())
		}
	}
}

// FuzzLedger: for any content of the file, the parsed ledger can be written and read again.
func FuzzLedger(f *testing.F) {
	f.Add([]byte(`{"version":1,"open":[],"closed":null}`))
	f.Add([]byte(`{"version":1,"open":[{"id":"` + analysis.ID("a", "w", "") + `","rule":"a","workload":"w","severity":"high","first_seen":"2026-01-01T00:00:00Z"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := parseBook(text)
		if err != nil {
			return
		}
		l := &Ledger{path: filepath.Join(t.TempDir(), "l"), open: b.Open, closed: b.Closed, ended: b.Ended}
		if err := l.write(); err != nil {
			t.Fatal(err)
		}
		written, err := os.ReadFile(l.path)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseBook(written)
		if err != nil || len(again.Open) != len(b.Open) || len(again.Closed) != len(b.Closed) || len(again.Ended) != len(b.Ended) {
			t.Fatalf("%v: %s", err, written)
		}
	})
}
