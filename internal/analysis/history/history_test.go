// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/ledger"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// server is a ledger and a history as a server has them, one look a minute over windows of five minutes.
type server struct {
	t      *testing.T
	dir    string
	ledger *ledger.Ledger
	*Store
	log bytes.Buffer
	at  time.Time
}

func newServer(t *testing.T) *server {
	s := &server{t: t, dir: t.TempDir(), at: noon}
	s.start()
	return s
}

func (s *server) name() string { return filepath.Join(s.dir, "history") }

// start starts the server again: both files are read.
func (s *server) start() {
	s.t.Helper()
	log := slog.New(slog.NewTextHandler(&s.log, nil))
	var err error
	if s.ledger, err = ledger.Open(filepath.Join(s.dir, "ledger"), log, nil); err != nil {
		s.t.Fatal(err)
	}
	if s.Store, err = Open(s.name(), log); err != nil {
		s.t.Fatal(err)
	}
	if err := s.Begin(s.at, s.ledger.Open(), s.ledger.Closed()); err != nil {
		s.t.Fatal(err)
	}
}

func finding(rule, workload string, at time.Time) analysis.Finding {
	return analysis.Finding{
		ID: analysis.ID(rule, workload, "a"), Rule: rule, Title: "too much of it", Workload: workload, Instance: "a", Severity: analysis.Medium,
		Confidence: analysis.Likely, FirstSeen: at, LastSeen: at, Gain: estimate.Amdahl("one thread", 0.2, 0.5, "x"), Saving: estimate.Saves(0.5, 1.5, "y"),
		Evidence: []analysis.Evidence{{Name: "calls", Value: float64(at.Sub(noon).Minutes()), Unit: "1/s", N: 60, Query: "calls[5m]"}},
	}
}

// look passes a look to the ledger only, as before a kill.
func (s *server) look(names ...string) {
	s.t.Helper()
	s.at = s.at.Add(time.Minute)
	r := ledger.Observation{At: s.at, Window: 5 * time.Minute, Knows: func(_, _, _ string) bool { return true }}
	for _, name := range names {
		rule, workload, _ := strings.Cut(name, "/")
		r.Findings = append(r.Findings, finding(rule, workload, s.at))
	}
	if err := s.ledger.Update(r); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) minute(names ...string) {
	s.t.Helper()
	s.look(names...)
	if err := s.Sync(s.at, s.ledger.Open(), s.ledger.Closed()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) all() []Entry { return s.Select(func(Entry) bool { return true }) }

func minutes(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }

// A finding is found in the looks of minutes 2 to 20. It opens in the third minute, because two looks must agree, and it is
// no longer found from minute 21 on. It closes ten minutes later.
func TestAFindingBeginsAndEnds(t *testing.T) {
	s := newServer(t)
	s.minute()
	for s.at.Before(minutes(20)) {
		s.minute("chatter/redis")
	}
	if got := s.all(); len(got) != 1 || !got[0].Open() || !got[0].Began.Equal(minutes(3)) {
		t.Fatalf("while it is open: %+v", got)
	}
	for s.at.Before(minutes(40)) {
		s.minute()
	}
	want := Entry{
		Number: 0, ID: analysis.ID("chatter", "redis", "a"), Rule: "chatter", Title: "too much of it", Workload: "redis", Instance: "a",
		Severity: analysis.Medium, Confidence: analysis.Likely, Began: minutes(3), Ended: minutes(21), Closed: minutes(31),
		Evidence: []Figure{{Name: "calls", Value: 3, Unit: "1/s", N: 60, Query: "calls[5m]"}},
		Gain:     &Range{0.25, 1}, Saving: &Range{0.5, 1.5},
	}
	same := func(when string) {
		t.Helper()
		got := s.all()
		if len(got) != 1 {
			t.Fatalf("%s: %+v", when, got)
		}
		got[0].seen, got[0].size = time.Time{}, 0
		if !reflect.DeepEqual(got[0], want) {
			t.Errorf("%s:\n%+v, want\n%+v", when, got[0], want)
		}
	}
	same("in memory")
	s.start()
	same("read again")
}

// The summary of a cause that is open from minute 3 to 21, and from 101 to 111.
func TestHowOftenAndHowLong(t *testing.T) {
	s := newServer(t)
	s.minute()
	for s.at.Before(minutes(200)) {
		var names []string
		switch m := int(s.at.Sub(noon).Minutes()) + 1; {
		case m <= 20:
			names = []string{"chatter/redis"}
		case m >= 100 && m <= 110:
			names = []string{"chatter/redis", "chatter/nginx"}
		case m >= 195:
			names = []string{"locks/redis"}
		}
		s.minute(names...)
	}
	// What opens again within a day closes after four hours, and ends when it was no longer found.
	for s.at.Before(minutes(400)) {
		s.minute("locks/redis")
	}
	a := s.Ask(Question{From: minutes(0), To: minutes(400)}, s.at)
	want := []Summary{
		{Rule: "locks", Workload: "redis", Times: 1, Total: 204 * 60, Longest: 204 * 60, LastBegan: minutes(196), Open: true},
		{Rule: "chatter", Workload: "redis", Times: 2, Total: 28 * 60, Longest: 18 * 60, LastBegan: minutes(101), LastEnded: minutes(111)},
		{Rule: "chatter", Workload: "nginx", Times: 1, Total: 10 * 60, Longest: 10 * 60, LastBegan: minutes(101), LastEnded: minutes(111)},
	}
	for i := range want {
		want[i].Title, want[i].Instance, want[i].Severity = "too much of it", "a", analysis.Medium
	}
	if !reflect.DeepEqual(a.Summaries, want) {
		t.Errorf("summaries\n%+v, want\n%+v", a.Summaries, want)
	}
	if len(a.Findings) != 4 || !a.Findings[0].Open() || a.Findings[3].Began != minutes(3) {
		t.Errorf("findings %+v", a.Findings)
	}
	for _, tt := range []struct {
		what  string
		q     Question
		began []int // minutes
		total float64
	}{
		{"before the first", Question{To: minutes(2)}, nil, 0},
		{"a part of the first", Question{From: minutes(10), To: minutes(12)}, []int{3}, 2 * 60},
		{"between", Question{From: minutes(22), To: minutes(100)}, nil, 0},
		{"a rule", Question{To: minutes(400), Rule: "locks"}, []int{196}, 204 * 60},
		{"a workload", Question{To: minutes(400), Workload: "nginx"}, []int{101}, 10 * 60},
		{"a machine", Question{To: minutes(400), Instance: "b"}, nil, 0},
		{"the newest", Question{To: minutes(400), Limit: 1}, []int{196}, 204 * 60},
	} {
		a := s.Ask(tt.q, s.at)
		var began []int
		var total float64
		for _, e := range a.Findings {
			began = append(began, int(e.Began.Sub(noon).Minutes()))
		}
		for _, one := range a.Summaries {
			total += one.Total
		}
		if !slices.Equal(began, tt.began) || total != tt.total {
			t.Errorf("%s: began at %v and lasted %v s, want %v and %v s", tt.what, began, total, tt.began, tt.total)
		}
	}
	if a := s.Ask(Question{To: minutes(400), Limit: 1}, s.at); a.LeftOut != 3 || a.SummariesLeftOut != 2 {
		t.Errorf("left out %d findings and %d summaries", a.LeftOut, a.SummariesLeftOut)
	}
}

// The ledger is written before the history. A kill in between loses nothing.
func TestAKillBetweenLedgerAndHistory(t *testing.T) {
	s := newServer(t)
	s.minute()
	s.look("chatter/redis")
	s.look("chatter/redis") // opens
	s.start()
	if got := s.all(); len(got) != 1 || !got[0].Open() || !got[0].Began.Equal(minutes(3)) {
		t.Fatalf("the beginning is lost: %+v", got)
	}
	for s.at.Before(minutes(20)) {
		s.minute("chatter/redis")
	}
	for s.at.Before(minutes(35)) {
		s.look() // it closes
	}
	s.start()
	if got := s.all(); len(got) != 1 || !got[0].Ended.Equal(minutes(21)) || got[0].EndUnknown {
		t.Fatalf("the end is lost: %+v", got)
	}
	for s.at.Before(minutes(50)) {
		s.look("locks/redis") // what the first look after a start finds opens at once; it begins and ends while the history is not written
	}
	for s.at.Before(minutes(70)) {
		s.look()
	}
	s.start()
	if got := s.all(); len(got) != 2 || !got[1].Began.Equal(minutes(36)) || !got[1].Ended.Equal(minutes(51)) {
		t.Fatalf("a whole finding is lost: %+v", got)
	}
	s.start()
	if got := s.all(); len(got) != 2 {
		t.Fatalf("a start adds %d entries", len(got)-2)
	}
}

// Without the ledger, it is not known when a finding ended. The next one of the same cause is another one.
func TestTheLedgerIsLost(t *testing.T) {
	s := newServer(t)
	for s.at.Before(minutes(20)) {
		s.minute("chatter/redis")
	}
	if err := os.Remove(filepath.Join(s.dir, "ledger")); err != nil {
		t.Fatal(err)
	}
	s.start()
	for s.at.Before(minutes(30)) {
		s.minute("chatter/redis")
	}
	got := s.all()
	if len(got) != 2 || !got[0].EndUnknown || got[0].Open() || !got[1].Open() || got[1].EndUnknown {
		t.Fatalf("%+v", got)
	}
	if a := s.Ask(Question{To: s.at}, s.at); len(a.Summaries) != 1 || a.Summaries[0].Times != 2 || a.Summaries[0].UnknownEnds != 1 || !a.Summaries[0].Open {
		t.Errorf("%+v", a.Summaries)
	}
}

// The clock is set back by a day while a finding is open, and forward by ten years.
func TestTheClockIsSet(t *testing.T) {
	s := newServer(t)
	for s.at.Before(minutes(20)) {
		s.minute("chatter/redis")
	}
	s.at = s.at.Add(-24 * time.Hour)
	for range 5 {
		s.minute("chatter/redis")
	}
	for range 15 {
		s.minute()
	}
	got := s.all()
	if len(got) != 1 || got[0].Open() || got[0].Ended.Before(got[0].Began) || got[0].Began.After(s.at) {
		t.Fatalf("set back: %+v", got)
	}
	s.at = s.at.AddDate(10, 0, 0)
	s.minute("locks/redis")
	s.minute("locks/redis")
	s.start()
	if got = s.all(); len(got) != 2 || s.log.Len() > 0 {
		t.Fatalf("set forward: %+v\n%s", got, s.log.String())
	}
}

func TestASilenceIsRemembered(t *testing.T) {
	s := newServer(t)
	of := func(kind analysis.SilenceKind) []analysis.Finding {
		f := finding("chatter", "redis", noon)
		if kind != "" {
			f.Silence = &analysis.Silenced{ID: "x", Kind: kind}
		}
		return []analysis.Finding{f}
	}
	for _, step := range []struct{ now, want analysis.SilenceKind }{
		{"", ""}, {analysis.Acknowledged, analysis.Acknowledged}, {"", analysis.Acknowledged}, {analysis.Mute, analysis.Mute},
		{analysis.Acknowledged, analysis.Mute}, {"", analysis.Mute},
	} {
		if err := s.Sync(noon, of(step.now), nil); err != nil {
			t.Fatal(err)
		}
		again, err := Open(s.name(), slog.Default())
		if err != nil {
			t.Fatal(err)
		}
		if got := again.Select(func(Entry) bool { return true }); len(got) != 1 || got[0].Silence != step.want {
			t.Errorf("after %q: %+v, want %q", step.now, got, step.want)
		}
	}
}

// Names are chosen by other users. Entries stay within their bound, and what is read has no control character.
func TestHostileNames(t *testing.T) {
	s := newServer(t)
	for i, name := range []string{strings.Repeat("x", 1<<20), "a\nb\x1b[31m", "\xff\xfe", strings.Repeat("\"\\<", 500), "\u202e", ""} {
		f := finding("chatter", name, noon)
		f.Title, f.Instance = name, name
		for j := range 50 {
			low := math.Inf(-1)
			f.Evidence = append(f.Evidence, analysis.Evidence{Name: name, Value: float64(j), Unit: name, Low: &low, High: &low, Query: name},
				analysis.Evidence{Name: "nan", Value: math.NaN()})
		}
		f.Gain.High, f.Saving.High = math.Inf(1), math.NaN()
		if err := s.Sync(noon, []analysis.Finding{f}, nil); err != nil {
			t.Errorf("%d: %v", i, err)
		}
		event := analysis.Preceding{Kind: analysis.Restart, What: name, Workload: name}
		change := &Change{Name: name, Unit: name, Query: strings.Repeat(`"`, maxQuery)}
		err := s.Change(map[uint64]func(*Entry){uint64(i): func(e *Entry) {
			e.Preceded = slices.Repeat([]analysis.Preceding{event}, 50)
			e.Earlier = slices.Repeat([]analysis.Earlier{{Name: name, Unit: name, Query: strings.Repeat(`"`, maxQuery)}}, 50)
			e.Outcome = &Outcome{After: e.Preceded, Evidence: change, Cores: change, Operations: change, PerOperation: change}
		}})
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	was := s.all()
	s.Store, _ = Open(s.name(), slog.New(slog.NewTextHandler(&s.log, nil)))
	got := s.all()
	if len(got) != 6 || s.log.Len() > 0 {
		t.Fatalf("%d entries\n%s", len(got), s.log.String())
	}
	for i := range got {
		got[i].seen, was[i].seen = time.Time{}, time.Time{}
		if !reflect.DeepEqual(got[i], was[i]) || got[i].size > maxLine {
			t.Errorf("%d bytes, read\n%+v, want\n%+v", got[i].size, got[i], was[i])
		}
	}
	text, err := os.ReadFile(s.name())
	if err != nil || bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f }) {
		t.Errorf("the file has a control character, %v", err)
	}
}

// What JSON cannot hold does not stop the history.
func TestWhatCannotBeWritten(t *testing.T) {
	s := newServer(t)
	bad := finding("chatter", "bad", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
	if err := s.Sync(noon, []analysis.Finding{bad, finding("chatter", "good", noon)}, nil); err == nil || !strings.Contains(err.Error(), "leaving a finding out") {
		t.Errorf("error %v", err)
	}
	err := s.Change(map[uint64]func(*Entry){1: func(e *Entry) { e.Preceded = []analysis.Preceding{{Chance: math.NaN()}} }})
	if got := s.all(); err != nil || len(got) != 1 || got[0].Workload != "good" || got[0].Preceded != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if err := s.Sync(noon, []analysis.Finding{finding("chatter", "good", noon)}, nil); err != nil {
		t.Error(err)
	}
	s.Store, _ = Open(s.name(), slog.Default())
	if got := s.all(); len(got) != 1 || got[0].Workload != "good" {
		t.Errorf("read again %+v", got)
	}
}

// ended returns findings of a machine that the ledger has closed, each a minute after the other.
func ended(machine string, severity analysis.Severity, n int) (all []ledger.Entry) {
	for i := range n {
		f := finding(fmt.Sprint("rule", i), "w", minutes(i))
		f.ID, f.Instance, f.Severity = analysis.ID(f.Rule, "w", machine), machine, severity
		all = append(all, ledger.Entry{Finding: f, Closed: minutes(i + 1)})
	}
	slices.Reverse(all)
	return all
}

// A machine with many findings takes no place from the others. Its findings of severity info go first, and then the oldest.
func TestTheHistoryHasBounds(t *testing.T) {
	s := newServer(t)
	add := func(machine string, severity analysis.Severity, n int) {
		t.Helper()
		if err := s.Begin(noon, nil, ended(machine, severity, n)); err != nil {
			t.Fatal(err)
		}
	}
	count := func(machine string) (n int) {
		return len(s.Select(func(e Entry) bool { return e.Instance == machine }))
	}
	add("quiet", analysis.Info, 100)
	add("busy", analysis.Medium, 1000)
	s.lost.Until = time.Time{}
	for i := range 20 { // 1,000 other findings each time, of the same times
		all := ended("noisy", analysis.Info, 1000)
		for j := range all {
			all[j].Rule = fmt.Sprint(i, all[j].Rule)
			all[j].ID = analysis.ID(all[j].Rule, "w", "noisy")
		}
		s.lost.Until = time.Time{}
		if err := s.Begin(noon, nil, all); err != nil {
			t.Fatal(err)
		}
	}
	if quiet, busy := count("quiet"), count("busy"); quiet != 100 || busy != 1000 || len(s.entries) > maxEntries || len(s.entries) < maxEntries*9/10 {
		t.Errorf("%d and %d of 100 and 1000 are left, of %d", quiet, busy, len(s.entries))
	}
	if s.lost.Entries != 21_100-uint64(len(s.entries)) || s.lost.Until.IsZero() {
		t.Errorf("dropped %+v", s.lost)
	}
	if a := s.Ask(Question{To: minutes(1 << 20)}, noon); !a.CompleteSince.Equal(s.lost.Until) || a.LeftOut != len(s.entries)-UsualLimit {
		t.Errorf("complete since %s, left out %d", a.CompleteSince, a.LeftOut)
	}
	n, lost := len(s.entries), s.lost
	s.Store, _ = Open(s.name(), slog.Default())
	if len(s.entries) != n || s.lost != lost {
		t.Errorf("read again %d of %d, dropped %+v of %+v", len(s.entries), n, s.lost, lost)
	}
	// Of one machine: the medium ones stay.
	one := newServer(t)
	for _, e := range slices.Concat(ended("m", analysis.Medium, maxEntries), ended("m", analysis.Info, 500)) {
		x := entryOf(e.Finding)
		x.end(e)
		one.add(x)
	}
	one.limit()
	info := one.Select(func(e Entry) bool { return e.Severity == analysis.Info })
	if len(info) != 0 || len(one.entries) != maxEntries*15/16 {
		t.Errorf("%d of severity info are left, of %d", len(info), len(one.entries))
	}
}

// Large entries are bounded by their bytes, and the file by twice as much.
func TestTheFileHasABound(t *testing.T) {
	s := newServer(t)
	f := finding("chatter", "w", noon)
	f.Evidence = nil
	for range maxFigures {
		f.Evidence = append(f.Evidence, analysis.Evidence{Name: strings.Repeat("n", maxName), Unit: strings.Repeat("u", maxName)})
	}
	for round := range 9 {
		var open []analysis.Finding
		for i := range 1000 {
			f.Rule = fmt.Sprint(round, "-", i)
			f.ID = analysis.ID(f.Rule, f.Workload, f.Instance)
			open = append(open, f)
		}
		if err := s.Sync(noon, open, nil); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(s.name()); err != nil || info.Size() > maxFile || s.file.lines > maxBytes {
			t.Fatalf("%d bytes, of which %d are current: %v", info.Size(), s.file.lines, err)
		}
	}
	if s.lost.Entries == 0 {
		t.Error("nothing was dropped")
	}
}
