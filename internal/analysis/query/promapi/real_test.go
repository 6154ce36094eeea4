// SPDX-License-Identifier: Apache-2.0

package promapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/proctest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// prometheus starts the installed Prometheus, which scrapes a target.
func prometheus(t *testing.T, target string) string {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed (tools/setup.sh installs it)")
	}
	addr := proctest.FreeAddr(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: [{job_name: t, static_configs: [{targets: [%q]}]}]\n", target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", addr, "--query.max-samples", "5000", "--log.level", "error")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return addr
}

func TestARealPrometheus(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "# TYPE a gauge\na{workload=\"one\"} 1\na{workload=\"two\"} 2\na{workload=\"none\"} NaN\n")
	}))
	t.Cleanup(target.Close)
	s := source(t, prometheus(t, strings.TrimPrefix(target.URL, "http://")), usual)
	var last string
	defer func() {
		if t.Failed() {
			t.Log("the last answer: " + last)
		}
	}()
	waittest.Until(t, "two samples", func() bool {
		got, err := s.Instant(t.Context(), "count_over_time(a[1m]) >= 2", time.Now())
		last = fmt.Sprintf("%+v, %v", got, err)
		return err == nil && len(got) == 3
	})
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	got, err := s.Instant(t.Context(), "sort(a)", time.Now())
	if err != nil || len(got) != 2 || got[0].Value != 1 || got[1].Labels["workload"] != "two" {
		t.Errorf("%+v, %v", got, err)
	}
	now := time.Now()
	series, err := s.Range(t.Context(), "a", now.Add(-5*time.Second), now, time.Second)
	if err != nil || len(series) != 2 || len(series[0].Points) == 0 {
		t.Errorf("%+v, %v", series, err)
	}
	for query, want := range map[string]string{
		"sum(": "rejected a query",
		"count_over_time(vector(1)[6000s:100ms])": "could not run a query",
	} {
		if _, err := s.Instant(t.Context(), query, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
}
