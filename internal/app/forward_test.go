// SPDX-License-Identifier: Apache-2.0

package app

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// TestHistogramsOfTheAgentStayClassicForReceivers: without a database, and for version 1.0, the part of up that stores gets the lines of
// each bucket from the agent.
func TestHistogramsOfTheAgentStayClassicForReceivers(t *testing.T) {
	const family = "teescope_run_queue_latency_seconds"
	for text, want := range map[string]bool{
		"": true,
		"remote-write: {urls: [http://localhost:1/write]}":                                  false,
		"remote-write: {urls: [http://localhost:1/write], protocol: \"2.0\"}":               true,
		"remote-write: {urls: [http://localhost:1/write], protocol: \"2.0\", only: true}":   false,
		"remote-write: {urls: [http://localhost:1/v1/metrics], protocol: otlp, only: true}": false,
	} {
		pack := packs(configuration(t, config.Up, text))
		if got := pack != nil && pack(family); got != want {
			t.Errorf("%q: one line %v", text, got)
		}
	}
}

// TestSendingWithoutADatabase runs the part of up that stores, with a receiver of OTLP in place of the database. The receiver
// gets the samples of this process and of another agent. There is no page and no API for queries, and nothing is stored.
func TestSendingWithoutADatabase(t *testing.T) {
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, "# TYPE sgx_epc_size_bytes gauge\nsgx_epc_size_bytes{node=\"other\"} 1\n")
	}))
	defer agent.Close()
	var mu sync.Mutex
	var got strings.Builder
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, err := gzip.NewReader(req.Body)
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if _, err := io.Copy(&got, body); err != nil {
			t.Error(err)
		}
	}))
	defer receiver.Close()
	dir := t.TempDir()
	c := configuration(t, config.Up, fmt.Sprintf("data-dir: %s\ninterval: 200ms\ntargets: [%q]\nremote-write:\n  urls: [%s/v1/metrics]\n  protocol: otlp\n  only: true\n",
		dir, strings.TrimPrefix(agent.URL, "http://"), receiver.URL))
	base, stop := running(t, func(ctx context.Context, o Options) error {
		p := newProgram(o)
		if err := p.stores()(); err != nil {
			return err
		}
		return p.run(ctx)
	}, c)
	missing := func() (all []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, text := range []string{"teescope_build_info", "1.2.3", "sgx_epc_size_bytes", "service.instance.id", strings.TrimPrefix(agent.URL, "http://")} {
			if !strings.Contains(got.String(), text) {
				all = append(all, text)
			}
		}
		return all
	}
	defer func() {
		if t.Failed() {
			t.Logf("missing: %q", missing())
		}
	}()
	waittest.Until(t, "all metrics in the receiver", func() bool { return len(missing()) == 0 })
	if metrics := get(t, base+"/metrics"); !strings.Contains(metrics, "teescope_forward_sent_samples_total{") {
		t.Error("the metrics do not say how many samples were sent")
	}
	for _, path := range []string{"/api/v1/query?query=up", "/api/fleet", "/api/findings"} {
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // the status is enough
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %s", path, resp.Status)
		}
	}
	if page := get(t, base+"/"); !strings.HasPrefix(page, "teescope without a page.") {
		t.Errorf("/ is %q", page)
	}
	if err := stop(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "tsdb", "*")); err != nil || len(files) != 1 || filepath.Base(files[0]) != "lock" {
		t.Errorf("there is a database: %q, %v", files, err)
	}
}
