// SPDX-License-Identifier: Apache-2.0

package elsewhere

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/remote"
)

// proxy serves a proxy for a database that a test defines.
func proxy(t *testing.T, database http.HandlerFunc) string {
	t.Helper()
	behind := httptest.NewServer(database)
	t.Cleanup(behind.Close)
	s, err := remote.New("--query.url", behind.URL+"/base", remote.Access{}, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(New(s))
	t.Cleanup(front.Close)
	return front.URL
}

func do(t *testing.T, method, url, body string) (status int, text string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret")
	req.Header.Set("Cookie", "a=b")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if kind := resp.Header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("%s %s: the answer is %s", method, url, kind)
	}
	return resp.StatusCode, string(data), err
}

func TestOnlyReadingIsPassedOn(t *testing.T) {
	asked := make(chan string, 1)
	front := proxy(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
			t.Error("the client's credentials are passed on")
		}
		_ = r.ParseForm()
		if r.FormValue("deny_partial_response") != "1" || r.FormValue("partial_response") != "false" {
			t.Errorf("%s may have an incomplete answer", r.URL)
		}
		r.Form.Del("deny_partial_response")
		r.Form.Del("partial_response")
		asked <- r.Method + " " + r.URL.Path + " " + r.Form.Encode()
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(w, "{}")
	})
	long := strings.Repeat("a", longURL)
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "query?query=up&time=1&dedup=false&partial_response=true", "", "GET /base/api/v1/query query=up&time=1"},
		{"POST", "query_range", "query=up&start=1&x=y", "GET /base/api/v1/query_range query=up&start=1"},
		{"POST", "query", "query=" + long, "POST /base/api/v1/query query=" + long},
		{"GET", "series?match[]=a&match[]=b", "", "GET /base/api/v1/series match%5B%5D=a&match%5B%5D=b"},
		{"GET", "label/workload/values?limit=2", "", "GET /base/api/v1/label/workload/values limit=2"},
		{"GET", "targets?state=active", "", "GET /base/api/v1/targets state=active"},
	} {
		status, text, err := do(t, c.method, front+"/api/v1/"+c.path, c.body)
		if err != nil || status != 200 || text != "{}" {
			t.Errorf("%s: %d %s %v", c.path, status, text, err)
			continue
		}
		got, want := <-asked, strings.Fields(c.want)
		for _, part := range want {
			for _, one := range strings.Split(part, "&") {
				if !strings.Contains(got, one) {
					t.Errorf("%s: asked %s, want %s", c.path, got, c.want)
				}
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: asked %s, want %s", c.path, got, c.want)
		}
	}
	for path, want := range map[string]int{
		"GET status/config": 404, "GET status/flags": 404, "POST admin/tsdb/delete_series": 404, "POST write": 404, "GET query/../status/config": 404,
		"GET label/..%2fx/values": 404, "GET label/a%2fb/values": 404, "GET label//values": 404, "DELETE series": 405, "PUT query": 405, "POST targets": 405, "GET rules": 404, "GET ": 404,
	} {
		method, path, _ := strings.Cut(path, " ")
		if status, text, err := do(t, method, front+"/api/v1/"+path, ""); err != nil || status != want {
			t.Errorf("%s %s: %d %s %v", method, path, status, text, err)
		}
	}
	select {
	case got := <-asked:
		t.Errorf("passed on: %s", got)
	default:
	}
}

func TestOtherAnswersBecomeErrors(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		kind, body string
		want       int
		says       string
	}{
		"an error of the API":   {400, "application/json", `{"error":"parse error"}`, 400, "parse error"},
		"a page":                {200, "text/html", "<script>", 502, "is not a Prometheus"},
		"a password is needed":  {401, "text/plain", "no", 502, "requires a user"},
		"a redirect":            {302, "text/plain", "", 502, "302"},
		"an unknown path":       {404, "text/plain", "404", 404, "does not have this"},
		"a busy database":       {503, "text/plain", "starting", 503, "starting"},
		"too many requests":     {429, "application/json", "{}", 503, "429"},
		"a failure of a server": {500, "application/json", "{}", 502, "500"},
	} {
		front := proxy(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			w.Header().Set("WWW-Authenticate", "Basic")
			w.Header().Set("Location", "http://192.0.2.1/")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		status, text, err := do(t, "GET", front+"/api/v1/query?query=up", "")
		if err != nil || status != c.want || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %s %v", name, status, text, err)
		}
	}
}

// TestFunctionsThatADatabaseDoesNotKnow has answers like those of VictoriaMetrics 1.79.5 and 1.150.0, which repeat the query first.
func TestFunctionsThatADatabaseDoesNotKnow(t *testing.T) {
	for status, unknown := range map[int]string{http.StatusUnprocessableEntity: "unknown func", http.StatusBadRequest: "unsupported function"} {
		t.Run(unknown, func(t *testing.T) { functionsThatADatabaseDoesNotKnow(t, status, unknown) })
	}
}

func functionsThatADatabaseDoesNotKnow(t *testing.T, status int, unknown string) {
	refusal := func(q string) string {
		said, err := json.Marshal(fmt.Sprintf("error when executing query=%q for (time=7000, step=300000): %s %q", q, unknown, "histogram_count"))
		if err != nil {
			t.Error(err)
		}
		return `{"status":"error","errorType":"422","error":` + string(said) + `}`
	}
	front := proxy(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch q := r.FormValue("query"); {
		case strings.Contains(q, "histogram_"):
			w.WriteHeader(status)
			_, _ = io.WriteString(w, refusal(q))
		default:
			_, _ = io.WriteString(w, q+" at "+r.FormValue("time"))
		}
	})
	long := strings.Repeat(" or b", 2000)
	for query, want := range map[string]string{
		"sum(histogram_count(rate(b[1m]))) or sum(rate(b_count[1m]))": "sum((rate(b[1m]))) or sum(rate(b_count[1m])) at 7",
		"histogram_count(b)" + long:                                   "(b)" + long + " at 7",
		"histogram_other(b)":                                          refusal("histogram_other(b)"),
	} {
		_, text, err := do(t, "GET", front+"/api/v1/query?time=7&query="+url.QueryEscape(query), "")
		if err != nil || text != want {
			t.Errorf("%s: %s, %v, want %s", query, text, err, want)
		}
	}
}

// An answer that is too long must not look complete, with and without a stated length.
func TestLongAnswers(t *testing.T) {
	front := proxy(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range maxAnswer>>20 + 1 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	if _, text, err := do(t, "GET", front+"/api/v1/query?query=up", ""); err == nil {
		t.Errorf("%d bytes without an error", len(text))
	}
	front = proxy(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "99999999")
	})
	if status, text, err := do(t, "GET", front+"/api/v1/query?query=up", ""); err != nil || status != 502 {
		t.Errorf("%d %s %v", status, text, err)
	}
}

// TestAClientLeavesPlacesForOthers: one client requests much that takes long, and another is answered.
func TestAClientLeavesPlacesForOthers(t *testing.T) {
	waiting := make(chan struct{}, 2*maxConcurrent)
	database := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") == "slow" {
			waiting <- struct{}{}
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(database.Close)
	s, err := remote.New("--query.url", database.URL, remote.Access{}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	p := New(s)
	ask := func(ctx context.Context, client, query string) int {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/query?query="+query, http.NoBody)
		r.RemoteAddr = client
		p.ServeHTTP(w, r)
		return w.Code
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 2 * maxConcurrent {
		all.Go(func() { ask(ctx, "192.0.2.1:1", "slow") })
	}
	for range maxPerClient {
		<-waiting
	}
	within, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if code := ask(within, "192.0.2.2:1", "fast"); code != http.StatusOK || within.Err() != nil {
		t.Errorf("another client: %d, %v", code, within.Err())
	}
	stop()
	all.Wait()
	if clients, places := p.places.Requests(); clients != 0 || places != 0 {
		t.Errorf("places are kept: %d clients, %d", clients, places)
	}
}

func TestNoDatabase(t *testing.T) {
	s, err := remote.New("--query.url", "http://127.0.0.1:1", remote.Access{}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(New(s))
	t.Cleanup(front.Close)
	if status, text, err := do(t, "GET", front.URL+"/api/v1/query?query=up", ""); err != nil || status != 502 || !strings.Contains(text, "nothing listens on 127.0.0.1:1") {
		t.Errorf("%d %s %v", status, text, err)
	}
}
