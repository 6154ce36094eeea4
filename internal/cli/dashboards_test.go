// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/teescope/teescope/docs/user"
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
