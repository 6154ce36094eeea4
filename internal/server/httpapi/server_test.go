// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/waittest"
)

func gatherer() prometheus.Gatherer {
	r := prometheus.NewRegistry()
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "things_total", Help: "Things."})
	c.Add(3)
	r.MustRegister(c)
	return r
}

func builtPage() fstest.MapFS {
	return fstest.MapFS{
		"index.html":      {Data: []byte("<!doctype html><title>t</title>")},
		"icon.svg":        {Data: []byte("<svg/>")},
		"assets/app.js":   {Data: []byte(strings.Repeat("let a = 1;\n", 100))},
		"assets/app.wasm": {Data: []byte{0}},
	}
}

// serve starts a server on a free port.
func serve(t *testing.T, o Options) *Server {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	o.Log = slog.New(slog.DiscardHandler)
	s := New(o)
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	return s
}

// request sends a request without following redirects and without decompressing.
func request(t *testing.T, s *Server, method, path string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Transport{DisableCompression: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestRoutes(t *testing.T) {
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "api "+r.URL.Path) })
	threads := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "threads "+r.URL.RawQuery) })
	manifests := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "manifests "+r.Method) })
	full := serve(t, Options{Page: builtPage(), Metrics: gatherer(), API: api, Threads: threads, Manifests: manifests})
	agent := serve(t, Options{Metrics: gatherer()})
	for _, tt := range []struct {
		name, method, path string
		s                  *Server
		status             int
		contentType, body  string
	}{
		{"page", "GET", "/", full, 200, "text/html; charset=utf-8", "<!doctype html>"},
		{"a view of the page", "GET", "/system?range=1h", full, 200, "text/html; charset=utf-8", "<!doctype html>"},
		{"head", "HEAD", "/", full, 200, "text/html; charset=utf-8", ""},
		{"asset", "GET", "/assets/app.js", full, 200, "text/javascript; charset=utf-8", "let a"},
		{"icon", "GET", "/icon.svg", full, 200, "image/svg+xml", "<svg/>"},
		{"no such file", "GET", "/assets/none.js", full, 404, "text/plain; charset=utf-8", "404"},
		{"outside of the page", "GET", "/..%2f..%2fetc/passwd.txt", full, 404, "text/plain; charset=utf-8", "404"},
		{"metrics", "GET", "/metrics", full, 200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", "things_total 3"},
		{"API", "GET", "/api/v1/query", full, 200, "text/plain; charset=utf-8", "api /api/v1/query"},
		{"another API", "GET", "/api/v2/query", full, 404, "text/plain; charset=utf-8", "404"},
		{"threads", "GET", "/api/top/threads?workload=a", full, 200, "text/plain; charset=utf-8", "threads workload=a"},
		{"posting to the threads", "POST", "/api/top/threads", full, 404, "text/plain; charset=utf-8", "404"},
		{"threads of a server", "GET", "/api/top/threads?workload=a", agent, 404, "text/plain; charset=utf-8", "404"},
		{"manifests", "POST", "/api/manifest", full, 200, "text/plain; charset=utf-8", "manifests POST"},
		{"getting manifests", "GET", "/api/manifest", full, 404, "text/plain; charset=utf-8", "404"},
		{"healthy", "GET", "/-/healthy", full, 200, "text/plain; charset=utf-8", "healthy"},
		{"ready", "GET", "/-/ready", full, 200, "text/plain; charset=utf-8", "ready"},
		{"no such check", "GET", "/-/reload", full, 404, "text/plain; charset=utf-8", "404"},
		{"posting to the page", "POST", "/", full, 405, "text/plain; charset=utf-8", "Method Not Allowed"},
		{"agent", "GET", "/", agent, 200, "text/plain; charset=utf-8", "/metrics"},
		{"API of an agent", "GET", "/api/v1/query", agent, 404, "text/plain; charset=utf-8", "404"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp, body := request(t, tt.s, tt.method, tt.path)
			if resp.StatusCode != tt.status || resp.Header.Get("Content-Type") != tt.contentType || !strings.Contains(body, tt.body) {
				t.Errorf("%s %s = %d %q %q", tt.method, tt.path, resp.StatusCode, resp.Header.Get("Content-Type"), body)
			}
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Access-Control-Allow-Origin": "",
			} {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if csp := resp.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
				t.Errorf("Content-Security-Policy: %q", csp)
			}
		})
	}
}

// Links in alerts are Prometheus' own: they point to its page /graph.
func TestGraphOfAQueryIsThePages(t *testing.T) {
	full := serve(t, Options{Page: builtPage()})
	for path, want := range map[string]string{
		"/graph?g0.expr=up+%3D%3D+0&g0.tab=1":                 "./?expr=up+%3D%3D+0&page=explore",
		"/graph?g0.expr=%26page%3Dtee%23%0d%0aSet-Cookie%3Aa": "./?expr=%26page%3Dtee%23%0D%0ASet-Cookie%3Aa&page=explore",
		"/graph": "./?page=explore",
	} {
		resp, body := request(t, full, "GET", path)
		if got := resp.Header.Get("Location"); resp.StatusCode != http.StatusFound || got != want || resp.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s leads to %q (%d: %s), not %q", path, got, resp.StatusCode, body, want)
		}
	}
	agent := serve(t, Options{})
	if resp, _ := request(t, agent, "GET", "/graph?g0.expr=up"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("without a page /graph answers %d", resp.StatusCode)
	}
}

func TestExposition(t *testing.T) {
	s := serve(t, Options{Metrics: gatherer()})
	resp, body := request(t, s, "GET", "/metrics", "Accept", "application/openmetrics-text;version=1.0.0")
	if ct := resp.Header.Get("Content-Type"); !strings.HasPrefix(ct, "application/openmetrics-text; version=1.0.0") || !strings.HasSuffix(body, "# EOF\n") {
		t.Errorf("OpenMetrics: %q, ends in %q", ct, body[max(0, len(body)-20):])
	}
	resp, body = request(t, s, "GET", "/metrics", "Accept-Encoding", "gzip")
	if resp.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("not compressed: %v", resp.Header)
	}
	if plain := gunzip(t, body); !strings.Contains(plain, "things_total 3") {
		t.Errorf("compressed exposition holds %q", plain)
	}
}

func gunzip(t *testing.T, s string) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// The names of assets stay the same when their content changes, so a browser must revalidate each time.
func TestPageCaching(t *testing.T) {
	s := serve(t, Options{Page: builtPage()})
	resp, body := request(t, s, "GET", "/assets/app.js", "Accept-Encoding", "br, gzip")
	if resp.Header.Get("Content-Encoding") != "gzip" || len(body) > 500 || !strings.HasPrefix(gunzip(t, body), "let a") {
		t.Errorf("an asset is not compressed: %d bytes, %v", len(body), resp.Header)
	}
	changed := builtPage()
	for _, f := range changed {
		f.Data = append(f.Data, '\n')
	}
	newer := serve(t, Options{Page: changed})
	for _, path := range []string{"/", "/assets/app.js", "/icon.svg"} {
		resp, old := request(t, s, "GET", path)
		etag := resp.Header.Get("ETag")
		if resp.Header.Get("Cache-Control") != "no-cache" || etag == "" {
			t.Errorf("caching of %s: %v", path, resp.Header)
		}
		for _, encoding := range []string{"identity", "gzip"} {
			resp, body := request(t, s, "GET", path, "If-None-Match", etag, "Accept-Encoding", encoding)
			if resp.StatusCode != http.StatusNotModified || body != "" {
				t.Errorf("%s again, as %s: %d with %d bytes, want 304 with none", path, encoding, resp.StatusCode, len(body))
			}
		}
		resp, body := request(t, newer, "GET", path, "If-None-Match", etag)
		if resp.StatusCode != http.StatusOK || body != old+"\n" || resp.Header.Get("ETag") == etag {
			t.Errorf("%s after a change: %d, ETag %s, want 200 with the new content and another ETag than %s", path, resp.StatusCode, resp.Header.Get("ETag"), etag)
		}
	}
}

func TestHostCheck(t *testing.T) {
	s := serve(t, Options{Page: builtPage(), Hostname: "Node1"})
	for host, want := range map[string]int{
		"localhost:9750": 200, "127.0.0.1": 200, "[::1]:80": 200, "LOCALHOST.": 200, "node1:9750": 200, "a.localhost": 200,
		"evil.example": 403, "evil.example:9750": 403, "10.0.0.1": 403, "localhost.evil.example": 403, "node1.evil.example": 403,
	} {
		resp, body := request(t, s, "GET", "/", "Host", host)
		if resp.StatusCode != want {
			t.Errorf("Host %s = %d, want %d", host, resp.StatusCode, want)
		}
		if want == 403 && !strings.Contains(body, "--listen") {
			t.Errorf("the refusal does not say what to do: %q", body)
		}
	}
	everywhere := serve(t, Options{
		Page: builtPage(), Listen: "0.0.0.0:0", Insecure: true, Hostname: "Node1", Hosts: []string{"Node7.example", "*.svc.example"},
	})
	for host, want := range map[string]int{
		"localhost:9750": 200, "10.0.0.1:9750": 200, "[fe80::1]:9750": 200, "node1": 200, "node7.example:9750": 200, "a.svc.example": 200,
		"a.b.SVC.example.": 200, "svc.example": 403, "asvc.example": 403, "evil.example": 403, "node7.example.evil": 403, "10.0.0.1.evil.example": 403,
	} {
		resp, body := request(t, everywhere, "GET", "/", "Host", host)
		if resp.StatusCode != want {
			t.Errorf("listening everywhere, Host %s = %d, want %d", host, resp.StatusCode, want)
		}
		if want == 403 && !strings.Contains(body, "--web.hosts") {
			t.Errorf("the refusal does not say what to do: %q", body)
		}
	}
}

// A program that is ready and cannot do its work still shows its metrics. One that hangs is not healthy.
func TestWorksAndHangs(t *testing.T) {
	var works, hangs atomic.Pointer[string]
	read := func(p *atomic.Pointer[string]) func() error {
		return func() error {
			if text := p.Load(); text != nil {
				return errors.New(*text)
			}
			return nil
		}
	}
	s := serve(t, Options{Metrics: gatherer(), Works: read(&works), Hangs: read(&hangs)})
	full, stuck := "the disk is full", "the collector node hangs"
	works.Store(&full)
	if resp, body := request(t, s, "GET", "/-/ready"); resp.StatusCode != 503 || !strings.Contains(body, full) {
		t.Errorf("ready with a full disk = %d %q", resp.StatusCode, body)
	}
	for _, path := range []string{"/metrics", "/-/healthy"} {
		if resp, _ := request(t, s, "GET", path); resp.StatusCode != 200 {
			t.Errorf("%s with a full disk = %d", path, resp.StatusCode)
		}
	}
	hangs.Store(&stuck)
	if resp, body := request(t, s, "GET", "/-/healthy"); resp.StatusCode != 503 || !strings.Contains(body, stuck) {
		t.Errorf("healthy while a collector hangs = %d %q", resp.StatusCode, body)
	}
}

func TestReadiness(t *testing.T) {
	var ready atomic.Bool
	s := serve(t, Options{Metrics: gatherer(), Ready: func() error {
		if ready.Load() {
			return nil
		}
		return errors.New("starting: database")
	}})
	for _, path := range []string{"/-/ready", "/metrics"} {
		resp, body := request(t, s, "GET", path)
		if resp.StatusCode != 503 || !strings.Contains(body, "not ready: starting: database") || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s before = %d %q", path, resp.StatusCode, body)
		}
	}
	if resp, _ := request(t, s, "GET", "/-/healthy"); resp.StatusCode != 200 {
		t.Errorf("healthy before = %d", resp.StatusCode)
	}
	ready.Store(true)
	for _, path := range []string{"/-/ready", "/metrics"} {
		if resp, _ := request(t, s, "GET", path); resp.StatusCode != 200 {
			t.Errorf("%s after = %d", path, resp.StatusCode)
		}
	}
}

func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = New(Options{Listen: l.Addr().String(), Log: slog.New(slog.DiscardHandler)}).Init(t.Context())
	var le *ListenError
	if !errors.As(err, &le) {
		t.Fatalf("Init() = %v, want a ListenError", err)
	}
	for _, want := range []string{l.Addr().String(), fmt.Sprintf("process %d (", os.Getpid()), "--listen"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}

func TestAddressesOfOthersNeedAuthentication(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", ":0"} {
		err := New(Options{Listen: addr, Log: slog.New(slog.DiscardHandler)}).Init(t.Context())
		var unprotected *unprotectedError
		if !errors.As(err, &unprotected) || !strings.Contains(err.Error(), "--web.config-file") || !strings.Contains(err.Error(), "--web.insecure") {
			t.Errorf("%s: Init() = %v, want an UnprotectedError that says what to do", addr, err)
		}
	}
	users := webConfig(t, t.TempDir(), "basic_auth_users:\n  alice: "+noUser+"\n")
	protected := serve(t, Options{Listen: "0.0.0.0:0", WebConfig: users})
	if resp, _ := request(t, protected, "GET", "/-/healthy"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a password: %d", resp.StatusCode)
	}
	dir := t.TempDir()
	certificate(t, dir)
	only := webConfig(t, dir, "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n")
	if err := New(Options{Listen: ":0", WebConfig: only, Log: slog.New(slog.DiscardHandler)}).Init(t.Context()); err == nil {
		t.Error("TLS without users is taken for authentication")
	}
}

func TestNoSuchAddress(t *testing.T) {
	err := New(Options{Listen: "192.0.2.1:9750", Log: slog.New(slog.DiscardHandler)}).Init(t.Context())
	if err == nil || !strings.Contains(err.Error(), "this host has no such address") {
		t.Errorf("Init() = %v", err)
	}
}

// TestDrain checks that a running request completes while new ones are refused.
func TestDrain(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s := serve(t, Options{API: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		fmt.Fprint(w, "done")
	})})
	answer := make(chan string)
	go func() {
		resp, err := http.Get(s.URL() + "/api/v1/x")
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answer <- string(body)
	}()
	<-entered
	drained := make(chan error)
	go func() { drained <- s.Drain().Shutdown(t.Context()) }()
	waittest.Until(t, "new connections to be refused", func() bool {
		conn, err := net.Dial("tcp", s.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	close(release)
	if got := <-answer; got != "done" {
		t.Errorf("the running request ended with %q", got)
	}
	if err := <-drained; err != nil {
		t.Errorf("Drain = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Errorf("Run() = %v after a shutdown that was asked for", err)
	}
}

func TestURL(t *testing.T) {
	s := serve(t, Options{Listen: "0.0.0.0:0", Insecure: true})
	if !strings.HasPrefix(s.URL(), "http://127.0.0.1:") {
		t.Errorf("URL() = %s, want one that a browser can open", s.URL())
	}
}
