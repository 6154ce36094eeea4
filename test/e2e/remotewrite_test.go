// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A server finds an agent in a file and sends what it stores to a real Prometheus and a real VictoriaMetrics. Both then have
// its count, to the last digit, with the labels of the discovery and of the sender.
func TestRemoteWriteToRealDatabases(t *testing.T) {
	t.Parallel()
	const want = 123456789
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintf(w, "# TYPE teescope_syscalls_total counter\nteescope_syscalls_total{workload=\"e2eremote\",syscall=\"read\"} %d\n", want)
	}))
	defer agent.Close()
	const nobody = "127.0.0.1:1"
	prometheus := scraper(t, "prometheus", "/-/ready", func(config, data, addr string) []string {
		return []string{"--config.file", config, "--storage.tsdb.path", data, "--web.listen-address", addr, "--web.enable-remote-write-receiver", "--log.level", "warn"}
	}, nobody)
	victoria := realVictoriaMetrics(t, nobody)
	file := filepath.Join(t.TempDir(), "agents.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `[{"targets": [%q], "labels": {"instance": "node1"}}]`, strings.TrimPrefix(agent.URL, "http://")), 0o644); err != nil {
		t.Fatal(err)
	}
	start(t, "server", "--data-dir", t.TempDir(), "--interval", "1s", "--discovery", "file="+file,
		"--remote-write.urls", prometheus+"/api/v1/write,"+victoria+"/api/v1/write", "--remote-write.labels", "cluster=e2e")
	const expr = `sum(teescope_syscalls_total{workload="e2eremote",instance="node1",job="teescope",cluster="e2e"})`
	for _, base := range []string{prometheus, victoria} {
		eventually(t, testLimit, "the count at "+base, func() error {
			got, err := query(base, expr, time.Now())
			if err == nil && got["{}"] != want {
				err = fmt.Errorf("%v, want %v", got, want)
			}
			return err
		})
	}
}
