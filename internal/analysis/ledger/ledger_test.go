// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
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
		Evidence: []analysis.Evidence{{Name: "it", Value: 1, Unit: "1/s", Query: "q"}}, Gain: analysis.Amdahl(0.1, 0.2, "x")}
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

// TestWhatIsNotLookedAtStays: a failing source or a restart of the agent does not close a finding.
func TestWhatIsNotLookedAtStays(t *testing.T) {
	s := newScribe(t)
	s.minute(nil, "a")
	s.check("found", "opened a")
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
	s.minute(nil, "a/high")
	s.check("worse", "opened a", "severity a medium")
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
	s.minute(nil, "a", "b")
	s.minute(nil, "a")
	s.at = s.at.Add(-24 * time.Hour)
	s.minute(nil, "a")
	s.check("set back by a day", "opened a", "opened b")
	if f := s.Open()[0]; f.FirstSeen.After(f.LastSeen) {
		t.Errorf("first seen %s, last seen %s", f.FirstSeen, f.LastSeen)
	}
	for range 11 {
		s.minute(nil, "a")
	}
	s.check("missing for ten minutes", "closed b")
}

func TestUnreadableFilesAreSetAside(t *testing.T) {
	good := func() string {
		s := newScribe(t)
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
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "TEESCOPE_TEST_LEDGER="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for buffer := make([]byte, 4096); strings.Count(text.String(), "\n") < 30*(round+1); {
			n, err := out.Read(buffer)
			if err != nil {
				t.Fatalf("it ended by itself: %v\n%s", err, text.String())
			}
			text.Write(buffer[:n])
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		if n := strings.Count(text.String(), "opened a\n"); n != map[bool]int{true: 1}[round == 0] {
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
		l := &Ledger{path: filepath.Join(t.TempDir(), "l"), open: b.Open, closed: b.Closed}
		if err := l.write(); err != nil {
			t.Fatal(err)
		}
		written, err := os.ReadFile(l.path)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseBook(written)
		if err != nil || len(again.Open) != len(b.Open) || len(again.Closed) != len(b.Closed) {
			t.Fatalf("%v: %s", err, written)
		}
	})
}
