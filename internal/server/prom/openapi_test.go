// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

func TestTheDocumentOfTheAPIIsWrittenWhenItIsAskedFor(t *testing.T) {
	api := documented(http.NotFoundHandler(), Options{Log: slog.New(slog.DiscardHandler), Version: Version{Version: "1.2.3"}})
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	allocated := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	const most = 16 << 20
	if n := allocated(func() {
		if w := get("/api/v1/query"); w.Code != http.StatusNotFound {
			t.Errorf("another path is answered with %d", w.Code)
		}
	}); n > most {
		t.Errorf("another path allocates %d bytes", n)
	}
	w := get("/api/v1/openapi.yaml")
	for _, want := range []string{"/query_range:", "/status/tsdb:", "version: 1.2.3"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the document has no %q", want)
		}
	}
	if n := allocated(func() { get("/api/v1/openapi.yaml") }); n > most {
		t.Errorf("the document is written again, which allocates %d bytes", n)
	}
}

func TestTheAPIIsCreatedAtItsFirstRequest(t *testing.T) {
	created := 0
	later := func() *laterAPI {
		return &laterAPI{create: func() http.Handler { created++; return http.NotFoundHandler() }}
	}
	ask := func(api *laterAPI) int {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/query", nil))
		return w.Code
	}
	api := later()
	if created != 0 {
		t.Error("it is created without a request")
	}
	if first, second := ask(api), ask(api); first != http.StatusNotFound || second != http.StatusNotFound || created != 1 {
		t.Errorf("%d and %d, created %d times", first, second, created)
	}
	api.close()
	closed := later()
	closed.close()
	if code := ask(closed); code != http.StatusServiceUnavailable || created != 1 {
		t.Errorf("a request to a closed one has the answer %d, and it was created %d times", code, created)
	}
}
