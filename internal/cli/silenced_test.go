// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/silence"
	"github.com/teescope/teescope/internal/server/findings"
)

// looked is when the findings of these tests were seen.
var looked = time.Date(2099, 1, 1, 12, 0, 0, 0, time.UTC)

func someFindings() []analysis.Finding {
	var all []analysis.Finding
	for _, workload := range []string{"cache", "db", "web"} {
		all = append(all, analysis.Finding{
			ID: analysis.ID("polling-loop", workload, ""), Rule: "polling-loop", Workload: workload, Severity: analysis.High, FirstSeen: looked, LastSeen: looked,
		})
	}
	return all
}

// kindsOf returns the kinds of silences by workload, and fails if the findings are not the given ones.
func kindsOf(t *testing.T, a Analysis, wantWarning string) string {
	t.Helper()
	marked, warning, err := a.mark(t.Context(), someFindings())
	if err != nil || !strings.Contains(warning, wantWarning) || wantWarning == "" && warning != "" {
		t.Fatalf("warning %q, want %q; %v", warning, wantWarning, err)
	}
	var kinds []string
	for _, f := range marked {
		kind := "-"
		if f.Silence != nil {
			kind = string(f.Silence.Kind)
		}
		kinds = append(kinds, f.Workload+" "+kind)
	}
	return strings.Join(kinds, ", ")
}

// The silences of a server, the copy of its file and the copy of its answer mark the same findings.
func TestFindingsOfAnAnalysisAreMarked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "silences.json")
	a := findings.New(findings.Options{SilenceFile: file, Log: slog.New(slog.DiscardHandler)})
	if err := a.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(a)
	t.Cleanup(web.Close)
	s := Silences{Server: web.URL}
	var out bytes.Buffer
	for workload, kind := range map[string]analysis.SilenceKind{"cache": analysis.Mute, "db": analysis.Intended, "web": analysis.Mute} {
		m, err := silence.ParseMatcher("workload=" + workload)
		if err != nil {
			t.Fatal(err)
		}
		end := looked.Add(time.Hour)
		if workload == "web" {
			end = looked.Add(-time.Hour) // it is over when the findings are seen
		}
		if err := s.Add(t.Context(), &out, silence.Silence{Kind: kind, Matchers: []silence.Matcher{m}, EndsAt: end, Comment: "a test"}, false); err != nil {
			t.Fatal(err)
		}
	}
	list := filepath.Join(t.TempDir(), "list.json")
	out.Reset()
	if err := s.List(t.Context(), &out, true, true); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "cache mute, db works-as-intended, web -"
	for name, from := range map[string]Analysis{"server": {Server: web.URL}, "file": {File: "x.om", Silences: file}, "list": {File: "x.om", Silences: list}} {
		if got := kindsOf(t, from, ""); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := kindsOf(t, Analysis{File: "x.om"}, ""); got != "cache -, db -, web -" {
		t.Errorf("a file without silences: %s", got)
	}
}

// An acknowledgement covers a finding that the server has seen before it, although the analysis sees it now.
func TestAcknowledgementsCoverWhatBeganBefore(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/findings/silences", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `[{"id":"a","kind":"acknowledged","comment":"ticket 17","startsAt":"2099-01-01T11:00:00Z","matchers":[{"name":"rule","value":"polling-loop"}]}]`)
	})
	mux.HandleFunc("GET /api/findings", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("muted") != "true" {
			t.Error("it does not ask for all findings")
		}
		fmt.Fprintf(w, `{"findings":[{"id":%q,"first_seen":"2099-01-01T10:00:00Z"},{"id":%q,"first_seen":"2099-01-01T11:30:00Z"}]}`,
			analysis.ID("polling-loop", "db", ""), analysis.ID("polling-loop", "web", ""))
	})
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	if got, want := kindsOf(t, Analysis{Server: web.URL}, ""), "cache -, db acknowledged, web -"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A server without findings has no silences. One that does not give them away is named in a warning.
func TestServersWithoutSilences(t *testing.T) {
	status, body := http.StatusNotFound, ""
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(web.Close)
	for _, one := range []struct {
		status  int
		body    string
		warning string
	}{
		{http.StatusNotFound, "404 page not found", ""},
		{http.StatusBadRequest, "unsupported path requested", ""},
		{http.StatusOK, "<!doctype html>", ""},
		{http.StatusOK, `[{"id":"a","kind":"nap"}]`, "the silences cannot be read"},
		{http.StatusTooManyRequests, "", "the silences cannot be read"},
		{http.StatusRequestTimeout, "", "the silences cannot be read"},
		{http.StatusForbidden, "", "the silences cannot be read"},
		{http.StatusInternalServerError, "", "the silences cannot be read"},
	} {
		status, body = one.status, one.body
		if got := kindsOf(t, Analysis{Server: web.URL}, one.warning); got != "cache -, db -, web -" {
			t.Errorf("%d %s: %s", one.status, one.body, got)
		}
	}
	if _, _, err := (Analysis{Silences: filepath.Join(t.TempDir(), "none")}).mark(t.Context(), someFindings()); err == nil {
		t.Error("a missing file is not an error")
	}
}

// A finding that a silence hides is counted, and listed on request with its silence.
func TestMutedFindingsAreCounted(t *testing.T) {
	var om strings.Builder
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Unix()
	om.WriteString("# TYPE teescope_processes gauge\n")
	for i := range int64(61) {
		fmt.Fprintf(&om, "teescope_processes{workload=\"db\",instance=\"a:1\"} 1 %d\n", start+5*i)
	}
	om.WriteString("# TYPE teescope_oom_kills counter\n")
	for i := range int64(61) {
		fmt.Fprintf(&om, "teescope_oom_kills_total{workload=\"db\",instance=\"a:1\"} %d %d\n", i/20, start+5*i)
	}
	om.WriteString("# EOF\n")
	dir := t.TempDir()
	file, silences := filepath.Join(dir, "x.om"), filepath.Join(dir, "silences.json")
	list := `[{"id":"a","kind":"works-as-intended","comment":"a test","startsAt":"2026-01-01T00:00:00Z","matchers":[{"name":"rule","value":"resource-limits"}]}]`
	for name, content := range map[string]string{file: om.String(), silences: list} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range []struct {
		about         string
		analysis      Analysis
		listed, muted int
	}{
		{"without silences", Analysis{File: file}, 1, 0},
		{"muted", Analysis{File: file, Silences: silences}, 0, 1},
		{"on request", Analysis{File: file, Silences: silences, Muted: true}, 1, 1},
	} {
		one.analysis.Window, one.analysis.Timeout = 5*time.Minute, time.Minute
		result, report, err := Analyze(t.Context(), one.analysis)
		if err != nil {
			t.Fatal(err)
		}
		r := report(0)
		if len(result.Findings) != 1 || len(r.Findings) != one.listed || r.Muted != one.muted {
			t.Errorf("%s: %d findings, %d listed, %d muted; want 1, %d, %d", one.about, len(result.Findings), len(r.Findings), r.Muted, one.listed, one.muted)
		}
		var out bytes.Buffer
		if err := r.Text(&out, false); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Contains(out.String(), "Silenced: works-as-intended: a test"), one.listed == 1 && one.muted == 1; got != want {
			t.Errorf("%s: the text names the silence: %t, want %t\n%s", one.about, got, want, out.String())
		}
	}
}
