// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teescope/teescope/docs/runbooks"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/server/notify"
	"github.com/teescope/teescope/internal/server/prom/rulefile"
)

const shippedFiles = "../../rules/*.yaml"

// The shipped rules are free of warnings too: every metric in them exists.
func TestShippedRulesAreGood(t *testing.T) {
	var out bytes.Buffer
	err := CheckRules(&out, []string{shippedFiles})
	if err != nil || strings.Contains(out.String(), "warning") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// Each alert says what it found and what its threshold rests on, and its runbook says what to do about it.
func TestShippedAlertsAreExplained(t *testing.T) {
	files, err := rulefile.Shipped(shippedRules())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		for _, g := range f.Groups.Groups {
			for _, r := range g.Rules {
				if r.Alert == "" {
					continue
				}
				n++
				for _, name := range []string{"summary", "description", "runbook_url", rulefile.SourceAnnotation, rulefile.BasisAnnotation} {
					if r.Annotations[name] == "" {
						t.Errorf("%s has no annotation %s", r.Alert, name)
					}
				}
				if s := r.Labels["severity"]; s != "info" && s != "warning" && s != "critical" {
					t.Errorf("%s has the severity %q", r.Alert, s)
				}
				page, err := fs.ReadFile(runbooks.Files, strings.TrimPrefix(r.Annotations["runbook_url"], "docs/runbooks/"))
				if err != nil || !strings.Contains(string(page), r.Alert) {
					t.Errorf("%s: the runbook %s says nothing of it (%v)", r.Alert, r.Annotations["runbook_url"], err)
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("%d alerts", n)
	}
}

// Every shipped alert fires in a test, and the tests pass here and with the real promtool.
func TestShippedRulesAreTested(t *testing.T) {
	tests, err := filepath.Glob("../../rules/testdata/*_test.yaml")
	if err != nil || len(tests) < 5 {
		t.Fatalf("%v (%v)", tests, err)
	}
	var out bytes.Buffer
	if err := TestRules(t.Context(), &out, tests); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, args := range [][]string{append([]string{"test", "rules"}, tests...), {"check", "rules"}} {
		if args[0] == "check" {
			files, err := filepath.Glob(shippedFiles)
			if err != nil {
				t.Fatal(err)
			}
			args = append(args, files...)
		}
		if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v (tools/setup.sh installs it)\n%s", strings.Join(args, " "), err, out)
		}
	}
	var text strings.Builder
	for _, name := range tests {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
	}
	files, err := rulefile.Shipped(shippedRules())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		for _, g := range f.Groups.Groups {
			for _, r := range g.Rules {
				if r.Alert != "" && !strings.Contains(text.String(), `{alertname="`+r.Alert+`"`) {
					t.Errorf("no test has %s fire", r.Alert)
				}
			}
		}
	}
}

// The tests of the shipped rules can fail: they do when thresholds are other ones.
func TestTestsOfShippedRulesCanFail(t *testing.T) {
	dir := t.TempDir()
	if err := ExportRules(&bytes.Buffer{}, dir, "", false); err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(dir, "sgx.yaml")
	data, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rules, bytes.ReplaceAll(data, []byte("> 1000"), []byte("> 2000")), 0o600); err != nil {
		t.Fatal(err)
	}
	test, err := os.ReadFile("../../rules/testdata/sgx_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "runbooks", "sgx_test.yaml") // ../sgx.yaml is the changed one
	if err := os.WriteFile(name, test, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := TestRules(t.Context(), &out, []string{name}); !errors.Is(err, ErrRules) || !strings.Contains(out.String(), "TeescopeEPCPaging") {
		t.Errorf("TestRules() = %v\n%s", err, out.String())
	}
}

func TestExportRules(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := ExportRules(&out, dir, "http://x/r/", false); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "sgx.yaml"))
	if err != nil || !strings.Contains(string(data), "runbook_url: http://x/r/epc-paging.md") {
		t.Errorf("%v; %s", err, data)
	}
	if _, err := os.Stat(filepath.Join(dir, "runbooks", "epc-paging.md")); err != nil {
		t.Error(err)
	}
	if err := ExportRules(&out, dir, "", false); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("exported over files that are there: %v", err)
	}
	if err := ExportRules(&out, dir, "", true); err != nil {
		t.Error(err)
	}
	if err := CheckRules(&out, []string{dir + "/*.yaml"}); err != nil {
		t.Error(err)
	}
}

func TestShowRules(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(own, []byte("groups:\n  - name: g\n    rules:\n      - {alert: Mine, expr: up == 0}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, shipped := range []bool{true, false} {
		c := &config.Config{Rules: config.Rules{Files: []string{own}, Default: shipped, Interval: 15 * time.Second}}
		for _, asJSON := range []bool{true, false} {
			var out bytes.Buffer
			if err := ShowRules(&out, c, asJSON); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), "Mine") || strings.Contains(out.String(), "TeescopeEPCPaging") != shipped {
				t.Errorf("with the shipped ones %t:\n%s", shipped, out.String())
			}
		}
	}
}

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

// told keeps what Alertmanagers would be sent.
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
	tell := tellFindings(hub)
	f := analysis.Finding{
		ID: "1", Rule: "ocall-bound", Workload: "db&page=tee", Instance: "n", Severity: analysis.Medium, Cause: "it leaves too often",
		Advice: []string{"batch"}, FirstSeen: time.Now(), Runbook: "enclave-exits.md", Gain: &analysis.Gain{Low: 0.1, High: 0.3},
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
