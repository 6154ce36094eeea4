// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/silence"
	"github.com/teescope/teescope/internal/server/findings"
)

// A silence is made, listed and ended at a server.
func TestSilences(t *testing.T) {
	a := findings.New(findings.Options{SilenceFile: filepath.Join(t.TempDir(), "silences.json"), Log: slog.New(slog.DiscardHandler)})
	if err := a.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(a)
	t.Cleanup(web.Close)
	s := Silences{Server: web.URL}
	list := func(all, asJSON bool) string {
		t.Helper()
		var out bytes.Buffer
		if err := s.List(t.Context(), &out, all, asJSON); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := list(false, false); got != "No finding is muted.\n" {
		t.Errorf("at first: %q", got)
	}
	if got := list(false, true); got != "[]\n" {
		t.Errorf("at first, as JSON: %q", got)
	}
	m, err := silence.ParseMatcher("workload=~redis.*")
	if err != nil {
		t.Fatal(err)
	}
	one := silence.Silence{
		Kind: analysis.Mute, Matchers: []silence.Matcher{m}, EndsAt: time.Date(2100, 1, 2, 15, 4, 5, 0, time.UTC), CreatedBy: "ann", Comment: "load test",
	}
	var out bytes.Buffer
	if err := s.Add(t.Context(), &out, one, false); err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(out.String())
	lines := strings.Split(list(false, false), "\n")
	if want := []string{id, "mute", "active", "2100-01-02T15:04:05Z", "ann", "(not", "verified)", "workload=~redis.*", "load", "test"}; strings.Join(strings.Fields(lines[1]), " ") != strings.Join(want, " ") {
		t.Errorf("listed as\n%s, want %s", lines[1], want)
	}
	if err := s.End(t.Context(), []string{id}); err != nil {
		t.Error(err)
	}
	if got := list(false, false); got != "No finding is muted.\n" {
		t.Errorf("after the end: %q", got)
	}
	var ended []struct {
		ID     string
		Status struct{ State string }
	}
	if err := json.Unmarshal([]byte(list(true, true)), &ended); err != nil || len(ended) != 1 || ended[0].ID != id || ended[0].Status.State != "expired" {
		t.Errorf("%+v, %v", ended, err)
	}
	one.Kind = "nap"
	for want, err := range map[string]error{
		"there is no silence with this ID":                        s.End(t.Context(), []string{"none"}),
		"is not the ID of a silence":                              s.End(t.Context(), []string{"a/b"}),
		"use mute, acknowledged or works-as-intended":             s.Add(t.Context(), &out, one, false),
		"keeps no findings: name a \"teescope up\" or \"teescope": Silences{Server: web.URL + "/other"}.List(t.Context(), &out, false, false),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
