// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"
)

func TestRunbooks(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+runbooksPath+"{name}", runbook(fstest.MapFS{"a.md": {Data: []byte("# A\n")}, "b.go": {Data: []byte("x")}}))
	for path, want := range map[string]int{
		"/docs/runbooks/a.md": http.StatusOK, "/docs/runbooks/b.go": http.StatusNotFound, "/docs/runbooks/c.md": http.StatusNotFound,
		"/docs/runbooks/..%2Fa.md": http.StatusNotFound, "/docs/runbooks/": http.StatusNotFound,
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want || want == http.StatusOK && w.Body.String() != "# A\n" {
			t.Errorf("GET %s = %d %q, want %d", path, w.Code, w.Body, want)
		}
	}
}
