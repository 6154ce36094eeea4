// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/history"
	"github.com/teescope/teescope/internal/server/findings"
)

// The history of a server is requested with all filters, and its errors are shown.
func TestHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	s, err := history.Open(file, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now().Add(-time.Hour)
	var open []analysis.Finding
	for _, workload := range []string{"redis-server", "a b&c=d"} {
		open = append(open, analysis.Finding{
			ID: analysis.ID("chatter", workload, "a:1"), Rule: "chatter", Title: "too many calls", Workload: workload, Instance: "a:1",
			Severity: analysis.High, Confidence: analysis.Likely, FirstSeen: began,
		})
	}
	if err := s.Sync(began, open, nil); err != nil {
		t.Fatal(err)
	}
	a := findings.New(findings.Options{HistoryFile: file, Log: slog.New(slog.DiscardHandler)})
	if err := a.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(a)
	t.Cleanup(web.Close)
	for _, tt := range []struct {
		q    history.Question
		want int
		err  string
	}{
		{history.Question{}, 2, ""},
		{history.Question{Workload: "a b&c=d", Rule: "chatter", Instance: "a:1"}, 1, ""},
		{history.Question{From: began.Add(-time.Hour), To: began.Add(-time.Minute)}, 0, ""},
		{history.Question{From: began, To: began.Add(time.Minute), Limit: 1}, 1, ""},
		{history.Question{Rule: "chater"}, 0, `there is no rule "chater"`},
	} {
		past, err := History{Server: web.URL, Question: tt.q}.Ask(t.Context())
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%+v: %v, want %s", tt.q, err, tt.err)
			}
			continue
		}
		if err != nil || len(past.Findings) != tt.want {
			t.Errorf("%+v: %d findings, %v", tt.q, len(past.Findings), err)
		}
	}
	past, err := History{Server: web.URL}.Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	// The ledger of this server is empty, so it is not known when they ended.
	if err := past.Write(&out, "text", false); err != nil || !strings.Contains(out.String(), "redis-server on a:1: too many calls") || !strings.Contains(out.String(), "is not known") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// A server that is none, or of another version, is named.
func TestHistoryOfOtherServers(t *testing.T) {
	for want, answer := range map[string]string{
		"is not in teescope's format":                "hello",
		"has the format 7, and this program reads 1": `{"schema":7}`,
		"keeps no findings":                          "",
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if answer == "" {
				w.WriteHeader(http.StatusNotFound)
			}
			fmt.Fprint(w, answer)
		}))
		_, err := History{Server: web.URL}.Ask(t.Context())
		web.Close()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
