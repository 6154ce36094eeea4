// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDashboardsAreKept keeps a dashboard through the sandboxed server of up, which another start then serves and the command
// exports. A request of another site is refused.
func TestDashboardsAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u := start(t, "up", "--data-dir", dir)
	body := `{"title":"Redis: calls","panels":[{"title":"Calls","expr":"sum(rate(redis_commands_processed_total[1m]))","show":"chart"}]}`
	post := func(origin string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, "http://"+u.addr+"/api/dashboards/own", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(answer)
	}
	if status, said := post("http://evil.example"); status != http.StatusForbidden {
		t.Errorf("another site: %d %s", status, said)
	}
	if status, said := post(""); status != http.StatusOK || !strings.Contains(said, `"id":"redis-calls"`) {
		t.Fatalf("%d %s", status, said)
	}
	u.stop(t)
	again := start(t, "up", "--data-dir", dir)
	out := filepath.Join(t.TempDir(), "grafana")
	want := filepath.Join(out, "teescope-own-redis-calls.json")
	if got := strings.TrimSpace(run(t, binary, "dashboards", "kept", out, "--server", again.addr)); got != want {
		t.Fatalf("it has written %q, want %q", got, want)
	}
	data, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	var read struct{ Title string }
	if err := json.Unmarshal(data, &read); err != nil || read.Title != "teescope: Redis: calls" || !strings.Contains(string(data), "redis_commands_processed_total") {
		t.Errorf("%v: %s", err, data)
	}
}
