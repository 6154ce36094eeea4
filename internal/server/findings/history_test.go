// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teescope/teescope/internal/analysis/history"
)

// past asks the API for the history.
func past(t *testing.T, h http.Handler, query string) (a history.Answer) {
	t.Helper()
	status, body := send(h, http.MethodGet, "/api/findings/history"+query, "")
	if err := json.Unmarshal([]byte(body), &a); status != http.StatusOK || err != nil {
		t.Fatalf("%s: %d %s %v", query, status, body, err)
	}
	return a
}

// A cause is there from the start for 20 minutes, while the server is stopped and for 10 minutes more. It is one finding. It
// is muted, and the history says so.
func TestTheHistoryOutlivesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{calls: map[string]float64{"busy": 5000, "quiet": 3}}
		a, _ := analyst(t, s, nil)
		began := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		time.Sleep(20*time.Minute + time.Second)
		add(t, a, silenceFor("mute", "busy", time.Now()))
		time.Sleep(time.Minute)
		if got := past(t, a, "?workload=busy"); len(got.Findings) != 1 || !got.Findings[0].Open() || got.Findings[0].Silence != "mute" {
			t.Errorf("while it is open: %+v", got)
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)

		b := New(a.opts)
		if err := b.Init(t.Context()); err != nil {
			t.Fatal(err)
		}
		start(t, b)
		time.Sleep(10*time.Minute + time.Second)
		s.set(func(s *source) { s.calls["busy"] = 3 })
		ended := time.Now()
		time.Sleep(20 * time.Minute)
		got := past(t, b, "")
		if len(got.Findings) != 1 || len(got.Summaries) != 1 {
			t.Fatalf("%+v", got)
		}
		f, sum := got.Findings[0], got.Summaries[0]
		if f.Rule != "chatter" || f.Workload != "busy" || f.Instance != "a:1" || !f.Began.Equal(began) || f.Ended.Sub(ended).Abs() > time.Minute || f.EndUnknown {
			t.Errorf("found from %s to %s, want %s to %s: %+v", f.Began, f.Ended, began, ended, f)
		}
		if len(f.Evidence) != 1 || f.Evidence[0].Name != "calls" || f.Evidence[0].Value != 5000 || f.Evidence[0].Unit != "1/s" || math.Abs(f.Gain.Low-0.1/0.9) > 1e-9 || math.Abs(f.Gain.High-0.2/0.8) > 1e-9 {
			t.Errorf("figures %+v, gain %+v", f.Evidence, f.Gain)
		}
		if sum.Times != 1 || sum.Open || sum.Total != f.Ended.Sub(f.Began).Seconds() || !sum.LastEnded.Equal(f.Ended) {
			t.Errorf("summary %+v", sum)
		}
	})
}

func TestQuestionsAboutTheHistory(t *testing.T) {
	a, _ := analyst(t, &source{calls: map[string]float64{"busy": 5000, "second": 5000}}, nil)
	for range 2 {
		if err := a.once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for query, n := range map[string]int{
		"": 2, "?rule=chatter": 2, "?workload=busy": 1, "?workload=none": 0, "?instance=a:1": 2, "?instance=b": 0, "?limit=1": 1,
		"?since=1m": 2, "?to=2020-01-01T00:00:00Z": 0, "?from=0": 2, "?changed=true": 0, "?changed=false": 2,
	} {
		if got := past(t, a, query); len(got.Findings) != n {
			t.Errorf("%s: %d findings, want %d", query, len(got.Findings), n)
		}
	}
	if got := past(t, a, "?since=2h"); got.To.Sub(got.From) != 2*time.Hour || got.Schema != history.Schema {
		t.Errorf("%+v", got)
	}
	for query, want := range map[string]string{
		"?from=noon": `from=\"noon\" is not a time`, "?to=2999-01-01T00:00:00Z": "in the future", "?since=soon": "use a duration",
		"?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z": "is after", "?from=0&since=1h": "exclude each other", "?limit=0": "from 1 to 1000",
		"?limit=1001": "from 1 to 1000", "?rule=chater": "did you mean chatter?", "?rul=chatter": "there is no parameter", "?changed=yes": "use true or false",
	} {
		if status, body := send(a, http.MethodGet, "/api/findings/history"+query, ""); status != http.StatusBadRequest || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %s", query, status, body, want)
		}
	}
	if status, _ := send(a, http.MethodPost, "/api/findings/history", "{}"); status != http.StatusMethodNotAllowed {
		t.Errorf("a change: %d", status)
	}
}

// A damaged history does not stop the program, and its answers say so.
func TestADamagedHistory(t *testing.T) {
	a, log := analyst(t, &source{calls: map[string]float64{"busy": 5000}}, nil)
	if err := os.WriteFile(a.opts.HistoryFile, []byte("not a history\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := New(a.opts)
	if err := b.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := past(t, b, "")
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], filepath.Base(a.opts.HistoryFile)+".bad") || log.Count("level=ERROR") != 1 {
		t.Errorf("warnings %q, log\n%s", got.Warnings, log.String())
	}
}
