// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDashboardsAreKept keeps a dashboard and two runs through the sandboxed server of up, which another start then serves and
// the commands export. A request of another site is refused.
func TestDashboardsAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u := start(t, "up", "--data-dir", dir)
	body := `{"title":"Redis: calls","panels":[{"title":"Calls","expr":"sum(rate(redis_commands_processed_total[1m]))","show":"chart"}]}`
	post := func(origin string) (int, string) {
		t.Helper()
		header := map[string]string{}
		if origin != "" {
			header["Origin"] = origin
		}
		return u.request(t, http.MethodPost, "/api/dashboards/own", body, header)
	}
	if status, said := post("http://evil.example"); status != http.StatusForbidden {
		t.Errorf("another site: %d %s", status, said)
	}
	if status, said := post(""); status != http.StatusOK || !strings.Contains(said, `"id":"redis-calls"`) {
		t.Fatalf("%d %s", status, said)
	}
	bench, pushed := twoRuns(t, u.addr)
	u.stop(t)
	again := start(t, "up", "--data-dir", dir)
	compareRuns(t, again.addr, bench, pushed)
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

// twoRuns makes two run files of benchmark results, the second 10 times as fast, and pushes them. It returns the first file, and
// the IDs in this order.
func twoRuns(t *testing.T, server string) (file string, ids []string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"fast", "slow"} {
		var lines strings.Builder
		for i := range 10 {
			fmt.Fprintf(&lines, "BenchmarkGet-2 1000 %d ns/op\n", map[string]int{"slow": 9000, "fast": 900}[name]+i)
		}
		text := filepath.Join(dir, name+".txt")
		if err := os.WriteFile(text, []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, binary, "run", "import", "--label", "who="+name, text)
		file = filepath.Join(dir, name+".tsrun")
		id, _, found := strings.Cut(run(t, binary, "run", "push", "--server", server, file), "  "+name+".tsrun, ")
		if !found {
			t.Fatalf("pushing has said %q", id)
		}
		ids = append([]string{id}, ids...)
	}
	return file, ids
}

// compareRuns compares the pushed runs on the server, which knows of no file, and fetches and deletes the first.
func compareRuns(t *testing.T, server, file string, ids []string) {
	t.Helper()
	list := run(t, binary, "run", "list", "--server", server)
	if fast, slow := strings.Index(list, ids[1]+"  fast.tsrun"), strings.Index(list, ids[0]+"  slow.tsrun"); slow < 0 || fast < slow || !strings.Contains(list, "who=slow") {
		t.Errorf("the list is\n%s", list)
	}
	resp, err := http.Get("http://" + server + "/api/runs/comparison?format=html&run=" + ids[0] + "&run=" + ids[1])
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if policy := resp.Header.Get("Content-Security-Policy"); err != nil || !strings.Contains(string(page), "<h3>slow → fast</h3>") || !strings.Contains(string(page), "-90.0%") ||
		!strings.Contains(policy, "frame-ancestors 'self'; sandbox") || strings.Contains(policy, "script-src") {
		t.Errorf("%v, %s: %s", err, policy, page)
	}
	out := t.TempDir()
	fetched := strings.TrimSpace(run(t, binary, "run", "pull", "--server", server, "--dir", out, ids[0]))
	got, err := os.ReadFile(fetched)
	if want, failed := os.ReadFile(file); err != nil || failed != nil || string(got) != string(want) {
		t.Errorf("%s differs from %s: %v %v", fetched, file, err, failed)
	}
	run(t, binary, "run", "delete", "--server", server, ids[0])
	if list := run(t, binary, "run", "list", "--server", server); strings.Contains(list, ids[0]) || !strings.Contains(list, ids[1]) {
		t.Errorf("after the deletion the list is\n%s", list)
	}
}
