// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAddresses(t *testing.T) {
	ca := caFile(t, httptest.NewTLSServer(nil))
	for _, tt := range []struct{ target, ca, shown, metrics, threads, user, password string }{
		{"node1:9750", "", "node1:9750", "http://node1:9750/metrics", "http://node1:9750/api/top/threads", "", ""},
		{"http://node1", "", "node1", "http://node1/metrics", "http://node1/api/top/threads", "", ""},
		{"http://node1/metrics?a=b#c", "", "node1", "http://node1/metrics", "http://node1/api/top/threads", "", ""},
		{"https://node1:1/behind/", "", "https://node1:1/behind", "https://node1:1/behind/metrics", "https://node1:1/behind/api/top/threads", "", ""},
		{"https://me:se%40cret@node1", "", "https://node1", "https://node1/metrics", "https://node1/api/top/threads", "me", "se@cret"},
		{"me@[::1]:2", ca, "https://[::1]:2", "https://[::1]:2/metrics", "https://[::1]:2/api/top/threads", "me", ""},
	} {
		c, err := NewClient(tt.target, Access{CAFile: tt.ca})
		if err != nil {
			t.Fatalf("%s: %v", tt.target, err)
		}
		if c.Target() != tt.shown || c.metrics != tt.metrics || c.threads != tt.threads || c.user != tt.user || c.password != tt.password {
			t.Errorf("%s: shown as %q, asks %s and %s as %q with %q", tt.target, c.Target(), c.metrics, c.threads, c.user, c.password)
		}
	}
	for _, bad := range []string{"", "localhost", "ftp://x", "http://", "http://a b", "::1", "http://me:secret@a b", "me:secret@node1", "https://:9750"} {
		if _, err := NewClient(bad, Access{}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestAccessThatCannotBe(t *testing.T) {
	for _, tt := range []struct {
		target string
		access Access
		want   string
	}{
		{"https://node1", Access{PasswordFile: write(t, "p", "x")}, "a password needs a user"},
		{"https://me@node1", Access{PasswordFile: "/none"}, "reading the password: open /none"},
		{"https://node1", Access{CAFile: "/none"}, "reading the authorities to trust: open /none"},
		{"https://node1", Access{CAFile: write(t, "ca", "x")}, "holds no certificate in PEM"},
	} {
		if _, err := NewClient(tt.target, tt.access); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.access, err, tt.want)
		}
	}
}

// caFile writes down what trusts a server.
func caFile(t *testing.T, s *httptest.Server) string {
	t.Helper()
	t.Cleanup(s.Close)
	return write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
}

// An agent with TLS and a password is asked with both, and each mistake is told from the others.
func TestTLSAndPasswords(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, "teescope_processes{workload=\"a\"} 1\n")
	}))
	s.Config.ErrorLog = discard()
	s.StartTLS()
	ca := caFile(t, s)
	host := strings.TrimPrefix(s.URL, "https://")
	good := Access{CAFile: ca, PasswordFile: write(t, "password", "secret\nand not this")}
	for _, tt := range []struct {
		target string
		access Access
		want   string // part of the error; none if empty
		there  bool   // it may be an agent
	}{
		{"https://me@" + host, good, "", false},
		{"me@" + host, good, "", false},
		{"https://me:secret@" + host, Access{CAFile: ca}, "", false},
		{"https://" + host, Access{CAFile: ca}, "wants a user and a password: use --connect https://USER@" + host + " --password-file FILE", true},
		{"https://me:wrong@" + host, Access{CAFile: ca}, `does not take this password of the user "me"`, true},
		{"https://me:secret@" + host, Access{}, "its certificate is not trusted", false},
		{"me:secret@" + host, Access{}, "speaks TLS: use --connect https://" + host, true},
	} {
		c, err := NewClient(tt.target, tt.access)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Scrape(context.Background())
		var refused *RefusedError
		switch {
		case tt.want == "" && err != nil, tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.target, err, tt.want)
		case errors.As(err, &refused) != tt.there:
			t.Errorf("%s: %v is a RefusedError: %v, want %v", tt.target, err, !tt.there, tt.there)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: the error tells the password: %v", tt.target, err)
		}
	}
	plain := serve(t, "before.prom")
	c, err := NewClient("https://"+plain, Access{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Scrape(context.Background()); err == nil || !strings.Contains(err.Error(), "does not speak TLS: use --connect "+plain) {
		t.Errorf("TLS to an agent without it: %v", err)
	}
}

// An agent in this process is asked as one elsewhere is.
func TestLocalAgent(t *testing.T) {
	var asked []string
	c := NewLocal("here", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		if r.URL.Path != "/metrics" {
			http.Error(w, "no workload has the name", http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, "teescope_processes{workload=\"a\"} 1\n")
	}))
	if s, err := c.Scrape(context.Background()); err != nil || len(s.Workloads) != 1 || c.Target() != "here" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := c.Threads(context.Background(), "a b&c"); err == nil || err.Error() != "here answers 404 Not Found: no workload has the name" {
		t.Errorf("threads: %v", err)
	}
	if got := strings.Join(asked, ", "); got != "GET http://localhost/metrics, GET http://localhost/api/top/threads?workload=a+b%26c" {
		t.Errorf("asked %s", got)
	}
}
