// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestFamilies(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("GET /docs/metrics/{name}", Families("# Metrics\n\nAll.\n\n## a_total\n\nCalls.\n\n- unit: calls\n\n## b:c\n\nOne ## of them.\n"))
	for path, want := range map[string]string{
		"/docs/metrics/a_total": "# a_total\n\nCalls.\n\n- unit: calls\n",
		"/docs/metrics/b:c":     "# b:c\n\nOne ## of them.\n",
		"/docs/metrics/a":       "", "/docs/metrics/": "", "/docs/metrics/Metrics": "",
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if found := w.Code == http.StatusOK; found != (want != "") || found && w.Body.String() != want {
			t.Errorf("GET %s = %d %q, want %q", path, w.Code, w.Body, want)
		}
	}
}
