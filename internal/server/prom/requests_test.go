// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// large is a regular expression of a million instructions.
var large = strings.Repeat("((abcdefghij){100}){10}", 100)

func TestRequestsThatCannotBeParsedCheaply(t *testing.T) {
	var log logtest.Log
	s, _ := start(t, options(t.TempDir(), &log))
	get := func(path string, v url.Values) *http.Request {
		return httptest.NewRequest(http.MethodGet, path+"?"+v.Encode(), nil)
	}
	many := url.Values{}
	for range maxSelectors + 1 {
		many.Add("match[]", "up")
	}
	for what, c := range map[string]struct {
		request *http.Request
		status  int
		want    string
	}{
		"selectors":            {get("/api/v1/series", many), 400, "the maximum is 100"},
		"long selectors":       {get("/api/v1/labels", url.Values{"match[]": {"up" + strings.Repeat(" ", 9000), "up" + strings.Repeat(" ", 9000)}}), 400, "send several requests"},
		"a regular expression": {get("/api/v1/series", url.Values{"match[]": {`{a=~"` + large + `"}`}}), 400, "smaller repetitions"},
		"remote read":          {httptest.NewRequest(http.MethodPost, "/api/v1/read", strings.NewReader("x")), 501, "use /api/v1/query_range"},
	} {
		if a := ask(t, s.Handler(), c.request); a.status != c.status || !strings.Contains(a.body.Error, c.want) {
			t.Errorf("%s: %d %+v, want %d %q", what, a.status, a.body, c.status, c.want)
		}
	}
}

// Formatting takes time with a power of the nesting, and cannot be cancelled. Evaluation is refused for the same texts.
func TestDeepQueriesAreRefused(t *testing.T) {
	var log logtest.Log
	s, _ := start(t, options(t.TempDir(), &log))
	for query, want := range map[string]string{
		strings.Repeat("(", 8000) + "1" + strings.Repeat(")", 8000):                       "deep; the maximum is 100",
		strings.Repeat("sum(", 101) + "up" + strings.Repeat(")", 101):                     "deep; the maximum is 100",
		strings.Repeat("2^", 8000) + "2":                                                  "the maximum is 1000",
		strings.Repeat("-", 8000) + "up":                                                  "the maximum is 100:",
		strings.Repeat("a or ", 3000) + "b":                                               "the maximum is 1000",
		"sum(up) + 1":                                                                     "",
		strings.Repeat("abs(", 50) + "up" + strings.Repeat(")", 50):                       "",
		"'" + strings.Repeat("(", 200) + "' # " + strings.Repeat("[", 200):                "",
		"`" + strings.Repeat("{", 200) + "` == bool \"" + strings.Repeat("(", 200) + "\"": "parse error",
	} {
		for _, path := range []string{"query", "query_range", "format_query", "parse_query"} {
			v := url.Values{"query": {query}, "start": {"1"}, "end": {"2"}, "step": {"1"}}
			a := ask(t, s.Handler(), httptest.NewRequest(http.MethodGet, "/api/v1/"+path+"?"+v.Encode(), nil))
			switch {
			case path == "query_range" && query[0] == '\'': // a string has no range
			case want == "" && a.status != http.StatusOK:
				t.Errorf("%s of %.40s: %d %+v", path, query, a.status, a.body)
			case want != "" && (a.status != http.StatusBadRequest || a.body.ErrorType != "bad_data" || !strings.Contains(a.body.Error, want)):
				t.Errorf("%s of %.40s: %d %+v, want %q", path, query, a.status, a.body, want)
			}
		}
	}
	long := url.Values{"query": {strings.Repeat("sum(", 90) + strings.Repeat("a", 15_000) + strings.Repeat(")", 90)}}
	if a := ask(t, s.Handler(), httptest.NewRequest(http.MethodGet, "/api/v1/format_query?"+long.Encode(), nil)); a.status != http.StatusBadRequest ||
		!strings.Contains(a.body.Error, "too long to format") {
		t.Errorf("a long and deep query: %d %+v", a.status, a.body)
	}
	chain := url.Values{"query": {strings.Repeat("metric{a='b'}+", 900) + "1"}}
	if a := ask(t, s.Handler(), httptest.NewRequest(http.MethodGet, "/api/v1/parse_query?"+chain.Encode(), nil)); a.status != http.StatusBadRequest ||
		!strings.Contains(a.body.Error, "too much memory to describe") {
		t.Errorf("the tree of a long chain: %d %+v", a.status, a.body)
	}
}

// The database answers within limits of memory. With a small one, each kind of list and a query are refused with advice.
func TestListsAreBounded(t *testing.T) {
	var log logtest.Log
	s, _ := start(t, options(t.TempDir(), &log))
	waittest.Until(t, "a series", func() bool {
		_, times, _ := samples(t, s, "scrapes_total[1m]")
		return len(times) > 0
	})
	b := &boundedStorage{s.db, 10}
	q, err := b.Querier(0, time.Now().UnixMilli()+60_000)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if _, _, err := q.LabelNames(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "narrower matchers") {
		t.Errorf("LabelNames() = %v", err)
	}
	if _, _, err := q.LabelValues(t.Context(), "__name__", nil); err == nil {
		t.Errorf("LabelValues() = %v", err)
	}
	e := *s.engine
	e.bytes = 10
	for _, query := range []string{"scrapes_total", "vector(1)"} {
		p, err := e.NewInstantQuery(t.Context(), s.db, nil, query, time.Now())
		if err == nil {
			err = p.Exec(t.Context()).Err
			p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "select fewer series") {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// Running queries end when the memory limit is reached, with the reason.
func TestQueriesEndAtTheMemoryLimit(t *testing.T) {
	l := newMemoryLimiter(100<<20, 1)
	l.taken = func() uint64 { return 94 << 20 }
	ctx, done := l.watch(t.Context())
	defer done()
	<-ctx.Done()
	var memory *memoryError
	if err := context.Cause(ctx); !errors.As(err, &memory) || !strings.Contains(fmt.Sprint(err), "94 of 100 MiB are in use; the query was ended") {
		t.Errorf("%v", err)
	}
	if l.limit = 0; l.queryBytes() != maxQueryBytes {
		t.Error("without a limit the limit of a query is not the constant one")
	}
}
