// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
)

// large is a regular expression of a million instructions.
var large = strings.Repeat("((abcdefghij){100}){10}", 100)

func readRequest(t *testing.T, queries int, m *prompb.LabelMatcher) *http.Request {
	t.Helper()
	var request prompb.ReadRequest
	for range queries {
		request.Queries = append(request.Queries, &prompb.Query{EndTimestampMs: time.Now().UnixMilli(), Matchers: []*prompb.LabelMatcher{m}})
	}
	data, err := request.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return httptest.NewRequest(http.MethodPost, "/api/v1/read", bytes.NewReader(snappy.Encode(nil, data)))
}

func TestRequestsThatCannotBeParsedCheaply(t *testing.T) {
	var log logs
	s, _ := start(t, options(t.TempDir(), &log))
	get := func(path string, v url.Values) *http.Request {
		return httptest.NewRequest(http.MethodGet, path+"?"+v.Encode(), nil)
	}
	many := url.Values{}
	for range maxSelectors + 1 {
		many.Add("match[]", "up")
	}
	name := &prompb.LabelMatcher{Type: prompb.LabelMatcher_EQ, Name: "__name__", Value: "up"}
	for what, c := range map[string]struct {
		request *http.Request
		status  int
		want    string
	}{
		"selectors":            {get("/api/v1/series", many), 400, "may have 100"},
		"long selectors":       {get("/api/v1/labels", url.Values{"match[]": {"up" + strings.Repeat(" ", 9000), "up" + strings.Repeat(" ", 9000)}}), 400, "send several requests"},
		"a regular expression": {get("/api/v1/series", url.Values{"match[]": {`{a=~"` + large + `"}`}}), 400, "smaller repetitions"},
		"a reading":            {readRequest(t, 1, name), 200, ""},
		"a large reading":      {readRequest(t, 1, &prompb.LabelMatcher{Type: prompb.LabelMatcher_RE, Name: "a", Value: large}), 400, "smaller repetitions"},
		"many readings":        {readRequest(t, maxSelectors+1, name), 400, "send several requests"},
		"long readings":        {readRequest(t, 2, &prompb.LabelMatcher{Name: "a", Value: strings.Repeat("x", 9000)}), 400, "send several requests"},
		"no reading":           {httptest.NewRequest(http.MethodPost, "/api/v1/read", strings.NewReader("x")), 400, "decoding the request"},
	} {
		if a := ask(t, s.Handler(), c.request); a.status != c.status || !strings.Contains(a.body.Error, c.want) {
			t.Errorf("%s: %d %+v, want %d %q", what, a.status, a.body, c.status, c.want)
		}
	}
}

// The database answers within budgets. With a small one, each kind of list and a query are refused with advice.
func TestListsAreBounded(t *testing.T) {
	var log logs
	s, _ := start(t, options(t.TempDir(), &log))
	eventually(t, 5*time.Second, "a series", func() bool {
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
	l.live = func() uint64 { return 91 << 20 }
	ctx, done := l.watch(t.Context())
	defer done()
	<-ctx.Done()
	var memory *memoryError
	if err := context.Cause(ctx); !errors.As(err, &memory) || !strings.Contains(fmt.Sprint(err), "91 of 100 MiB are in use; the query was ended") {
		t.Errorf("%v", err)
	}
	l.live = func() uint64 { return 89 << 20 }
	if l.limit = 0; l.queryBytes() != maxQueryBytes {
		t.Error("without a limit the budget of a query is not the constant one")
	}
}
