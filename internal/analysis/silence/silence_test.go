// SPDX-License-Identifier: Apache-2.0

package silence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func matchers(t *testing.T, texts ...string) []Matcher {
	t.Helper()
	var all []Matcher
	for _, s := range texts {
		m, err := ParseMatcher(s)
		if err != nil {
			t.Fatal(err)
		}
		if m.String() != s {
			t.Errorf("%q is written as %q", s, m)
		}
		all = append(all, m)
	}
	return all
}

func mute(t *testing.T, texts ...string) Silence {
	t.Helper()
	return Silence{Kind: analysis.Mute, Matchers: matchers(t, texts...), EndsAt: now.Add(time.Hour), Comment: "a load test"}
}

func finding(rule, workload, instance string) analysis.Finding {
	return analysis.Finding{ID: analysis.ID(rule, workload, instance), Rule: rule, Workload: workload, Instance: instance, FirstSeen: now.Add(-time.Minute)}
}

// Matchers are those of Alertmanager: a regular expression matches the whole value, and all matchers must match.
func TestWhatASilenceCovers(t *testing.T) {
	f := finding("lock-contention", "redis-server", "node1:9750")
	for matcher, want := range map[string]bool{
		"workload=redis-server": true, "workload=redis": false, "workload!=redis": true, "workload!=redis-server": false,
		"workload=~redis": false, "workload=~redis.*": true, "workload=~nginx|redis-server": true, "workload!~redis.*": false, "workload!~nginx": true,
		"rule=lock-contention": true, "rule=~.+": true, "instance=node1:9750": true, "instance=~node2.*": false, "instance!=": true,
	} {
		all := mute(t, matcher)
		all.StartsAt = now
		if got := all.covers(f, now); got != want {
			t.Errorf("%s covers it: %v", matcher, got)
		}
		both := mute(t, matcher, "rule=small-io")
		both.StartsAt = now
		if both.covers(f, now) {
			t.Errorf("%s and another rule cover it", matcher)
		}
	}
}

func TestASilenceCoversFromItsStartToItsEnd(t *testing.T) {
	f, s := finding("small-io", "w", ""), mute(t, "workload=w")
	s.StartsAt = now
	for at, want := range map[time.Duration]State{-time.Second: Pending, 0: Active, time.Hour - 1: Active, time.Hour: Expired} {
		if got := s.State(now.Add(at)); got != want || s.covers(f, now.Add(at)) != (want == Active) {
			t.Errorf("after %s it is %s", at, got)
		}
	}
	s.Kind, s.EndsAt = analysis.Intended, time.Time{}
	if s.State(now.AddDate(10, 0, 0)) != Active {
		t.Error("a silence without an end ends")
	}
}

// What begins after the acknowledgement is news.
func TestAnAcknowledgementCoversWhatBeganBefore(t *testing.T) {
	s := mute(t, "workload=w")
	s.Kind, s.StartsAt = analysis.Acknowledged, now
	old, next := finding("small-io", "w", ""), finding("small-io", "w", "")
	next.FirstSeen = now.Add(time.Second)
	if at := now.Add(time.Minute); !s.covers(old, at) || s.covers(next, at) {
		t.Errorf("it covers the older finding: %v, and the newer: %v", s.covers(old, at), s.covers(next, at))
	}
}

func TestBadMatchers(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"redis", "is not a matcher: use for example workload=redis-server"},
		{"severity=high", "is not one of rule, workload, instance"},
		{"workload=~a)|(b", "unexpected )"},
		{"workload=~a{1000}b{900}", "too large"},
		{"workload=" + strings.Repeat("x", 513), "has 513 bytes; the maximum is 512"},
		{"workload=a\x1bb", "control character"},
	} {
		if _, err := ParseMatcher(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: %v, want %q", tt.text, err, tt.want)
		}
	}
}

func TestBadSilences(t *testing.T) {
	store, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Silence){
		`kind "nap": use mute, acknowledged or works-as-intended`: func(s *Silence) { s.Kind = "nap" },
		"a silence needs a comment":                               func(s *Silence) { s.Comment = "  " },
		"comment has 1001 bytes; the maximum is 1000":             func(s *Silence) { s.Comment = strings.Repeat("x", 1001) },
		"write one line":                                     func(s *Silence) { s.Comment = "a\nb" },
		"createdBy has 101 bytes":                            func(s *Silence) { s.CreatedBy = strings.Repeat("x", 101) },
		"a mute needs an end":                                func(s *Silence) { s.EndsAt = time.Time{} },
		"before it starts at":                                func(s *Silence) { s.StartsAt = now.Add(2 * time.Hour) },
		"it ends at 2026-03-01T12:00:00Z, which is over":     func(s *Silence) { s.EndsAt = now },
		"9 matchers; the maximum is 8":                       func(s *Silence) { s.Matchers = make([]Matcher, 9) },
		"at least one matcher must not match an empty value": func(s *Silence) { s.Matchers = nil },
		"at least one matcher must not match":                func(s *Silence) { s.Matchers = matchers(t, "rule=~.*", "workload!=x") },
	} {
		s := mute(t, "workload=w")
		change(&s)
		if _, err := store.Add(s, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if len(store.List()) != 0 {
		t.Errorf("stored %+v", store.List())
	}
}

// Each change is in the file before it is confirmed, so that a kill loses none that was.
func TestSilencesOutliveTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "silences.json")
	store, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	past := mute(t, "workload=~redis.*", "rule!=small-io")
	past.StartsAt, past.CreatedBy = now.Add(-time.Hour), "me"
	first, err := store.Add(past, now)
	if err != nil || first.ID == "" || !first.StartsAt.Equal(now) {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := store.Add(Silence{Kind: analysis.Intended, Matchers: matchers(t, "workload=w"), Comment: "polls"}, now)
	if err != nil || second.ID == first.ID {
		t.Fatalf("%+v, %v", second, err)
	}
	later := now.Add(time.Minute)
	if err := store.End(first.ID, later); err != nil {
		t.Fatal(err)
	}
	if err := store.End("none", later); !errors.Is(err, ErrUnknown) {
		t.Errorf("ending an unknown one: %v", err)
	}
	again, err := Open(path)
	if err != nil || !reflect.DeepEqual(again.List(), store.List()) {
		t.Fatalf("%v, read\n%+v, want\n%+v", err, again.List(), store.List())
	}
	found := []analysis.Finding{finding("lock-contention", "redis-server", ""), finding("polling-loop", "w", "")}
	if marked := again.Mark(found, later.Add(-time.Second)); marked[0].Silence == nil || marked[1].Silence == nil {
		t.Errorf("before the first was ended: %+v", marked)
	}
	if marked := again.Mark(found, later); marked[0].Silence != nil || marked[1].Silence.ID != second.ID || marked[1].Silence.Comment != "polls" || found[1].Silence != nil {
		t.Errorf("marked %+v, given %+v", marked, found)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestHidingComesFirst(t *testing.T) {
	store, _ := Open("")
	for _, kind := range []analysis.SilenceKind{analysis.Acknowledged, analysis.Mute, analysis.Acknowledged} {
		s := mute(t, "workload=w")
		s.Kind = kind
		if _, err := store.Add(s, now); err != nil {
			t.Fatal(err)
		}
	}
	marked := store.Mark([]analysis.Finding{finding("small-io", "w", "")}, now)
	if marked[0].Silence.Kind != analysis.Mute {
		t.Errorf("it is %s", marked[0].Silence.Kind)
	}
	if listed, hidden := analysis.Listed(marked); len(listed) != 0 || hidden != 1 || len(analysis.Audible(marked)) != 0 {
		t.Errorf("listed %+v, hidden %d", listed, hidden)
	}
}

func TestSilencesAreBounded(t *testing.T) {
	store, _ := Open("")
	add := func(at time.Time) (Silence, error) {
		return store.Add(Silence{Kind: analysis.Mute, Matchers: matchers(t, "workload=w"), EndsAt: at.Add(time.Hour), Comment: "x"}, at)
	}
	for range maxLive {
		if _, err := add(now); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := add(now); !errors.Is(err, ErrFull) {
		t.Fatalf("one more: %v", err)
	}
	later := now.Add(2 * time.Hour) // all have ended
	if _, err := add(later); err != nil || len(store.List()) != maxExpired+1 {
		t.Errorf("%d silences, %v", len(store.List()), err)
	}
	if _, err := add(now.Add(keepExpired + 2*time.Hour)); err != nil || len(store.List()) != 2 {
		t.Errorf("%d silences five days later, %v", len(store.List()), err)
	}
}

// A file that is damaged is kept under another name, and the store can be used.
func TestADamagedFile(t *testing.T) {
	valid := `{"id":"a","kind":"works-as-intended","matchers":[{"name":"workload","value":"w","isRegex":false,"isEqual":true}],"startsAt":"2026-03-01T12:00:00Z","comment":"x"}`
	book := func(silences string) string { return fmt.Sprintf(`{"version":1,"silences":[%s]}`, silences) }
	for name, text := range map[string]string{
		"empty": "", "cut": book(valid)[:60], "newer": `{"version":2}`, "the same ID": book(valid + "," + valid),
		"a bad regex": book(strings.Replace(strings.Replace(valid, `"w"`, `"("`, 1), "false", "true", 1)),
		"without ID":  book(strings.Replace(valid, `"a"`, `""`, 1)),
		"too many":    book(strings.Repeat(valid+",", maxLive+maxExpired) + valid),
	} {
		path := filepath.Join(t.TempDir(), "silences.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		store, err := Open(path)
		if err == nil || !strings.Contains(err.Error(), path+".bad") || !strings.Contains(err.Error(), "raise alerts again") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := store.Add(mute(t, "workload=w"), now); err != nil {
			t.Errorf("%s: adding one: %v", name, err)
		}
		if kept, err := os.ReadFile(path + ".bad"); err != nil || string(kept) != text {
			t.Errorf("%s: kept %q, %v", name, kept, err)
		}
		if again, err := Open(path); err != nil || len(again.List()) != 1 {
			t.Errorf("%s: reading it again: %v", name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "silences.json")
	if err := os.WriteFile(path, []byte(book(valid)), 0o600); err != nil {
		t.Fatal(err)
	}
	if store, err := Open(path); err != nil || len(store.List()) != 1 {
		t.Errorf("the valid file: %v", err)
	}
}

// A change that cannot be written has no effect.
func TestAChangeThatIsNotWritten(t *testing.T) {
	store, err := Open(filepath.Join(t.TempDir(), "none", "silences.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Add(mute(t, "workload=w"), now); !errors.Is(err, ErrNotStored) || len(store.List()) != 0 {
		t.Errorf("%v, %+v", err, store.List())
	}
}

// A file that cannot be read now is not damaged: it stays, nothing is written over it, and it is read when it can be.
func TestAFileThatCannotBeReadStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "silences.json")
	first, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	one := Silence{Kind: analysis.Intended, Matchers: matchers(t, "workload=w"), Comment: "polls"}
	if _, err := first.Add(one, now); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil { // to read it is an error also for root
		t.Fatal(err)
	}
	s, err := Open(path)
	if err == nil || len(s.List()) != 0 {
		t.Fatalf("%v, and %d silences", err, len(s.List()))
	}
	if _, err := s.Add(one, now); !errors.Is(err, ErrNotStored) {
		t.Errorf("a silence was added: %v", err)
	}
	if _, err := os.Stat(path + ".bad"); err == nil {
		t.Error("the file was set aside")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if marked := s.Mark([]analysis.Finding{{Workload: "w"}}, now); marked[0].Silence == nil {
		t.Error("the silence covers nothing")
	}
	if _, err := s.Add(one, now); err != nil || len(s.List()) != 2 {
		t.Errorf("%v, and %d silences", err, len(s.List()))
	}
}
