// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func reading() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
}

func TestOriginCheck(t *testing.T) {
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "data") })
	s := serve(t, Options{Page: builtPage(), Metrics: gatherer(), API: api, Findings: api, Hostname: "node1"})
	own := s.Addr().String()
	for _, tt := range []struct {
		name   string
		path   string
		header []string
		want   int
	}{
		{"curl", "/api/v1/query", nil, 200},
		{"own page", "/api/v1/query", []string{"Origin", "http://" + own, "Sec-Fetch-Site", "same-origin"}, 200},
		{"own page behind a tunnel", "/api/v1/query", []string{"Host", "localhost:8080", "Origin", "http://localhost:8080"}, 200},
		{"own page behind TLS", "/api/v1/query", []string{"Host", "node1", "Origin", "https://NODE1"}, 200},
		{"another site", "/api/v1/query", []string{"Origin", "https://evil.example"}, 403},
		{"another site, metrics", "/metrics", []string{"Origin", "https://evil.example"}, 403},
		{"another port", "/api/v1/query", []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"a name that begins alike", "/api/v1/query", []string{"Origin", "http://" + own + ".evil.example"}, 403},
		{"a sandboxed frame", "/api/v1/query", []string{"Origin", "null"}, 403},
		{"no origin at all", "/api/v1/query", []string{"Origin", "://"}, 403},
		{"an image of another site", "/api/v1/query", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "image"}, 403},
		{"a frame of another port", "/api/v1/query", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Dest", "iframe"}, 403},
		{"typed by a person", "/api/v1/query", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Dest", "document"}, 200},
		{"a link on another site", "/metrics", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"another site opens a query", "/api/v1/query", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"another port opens a query", "/api/v1/query", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"a form of another site", "/api/v1/query", []string{"Origin", "http://" + own, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 403},
		{"another spelling of the path", "/%61pi/v1/query", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"the own page about silences", "/api/findings/silences", []string{"Origin", "http://" + own, "Sec-Fetch-Site", "same-origin"}, 200},
		{"another site about silences", "/api/findings/silences", []string{"Origin", "https://evil.example"}, 403},
		{"a frame about silences", "/api/findings/silences/a", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a link of the own page", "/metrics", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"a link to the page", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "document"}, 200},
	} {
		resp, body := request(t, s, "GET", tt.path, tt.header...)
		if resp.StatusCode != tt.want {
			t.Errorf("%s: %d %q, want %d", tt.name, resp.StatusCode, body, tt.want)
		}
		if tt.want == 403 && !strings.Contains(body, "let it pass the header Host on") {
			t.Errorf("%s: the refusal does not say what to do: %q", tt.name, body)
		}
	}
}

func TestLargeRequestsAreRefused(t *testing.T) {
	s := serve(t, Options{API: reading()})
	post := func(body io.Reader) (int, string) {
		resp, err := http.Post(s.URL()+"/api/v1/query", "application/x-www-form-urlencoded", body)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	if status, body := post(bytes.NewReader(make([]byte, maxBody))); status != 200 {
		t.Errorf("the longest body: %d %q", status, body)
	}
	if status, body := post(bytes.NewReader(make([]byte, maxBody+1))); status != 413 || !strings.Contains(body, "the maximum is 65536") {
		t.Errorf("an announced body: %d %q", status, body)
	}
	hidden := struct{ io.Reader }{bytes.NewReader(make([]byte, maxBody+1))} // of unknown length: chunked
	if status, body := post(hidden); status != 400 || !strings.Contains(body, "too large") {
		t.Errorf("a body of unknown length: %d %q", status, body)
	}
	// The request is written by hand, because a client would report that the connection was reset while it still wrote.
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		fmt.Fprintf(conn, "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nX-Long: %s\r\n\r\n", strings.Repeat("a", 70<<10))
	}()
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 431 ") {
		t.Errorf("70 KiB of headers: %q, %v", line, err)
	}
}

// slow gathers nothing, and returns only when released.
type slow struct{ entered, release chan struct{} }

func (s slow) Gather() ([]*dto.MetricFamily, error) {
	s.entered <- struct{}{}
	<-s.release
	return nil, nil
}

func TestTooManyScrapes(t *testing.T) {
	g := slow{make(chan struct{}, maxScrapes), make(chan struct{})}
	var _ prometheus.Gatherer = g
	s := serve(t, Options{Metrics: g})
	statuses := make(chan int, maxScrapes)
	for range maxScrapes {
		go func() {
			resp, err := http.Get(s.URL() + "/metrics")
			if err != nil {
				t.Error(err)
				statuses <- 0
				return
			}
			resp.Body.Close()
			statuses <- resp.StatusCode
		}()
	}
	for range maxScrapes {
		<-g.entered
	}
	if resp, body := request(t, s, "GET", "/metrics"); resp.StatusCode != 503 || !strings.Contains(body, "try again later") {
		t.Errorf("one too many: %d %q", resp.StatusCode, body)
	}
	if resp, _ := request(t, s, "GET", "/-/healthy"); resp.StatusCode != 200 {
		t.Errorf("healthy meanwhile: %d", resp.StatusCode)
	}
	close(g.release)
	for range maxScrapes {
		if status := <-statuses; status != 200 {
			t.Errorf("one of those before: %d", status)
		}
	}
}

// At the limit a new connection replaces the oldest idle one, and never one with a running request.
func TestTooManyConnections(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s := serve(t, Options{API: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		fmt.Fprint(w, "done")
	})})
	var held []net.Conn
	defer func() {
		for _, conn := range held {
			conn.Close()
		}
	}()
	connect := func() net.Conn {
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
		if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	ask := func(conn net.Conn, path string) {
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
			t.Fatal(err)
		}
	}
	running := connect()
	ask(running, "/api/v1/x")
	<-entered
	for range maxConnections - 1 {
		connect()
	}
	newest := connect()
	ask(newest, "/-/healthy")
	if line, err := bufio.NewReader(newest).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 200 ") {
		t.Errorf("one too many: %q, %v", line, err)
	}
	if _, err := held[1].Read(make([]byte, 1)); err == nil {
		t.Error("the oldest idle connection is still open")
	}
	close(release)
	if line, err := bufio.NewReader(running).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 200 ") {
		t.Errorf("the running request: %q, %v", line, err)
	}
	last := held[len(held)-2]
	ask(last, "/-/healthy")
	if line, err := bufio.NewReader(last).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 200 ") {
		t.Errorf("a younger connection: %q, %v", line, err)
	}
}
