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

	"github.com/teescope/teescope/internal/lib/remote"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestClientAsksBelowTheAddress(t *testing.T) {
	for target, want := range map[string]string{
		"node1:9750":                   "http://node1:9750/metrics",
		"http://node1/metrics?a=b#c":   "http://node1/metrics",
		"https://node1:1/behind/":      "https://node1:1/behind/metrics",
		"http://node1/behind/metrics/": "http://node1/behind/metrics",
	} {
		c, err := NewClient(target, remote.Access{})
		if err != nil || c.server.URL("metrics") != want || strings.Contains(c.Target(), "metrics") {
			t.Errorf("%s: asks %s, shown as %s, %v", target, c.server.URL("metrics"), c.Target(), err)
		}
	}
}

// caFile writes a server's certificate to a file.
func caFile(t *testing.T, s *httptest.Server) string {
	t.Helper()
	t.Cleanup(s.Close)
	return write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
}

// A request to an agent with TLS and a password uses both, and each mistake has its own error.
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
	good := remote.Access{CAFile: ca, PasswordFile: write(t, "password", "secret\nand not this")}
	wrong := write(t, "wrong", "another")
	for _, tt := range []struct {
		target string
		access remote.Access
		want   string // part of the error; none if empty
		there  bool   // it may be an agent
	}{
		{"https://me@" + host, good, "", false},
		{"me@" + host, good, "", false},
		{"https://" + host, remote.Access{CAFile: ca}, "requires a user and a password: use --connect https://USER@" + host + " --password-file FILE", true},
		{"https://me@" + host, remote.Access{CAFile: ca, PasswordFile: wrong}, `does not take this password of the user "me"`, true},
		{"https://me@" + host, remote.Access{PasswordFile: good.PasswordFile}, "its certificate is not trusted", false},
		{"me@" + host, remote.Access{PasswordFile: good.PasswordFile}, "requires TLS: use --connect https://" + host, true},
	} {
		c, err := NewClient(tt.target, tt.access)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Scrape(context.Background())
		var refused *remote.RefusedError
		switch {
		case tt.want == "" && err != nil, tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.target, err, tt.want)
		case errors.As(err, &refused) != tt.there:
			t.Errorf("%s: %v is a RefusedError: %v, want %v", tt.target, err, !tt.there, tt.there)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: the error contains the password: %v", tt.target, err)
		}
	}
	plain := serve(t, "before.prom")
	c, err := NewClient("https://"+plain, remote.Access{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Scrape(context.Background()); err == nil || !strings.Contains(err.Error(), "does not use TLS: use --connect "+plain) {
		t.Errorf("TLS to an agent without it: %v", err)
	}
}

// An agent in this process is queried like a remote one.
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
