// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// api is an API server with one answer after the other.
type api struct {
	t       *testing.T
	answers chan http.HandlerFunc
	asked   chan *http.Request
}

func newAPI(t *testing.T) (*api, *Client) {
	t.Helper()
	a := &api{t: t, answers: make(chan http.HandlerFunc), asked: make(chan *http.Request, 100)}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.asked <- r
		select {
		case answer := <-a.answers:
			answer(w, r)
		case <-r.Context().Done():
		case <-t.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ca.crt"), certificate(server))
	write(t, filepath.Join(dir, "token"), "first\n")
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"KUBERNETES_SERVICE_HOST": u.Hostname(), "KUBERNETES_SERVICE_PORT": u.Port()}
	c, err := inCluster(func(name string) string { return env[name] }, dir)
	if err != nil {
		t.Fatal(err)
	}
	return a, c
}

func certificate(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func pod(name, version string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"uid":"uid-%s","resourceVersion":%q},"spec":{"nodeName":"node-%s"}}`, name, name, version, name)
}

func page(next string, pods ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"metadata":{"resourceVersion":"7","continue":%q},"items":[%s]}`, next, strings.Join(pods, ","))
	}
}

// stream sends lines and then waits, as a watch does, until end is closed.
func stream(end <-chan struct{}, lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, l := range lines {
			fmt.Fprintln(w, l)
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}
}

func event(kind, object string) string { return fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object) }

func (a *api) request() *http.Request {
	a.t.Helper()
	select {
	case r := <-a.asked:
		return r
	case <-time.After(5 * time.Minute):
		a.t.Fatal("nothing is asked")
		return nil
	}
}

// start follows pods. Names has the names after each change, and failures the errors.
func start(t *testing.T, c *Client, most int) (names <-chan string, failures <-chan string) {
	t.Helper()
	told, failed := make(chan string, 100), make(chan string, 100)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Follow(ctx, Follower{
			Client: c, Path: "/api/v1/namespaces/n/pods", Query: url.Values{"labelSelector": {"a=b"}}, Most: most,
			Failed: func(err error) { failed <- err.Error() },
			watch:  time.Minute, first: time.Millisecond, longest: time.Millisecond,
		}, func(pods []Pod) {
			var all []string
			for _, p := range pods {
				all = append(all, p.Name+"@"+p.Spec.NodeName)
			}
			slices.Sort(all)
			told <- strings.Join(all, " ")
		})
	}()
	t.Cleanup(func() { stop(); <-done })
	return told, failed
}

func expect(t *testing.T, from <-chan string, want string) {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		select {
		case got := <-from:
			if strings.Contains(got, want) || got == want {
				return
			}
			t.Logf("passing %q", got)
		case <-deadline:
			t.Fatalf("%q did not come", want)
		}
	}
}

// TestPodsThatComeAndGo reads a list of two pages and then changes.
func TestPodsThatComeAndGo(t *testing.T) {
	a, c := newAPI(t)
	names, _ := start(t, c, 10)
	a.answers <- page("next", pod("a", "1"))
	if r := a.request(); r.Header.Get("Authorization") != "Bearer first" || r.URL.Query().Get("labelSelector") != "a=b" || r.URL.Query().Get("limit") != "250" {
		t.Errorf("asked %s with %s", r.URL, r.Header)
	}
	a.answers <- page("", pod("b", "2"))
	if r := a.request(); r.URL.Query().Get("continue") != "next" {
		t.Errorf("asked %s", r.URL)
	}
	expect(t, names, "a@node-a b@node-b")
	end := make(chan struct{})
	a.answers <- stream(end, event("ADDED", pod("c", "8")), event("DELETED", pod("a", "9")), event("BOOKMARK", pod("b", "9")))
	if r := a.request(); r.URL.Query().Get("watch") != "true" || r.URL.Query().Get("resourceVersion") != "7" || r.URL.Query().Get("labelSelector") != "a=b" {
		t.Errorf("asked %s", r.URL)
	}
	expect(t, names, "b@node-b c@node-c")
	close(end)
	a.answers <- page("", pod("c", "8"))
	expect(t, names, "c@node-c")
}

// TestAnOutageLosesNobody: while the API server fails, nothing is reported, and afterwards the new state.
func TestAnOutageLosesNobody(t *testing.T) {
	a, c := newAPI(t)
	names, failures := start(t, c, 10)
	a.answers <- page("", pod("a", "1"))
	expect(t, names, "a@node-a")
	a.answers <- func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	expect(t, failures, "the API server answers 503 Service Unavailable")
	a.answers <- func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": `pods is forbidden: User "system:serviceaccount:n:x" cannot list`})
	}
	expect(t, failures, `403 Forbidden: pods is forbidden: User "system:serviceaccount:n:x" cannot list`)
	if len(names) != 0 {
		t.Errorf("told %q during the outage", <-names)
	}
	a.answers <- page("", pod("a", "1"), pod("b", "2"))
	expect(t, names, "a@node-a b@node-b")
	// An expired version is not a failure.
	a.answers <- stream(nil, event("ERROR", `{"code":410,"message":"too old resource version"}`))
	a.answers <- page("", pod("b", "2"))
	expect(t, names, "b@node-b")
	if len(failures) != 0 {
		t.Errorf("failed: %s", <-failures)
	}
}

// TestTokensAreReadAgain replaces the token, as Kubernetes does every hour.
func TestTokensAreReadAgain(t *testing.T) {
	a, c := newAPI(t)
	names, _ := start(t, c, 10)
	a.answers <- page("", pod("a", "1"))
	a.request()
	expect(t, names, "a@node-a")
	a.request() // the watch has the first token
	write(t, c.tokenFile, "second")
	a.answers <- page("") // ends the watch
	if got := a.request().Header.Get("Authorization"); got != "Bearer second" {
		t.Errorf("the token is %q", got)
	}
}

// TestHostileAnswers sends what the API server never would.
func TestHostileAnswers(t *testing.T) {
	a, c := newAPI(t)
	_, failures := start(t, c, 2)
	a.answers <- page("", pod("a", "1"), pod("b", "2"), pod("c", "3"))
	expect(t, failures, "more than 2 objects")
	a.answers <- func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `<html>`) }
	expect(t, failures, "decoding the answer of the API server")
	a.answers <- page("", pod("a", "1"))
	a.answers <- stream(nil, event("ADDED", pod("b", "2")), event("ADDED", pod("c", "3")))
	expect(t, failures, "more than 2 objects")
	a.answers <- page("", pod("a", "1"))
	a.answers <- func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"type":"ADDED","object":{"metadata":{"name":"%s"`, strings.Repeat("x", maxObject))
	}
	expect(t, failures, "more than 12582912 bytes")
	a.answers <- func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://192.0.2.1/", http.StatusFound)
	}
	expect(t, failures, "302 Found")
}

// TestLargeObjects has users of the cluster who make their pods as large as they can.
func TestLargeObjects(t *testing.T) {
	a, c := newAPI(t)
	names, _ := start(t, c, 10)
	a.answers <- func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"items":[%s]}`, strings.Repeat(" ", maxBody))
	}
	a.request()
	a.answers <- page("next", pod("a", "1"))
	if got := a.request().URL.Query().Get("limit"); got != "125" {
		t.Errorf("after a page that is too large, asked for %s", got)
	}
	a.answers <- page("", pod("b", "2"))
	if got := a.request().URL.Query(); got.Get("limit") != "250" || got.Get("continue") != "next" {
		t.Errorf("after a small page, asked %s", got.Encode())
	}
	expect(t, names, "a@node-a b@node-b")
	var p Pod
	text := `{"metadata":{"labels":{"a":"` + strings.Repeat("x", maxLabels) + `"},"annotations":{"a":"b","prometheus.io/scheme":"https"}}}`
	if err := json.Unmarshal([]byte(text), &p); err != nil || p.Labels != nil || p.Annotations.Scheme != "https" {
		t.Errorf("%v, %d labels, %+v", err, len(p.Labels), p.Annotations)
	}
}

func TestOutsideOfACluster(t *testing.T) {
	if _, err := inCluster(func(string) string { return "" }, t.TempDir()); !errors.Is(err, errOutside) {
		t.Errorf("%v", err)
	}
	if _, err := inCluster(func(string) string { return "1" }, t.TempDir()); err == nil || !strings.Contains(err.Error(), "automountServiceAccountToken") {
		t.Errorf("%v", err)
	}
}
