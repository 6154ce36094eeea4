// SPDX-License-Identifier: Apache-2.0

package promapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/proctest"
	"github.com/teescope/teescope/internal/lib/remote"
)

const usual = 10 * time.Second

// source queries a server that a test defines.
func source(t *testing.T, target string, within time.Duration) *Source {
	t.Helper()
	return sourceWith(t, target, remote.Access{}, within)
}

func sourceWith(t *testing.T, target string, access remote.Access, within time.Duration) *Source {
	t.Helper()
	server, err := remote.New("--server", target, access, within)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(server)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// answer always sends the same answer.
func answer(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const (
	asJSON = "application/json"
	one    = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]}]}}`
)

func TestInstant(t *testing.T) {
	var asked string
	s := source(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.Path + " " + r.FormValue("query") + " " + r.FormValue("time") + " " + r.FormValue("timeout") + " " + r.FormValue("deny_partial_response") + " " + r.FormValue("partial_response")
		answer(200, asJSON, `{"status":"success","warnings":["limited"],"infos":["an info"],"data":{"resultType":"vector","result":[
			{"metric":{"workload":"a"},"value":[12.5,"1.5"]}, {"metric":{"workload":"b"},"value":[12.5,"NaN"]},
			{"metric":{"workload":"c"},"value":[12.5,"+Inf"]}, {"metric":{"workload":"d"},"histogram":[12.5,{"count":"1","sum":"2"}]}]}}`)(w, r)
	}), usual)
	at := time.UnixMilli(12_500)
	got, err := s.Instant(t.Context(), "x", at)
	if err != nil || len(got) != 2 || got[0].Labels["workload"] != "a" || got[0].Value != 1.5 || !got[0].Time.Equal(at) || !math.IsInf(got[1].Value, 1) {
		t.Errorf("%+v, %v", got, err)
	}
	if asked != "POST /api/v1/query x 12.5 10s 1 false" {
		t.Errorf("asked %q", asked)
	}
	if _, err := s.Instant(t.Context(), "x", at); err != nil {
		t.Fatal(err)
	}
	if w := s.Warnings(); len(w) != 1 || w[0] != "limited" {
		t.Errorf("warnings %q", w)
	}
}

func TestRange(t *testing.T) {
	s := source(t, serve(t, answer(200, asJSON, `{"status":"success","data":{"resultType":"matrix","result":[
		{"metric":{"a":"b"},"values":[[5,"1"],[10,"NaN"],[15,"2"]]}, {"metric":{"a":"c"},"values":[[5,"NaN"]]}]}}`)), usual)
	got, err := s.Range(t.Context(), "x", time.Unix(5, 0), time.Unix(15, 0), 5*time.Second)
	if err != nil || len(got) != 1 || len(got[0].Points) != 2 || got[0].Points[1].Value != 2 || got[0].Labels["a"] != "b" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Instant(t.Context(), "x", time.Now()); err == nil || !strings.Contains(err.Error(), "is a matrix, not a vector") {
		t.Errorf("a matrix for a vector: %v", err)
	}
}

// TestFunctionsThatAServerDoesNotKnow has the answer of VictoriaMetrics 1.79.5, which has no native histograms.
func TestFunctionsThatAServerDoesNotKnow(t *testing.T) {
	var asked []string
	s := source(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		expr := r.FormValue("query")
		if asked = append(asked, expr); strings.Contains(expr, "histogram_count") {
			answer(422, asJSON, `{"status":"error","errorType":"422","error":"error when executing query=\"a or histogram_count(b)\" for (time=1795819141128, step=300000): unknown func \"histogram_count\""}`)(w, r)
			return
		}
		answer(200, asJSON, one)(w, r)
	}), usual)
	got, err := s.Instant(t.Context(), `a_count or histogram_count(b)`, time.Now())
	if want := []string{`a_count or histogram_count(b)`, `a_count or (b)`}; err != nil || len(got) != 1 || !slices.Equal(asked, want) {
		t.Errorf("%v, %v, asked %q, want %q", got, err, asked, want)
	}
}

// Servers that a user may name by mistake, and the expected errors.
func TestWhatIsNoPrometheus(t *testing.T) {
	for name, tt := range map[string]struct {
		h    http.HandlerFunc
		want string
	}{
		"a page":          {answer(200, "text/html", "<!doctype html>\n<title>Grafana"), `its answer to a query begins with "<!doctype html>\n<title>Grafana"`},
		"an agent":        {answer(404, "text/plain", "404 page not found"), "it has no /api/v1/query"},
		"another API":     {answer(200, asJSON, `{"hello":"world"}`), "its answer is not in the format of the API"},
		"a JSON list":     {answer(200, asJSON, `[]`), "its answer is not in the format of the API"},
		"half an answer":  {answer(200, asJSON, one[:40]), "its answer is not in the format of the API"},
		"another vector":  {answer(200, asJSON, strings.ReplaceAll(one, `"1"`, `"2"`)), "the query vector(1)"},
		"a wrong content": {answer(200, "", ""), `its answer to a query begins with ""`},
	} {
		err := source(t, serve(t, tt.h), usual).Check(t.Context())
		var not *notPrometheusError
		if !errors.As(err, &not) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if err := source(t, serve(t, answer(200, asJSON, one)), usual).Check(t.Context()); err != nil {
		t.Errorf("a Prometheus: %v", err)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	envelope := func(kind, text string) string {
		return fmt.Sprintf(`{"status":"error","errorType":%q,"error":%q}`, kind, text)
	}
	for name, tt := range map[string]struct {
		h    http.HandlerFunc
		want []string
	}{
		"a password is wanted": {answer(401, "text/plain", "Unauthorized"), []string{"requires a user and a password", "--password-file"}},
		"forbidden":            {answer(403, "text/plain", "no"), []string{"answers 403 Forbidden: no"}},
		"starting":             {answer(503, asJSON, envelope("unavailable", "the database is being opened")), []string{"503 Service Unavailable: the database is being opened", "Tried 3 times"}},
		"a proxy":              {answer(502, "text/html", "<html>\n"), []string{"502 Bad Gateway", "Tried 3 times"}},
		"broken":               {answer(500, "text/plain", "\x1b[31mno"), []string{"500 Internal Server Error: \ufffd[31mno"}},
		"gave up":              {answer(503, asJSON, envelope("timeout", "query timed out")), []string{"query timed out"}},
		"too many samples":     {answer(422, asJSON, envelope("execution", "query processing would load too many samples")), []string{"could not run a query", "A shorter --window"}},
		"a bad query":          {answer(400, asJSON, envelope("bad_data", "parse error")), []string{"rejected a query: parse error"}},
	} {
		err := source(t, serve(t, tt.h), usual).Check(t.Context())
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}

func TestOnceMoreWhereThatHelps(t *testing.T) {
	for name, tt := range map[string]struct {
		first http.HandlerFunc
		asked int32
		good  bool
	}{
		"busy":      {answer(503, "text/plain", "busy"), 2, true},
		"too often": {answer(429, "text/plain", "slow down"), 2, true},
		"broken":    {answer(500, "text/plain", "no"), 1, false},
		"refused":   {answer(400, asJSON, `{"status":"error","errorType":"bad_data","error":"x"}`), 1, false},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				c.Close()
			}
		}, 2, true},
	} {
		var asked atomic.Int32
		s := source(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) == 1 {
				tt.first(w, r)
				return
			}
			if r.FormValue("query") != "vector(1)" {
				t.Errorf("%s: the second query is %q", name, r.FormValue("query"))
			}
			answer(200, asJSON, one)(w, r)
		}), usual)
		if err := s.Check(t.Context()); (err == nil) != tt.good || asked.Load() != tt.asked {
			t.Errorf("%s: asked %d times, %v", name, asked.Load(), err)
		}
	}
}

// Servers that do not support POST are queried with GET.
func TestGet(t *testing.T) {
	s := source(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			answer(405, "text/plain", "no")(w, r)
			return
		}
		answer(200, asJSON, one)(w, r)
	}), usual)
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestBounds(t *testing.T) {
	long := source(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", asJSON)
		chunk := strings.Repeat(" ", 1<<20)
		for range maxAnswer>>20 + 2 {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}), time.Minute)
	if err := long.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "larger than 32 MiB") {
		t.Errorf("a long answer: %v", err)
	}
	cut := source(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", asJSON)
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, one)
	}), usual)
	if err := cut.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "the response is incomplete") {
		t.Errorf("an answer that is cut: %v", err)
	}
}

// A server that never answers, or stops within its answer, fails within the time limit.
func TestSlowServers(t *testing.T) {
	// A server notices that its client has disconnected after it has read the whole request.
	gone := func(r *http.Request) { _ = r.ParseForm(); <-r.Context().Done() }
	silent := func(_ http.ResponseWriter, r *http.Request) { gone(r) }
	half := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", asJSON)
		_, _ = io.WriteString(w, `{"status":`)
		_ = http.NewResponseController(w).Flush()
		gone(r)
	}
	for name, h := range map[string]http.HandlerFunc{"silent": silent, "half": half} {
		began := time.Now()
		err := source(t, serve(t, h), 200*time.Millisecond).Check(t.Context())
		if took := time.Since(began); err == nil || took > usual || !strings.Contains(err.Error(), "no response within 200ms") {
			t.Errorf("%s: %v after %s", name, err, took)
		}
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("not done within 200ms"))
	defer cancel()
	if err := source(t, serve(t, silent), usual).Check(ctx); err == nil || !strings.Contains(err.Error(), "not done within 200ms") {
		t.Errorf("all of the time is over: %v", err)
	}
}

func TestNobodyListens(t *testing.T) {
	err := source(t, proctest.FreeAddr(t), usual).Check(t.Context())
	var absent *remote.NotListeningError
	if !errors.As(err, &absent) {
		t.Error(err)
	}
}

func TestWarningsAreBoundedAndFitForATerminal(t *testing.T) {
	n := 0
	s := source(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		answer(200, asJSON, fmt.Sprintf(`{"status":"success","warnings":["\u001b[2J%d"],"data":{"resultType":"vector","result":[]}}`, n))(w, r)
	}), usual)
	for range maxWarnings + 5 {
		if _, err := s.Instant(t.Context(), "x", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if w := s.Warnings(); len(w) != maxWarnings || strings.ContainsRune(strings.Join(w, ""), 0x1b) {
		t.Errorf("%q", w)
	}
}

func TestThePasswordIsSent(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
			answer(401, "text/plain", "Unauthorized")(w, r)
			return
		}
		answer(200, asJSON, one)(w, r)
	})
	as := func(password string) error {
		file := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
		return sourceWith(t, strings.Replace(url, "://", "://me@", 1), remote.Access{PasswordFile: file}, usual).Check(t.Context())
	}
	if err := as("secret"); err != nil {
		t.Error(err)
	}
	err := as("wrong")
	if err == nil || !strings.Contains(err.Error(), "does not take this password") || strings.Contains(err.Error(), "wrong") {
		t.Error(err)
	}
}
