// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/proctest"
	"github.com/teescope/teescope/internal/lib/text"
)

// written returns a file with three findings, of which the second has ended.
func written(t *testing.T) string {
	t.Helper()
	s := newServer(t)
	for s.at.Before(minutes(20)) {
		s.minute("a/w", "b/w", "c/w")
	}
	for s.at.Before(minutes(40)) {
		s.minute("a/w", "c/w")
	}
	data, err := os.ReadFile(s.name())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestDamagedFiles(t *testing.T) {
	good := written(t) // a header, three beginnings and an end
	lines := strings.SplitAfter(good, "\n")
	if len(lines) != 6 {
		t.Fatalf("%d lines:\n%s", len(lines)-1, good)
	}
	version, err := wrap(header{Version: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, text string
		rules      string // that are left
		bad        bool   // the file is kept as .bad
		said       string // in the error or the log
	}{
		{"whole", good, "a b c", false, ""},
		{"a kill within the last line", good[:len(good)-7], "a b c", false, ""},
		{"a kill within the header", lines[0][:5], "", false, ""},
		{"a wrong byte", strings.Replace(good, `"rule":"b"`, `"rule":"x"`, 1), "a b c", true, ":3: the checksum is wrong"},
		{"wrong bytes in both lines", strings.ReplaceAll(good, `"rule":"b"`, `"rule":"x"`), "a c", true, ":3: the checksum is wrong"},
		{"an empty line", good + "\n", "a b c", true, ":6: it does not begin with a checksum"},
		{"a long line", good + strings.Repeat("0", maxLine+1) + "\n", "a b c", true, ":6: it has 16385 bytes; the maximum is 16384"},
		{"no header", good[len(lines[0]):], "", true, ":1: its version is 0 instead of 1"},
		{"a newer version", string(version) + lines[1], "", true, ":1: its version is 2 instead of 1"},
		{"nothing", "", "", false, ""},
		{"zeros", strings.Repeat("\x00", 5000) + "\n", "", true, ":1: it does not begin with a checksum"},
	} {
		path := filepath.Join(t.TempDir(), "history")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		s, err := Open(path, slog.New(slog.NewTextHandler(&log, nil)))
		said := log.String()
		if err != nil {
			said += err.Error()
		}
		var rules []string
		for _, e := range s.Select(func(Entry) bool { return true }) {
			rules = append(rules, e.Rule)
		}
		if got := strings.Join(rules, " "); got != tt.rules {
			t.Errorf("%s: read %q, want %q", tt.name, got, tt.rules)
		}
		if tt.said == "" && said != "" || !strings.Contains(said, tt.said) || tt.said != "" && !strings.Contains(said, path) {
			t.Errorf("%s: said %s, want %q", tt.name, said, tt.said)
		}
		if kept, err := os.ReadFile(path + ".bad"); tt.bad != (err == nil) || tt.bad && string(kept) != tt.text {
			t.Errorf("%s: kept %.40q, %v", tt.name, kept, err)
		}
		// It continues, and the next start says nothing.
		if err := s.Sync(noon, []analysis.Finding{finding("d", "w", noon)}, nil); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		log.Reset()
		again, err := Open(path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil || log.Len() > 0 || len(again.entries) != len(rules)+1 {
			t.Errorf("%s: the next start reads %d entries: %v %s", tt.name, len(again.entries), err, log.String())
		}
	}
}

// A file that is too large, a link or a directory is not read.
func TestFilesThatAreNotRead(t *testing.T) {
	dir := t.TempDir()
	for name, prepare := range map[string]func(path string) error{
		"it is larger than 33 MiB": func(path string) error {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(path, maxFile+1)
		},
		"too many levels": func(path string) error { return os.Symlink("/dev/null", path) },
		"is a directory":  func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := prepare(path); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path, slog.Default())
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want %q", err, name)
		}
		if err := s.Sync(noon, []analysis.Finding{finding("a", "w", noon)}, nil); err != nil {
			t.Errorf("%s: it does not go on: %v", name, err)
		}
	}
}

// A history without a place to write continues in memory, and is written when there is one.
func TestNoPlaceToWrite(t *testing.T) {
	s := newServer(t)
	if err := os.Mkdir(s.name()+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(noon, []analysis.Finding{finding("a", "w", noon)}, nil); err == nil || !strings.Contains(err.Error(), "writing the history") {
		t.Errorf("error %v", err)
	}
	if len(s.all()) != 1 {
		t.Error("it is not in memory")
	}
	if err := os.Remove(s.name() + ".new"); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(noon, []analysis.Finding{finding("a", "w", noon)}, nil); err != nil {
		t.Error(err)
	}
	again, err := Open(s.name(), slog.Default())
	if err != nil || len(again.entries) != 1 {
		t.Errorf("written %d entries, %v", len(again.entries), err)
	}
}

// Something else that changes the file does not make appended lines unreadable.
func TestTheFileChangesMeanwhile(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"removed":   os.Remove,
		"shortened": func(path string) error { return os.Truncate(path, 100) },
		"emptied":   func(path string) error { return os.Truncate(path, 0) },
	} {
		s := newServer(t)
		for _, rule := range []string{"a", "b"} {
			if err := s.Sync(noon, []analysis.Finding{finding(rule, "w", noon)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := change(s.name()); err != nil {
			t.Fatal(err)
		}
		if err := s.Sync(noon, []analysis.Finding{finding("c", "w", noon)}, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		again, err := Open(s.name(), slog.New(slog.NewTextHandler(&s.log, nil)))
		if err != nil || len(again.entries) != 3 || s.log.Len() > 0 {
			t.Errorf("%s: %d entries, %v, %s", name, len(again.entries), err, s.log.String())
		}
	}
}

// TestMain is also the process that [TestAKilledHistoryIsReadable] kills.
func TestMain(m *testing.M) {
	if path := os.Getenv("TEESCOPE_TEST_HISTORY"); path != "" {
		s, err := Open(path, slog.Default())
		for i := len(s.entries); err == nil; i++ {
			err = s.Sync(noon, []analysis.Finding{finding(fmt.Sprint("rule", i), "w", noon)}, nil)
			fmt.Println("wrote", i)
		}
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// What was reported as written is there after kill -9, and nothing is damaged.
func TestAKilledHistoryIsReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	total := 0
	for range 4 {
		total += strings.Count(proctest.KillAfter(t, "TEESCOPE_TEST_HISTORY="+path, 50), "\n")
		var log bytes.Buffer
		s, err := Open(path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil || log.Len() > 0 || len(s.entries) < total {
			t.Fatalf("%d entries of at least %d: %v, %s", len(s.entries), total, err, log.String())
		}
		total = len(s.entries)
		for i, e := range s.entries {
			if want := fmt.Sprint("rule", i); e.Rule != want || e.Open() != (i == total-1) {
				t.Fatalf("entry %d: %+v", i, e)
			}
		}
	}
}

// FuzzHistory: what can be read of any file can be written and read again, stays within its bounds and is printable.
func FuzzHistory(f *testing.F) {
	for _, lines := range []string{
		`{"version":1}`,
		"{\"version\":1,\"entries\":3}\n" + `{"number":1,"id":"i","rule":"r","severity":"high","began":"2026-01-01T00:00:00Z","evidence":[{"name":"a\u001b","value":1}]}`,
		"{\"version\":1}\n" + `{"number":1,"id":"i","rule":"r","severity":"low","began":"2026-01-01T00:00:00Z"}` + "\n" +
			`{"number":2,"id":"i","rule":"r","severity":"info","began":"2026-01-01T00:00:00Z","outcome":{"after":[{"kind":"restart","what":"x"}],"cores":{"low":1}}}`,
	} {
		f.Add([]byte(lines), true)
	}
	f.Add([]byte("00000000 {}\n"), false)
	f.Fuzz(func(t *testing.T, data []byte, sum bool) {
		if sum { // otherwise hardly any input would pass the checksum
			var whole []byte
			for part := range bytes.SplitSeq(data, []byte("\n")) {
				l, err := wrap(raw(part))
				if err != nil {
					return
				}
				whole = append(whole, l...)
			}
			data = whole
		}
		c, d, err := parse("the-file", data)
		for _, said := range append(d.first, fmt.Sprint(err)) {
			if len(d.first) > maxProblems || err == nil && said != "<nil>" && !strings.HasPrefix(said, "the-file:") || !text.IsLabel(said) {
				t.Fatalf("said %q", said)
			}
		}
		if err != nil {
			return
		}
		s := &Store{path: filepath.Join(t.TempDir(), "h"), log: slog.New(slog.DiscardHandler), content: c, open: map[string]int{}}
		s.index()
		if len(s.open) > len(c.entries) {
			t.Fatal("more open entries than entries")
		}
		if err := s.write(); err != nil {
			t.Fatal(err)
		}
		again, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsFunc(again, func(r rune) bool { return r < ' ' && r != '\n' }) {
			t.Fatalf("a control character is written: %q", again)
		}
		second, d, err := parse("again", again)
		if err != nil || d.lines > 0 || d.torn || len(second.entries) != len(c.entries) || second.next < c.next && len(c.entries) > 0 {
			t.Fatalf("%v %+v: %d of %d entries", err, d, len(second.entries), len(c.entries))
		}
		s.Ask(Question{To: noon}, noon)
	})
}

// raw is JSON text as it is.
type raw []byte

// MarshalJSON implements json.Marshaler.
func (r raw) MarshalJSON() ([]byte, error) { return r, nil }
