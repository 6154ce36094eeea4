// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/docs/user"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/server/dashboards/own"
	"github.com/teescope/teescope/internal/server/httpapi"
)

// TestLinksOfDashboardsResolve follows the links of every panel to the server's documentation of its metrics.
func TestLinksOfDashboardsResolve(t *testing.T) {
	names, err := ExportDashboards(t.TempDir())
	if err != nil || len(names) == 0 {
		t.Fatalf("%d dashboards, %v", len(names), err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /docs/metrics/{name}", httpapi.Families(user.Metrics))
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Panels []struct {
				Type, Title string
				Links       []struct{ Title, URL string }
			}
		}
		if err := json.Unmarshal(data, &d); err != nil {
			t.Fatal(err)
		}
		for _, p := range d.Panels {
			if p.Type != "row" && len(p.Links) == 0 {
				t.Errorf("%s: the panel %q has no link", name, p.Title)
			}
			for _, l := range p.Links {
				path, ours := strings.CutPrefix(l.URL, "${teescope}")
				w := httptest.NewRecorder()
				mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				if !ours || w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), "# "+l.Title+"\n") {
					t.Errorf("%s: the panel %q links to %s: %d %.60q", name, p.Title, l.URL, w.Code, w.Body)
				}
			}
		}
	}
}

// The dashboards that a server keeps are written for Grafana. A server without any, and one that keeps none, say so.
func TestExportKept(t *testing.T) {
	s := own.New("", slog.New(slog.DiscardHandler))
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	body := `{"title":"Redis: calls","panels":[{"title":"Calls","expr":"rate(redis_commands_processed_total[1m])","show":"chart"}]}`
	resp, err := http.Post(web.URL+own.Path, "application/json", strings.NewReader(body))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	dir := filepath.Join(t.TempDir(), "new")
	names, err := ExportKept(t.Context(), dir, web.URL, remote.Access{})
	if want := []string{filepath.Join(dir, "teescope-own-redis-calls.json")}; err != nil || !slices.Equal(names, want) {
		t.Fatalf("%v %v, want %v", names, err, want)
	}
	if data, err := os.ReadFile(names[0]); err != nil || !strings.Contains(string(data), "rate(redis_commands_processed_total[1m])") {
		t.Errorf("%v: %s", err, data)
	}
	agent := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(agent.Close)
	if _, err := ExportKept(t.Context(), dir, agent.URL, remote.Access{}); err == nil || !strings.Contains(err.Error(), "keeps no dashboards") {
		t.Errorf("an agent: %v", err)
	}
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`[{"id":"/../../x","title":"x","panels":[{"title":"a","expr":"up","show":"chart"}]}]`))
	}))
	t.Cleanup(hostile.Close)
	if _, err := ExportKept(t.Context(), dir, hostile.URL, remote.Access{}); err == nil || !strings.Contains(err.Error(), "the ID is not") {
		t.Errorf("a path as ID: %v", err)
	}
}
