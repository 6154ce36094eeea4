// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/server/notify"
)

func TestWebhooksFromFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "hook")
	for text, want := range map[string]string{"http://h/secret\n": "", "secret": "not an http or https URL"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := webhooks(config.Alerting{Webhooks: []string{"file:" + name, "http://other"}})
		switch {
		case want == "" && (err != nil || len(all) != 2):
			t.Errorf("webhooks() = %v, %v", all, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")):
			t.Errorf("webhooks() = %v, want %q and not what is in the file", err, want)
		}
	}
}

// A webhook's file that never ends is refused.
func TestWebhookFileIsBounded(t *testing.T) {
	if _, err := webhooks(config.Alerting{Webhooks: []string{"file:/dev/zero"}}); err == nil || !strings.Contains(err.Error(), "/dev/zero: it is a device") {
		t.Errorf("webhooks() = %v", err)
	}
}

// told stores the notices for Alertmanagers.
type told struct {
	mu  sync.Mutex
	all []notify.Notice
}

func (s *told) Send(notices []notify.Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, notices...)
}

// A finding that opens, changes its severity and closes is one alert.
func TestFindingsAreAlerts(t *testing.T) {
	s := &told{}
	hub := notify.New(notify.Options{
		File: filepath.Join(t.TempDir(), "a.json"), Base: func() string { return "http://h" }, Alertmanagers: s,
		Resend: time.Hour, Log: slog.New(slog.DiscardHandler),
	})
	if err := hub.Init(context.Background()); err != nil {
		t.Fatal(err)
	}
	tell := sendFindings(hub)
	f := analysis.Finding{
		ID: "1", Rule: "ocall-bound", Workload: "db&page=tee", Instance: "n", Severity: analysis.Medium, Cause: "it leaves too often",
		Advice: []string{"batch"}, FirstSeen: time.Now(), Runbook: "enclave-exits.md", Gain: &estimate.Gain{Low: 0.1, High: 0.3},
	}
	info := f
	info.ID, info.Severity = "2", analysis.Info
	tell([]analysis.Finding{f, info})
	f.Severity = analysis.High
	tell([]analysis.Finding{f, info})
	tell([]analysis.Finding{info})
	if len(s.all) != 2 {
		t.Fatalf("told %+v, want a beginning and an end", s.all)
	}
	first, last := s.all[0], s.all[1]
	if first.Labels["alertname"] != "ocall-bound" || first.Labels["workload"] != "db&page=tee" || first.GeneratorURL != "http://h/?page=findings&w=db%26page%3Dtee" || first.Labels["severity"] != "medium" ||
		first.Annotations["runbook_url"] != "http://h/docs/runbooks/enclave-exits.md" || first.Annotations["gain"] != "10 to 30 %" {
		t.Errorf("notice = %+v", first)
	}
	if last.Labels["severity"] != "medium" || last.EndsAt.After(time.Now()) {
		t.Errorf("the end = %+v", last)
	}
}
