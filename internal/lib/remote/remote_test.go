// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/proctest"
)

const within = 5 * time.Second

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// caFile writes a server's certificate to a file.
func caFile(t *testing.T, s *httptest.Server) string {
	t.Helper()
	return write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
}

func TestAddresses(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	t.Cleanup(s.Close)
	ca := caFile(t, s)
	for _, tt := range []struct{ target, ca, shown, url, user, password string }{
		{"node1:9750", "", "node1:9750", "http://node1:9750/a/b", "", ""},
		{"http://node1", "", "node1", "http://node1/a/b", "", ""},
		{"http://node1/cut?a=b#c", "", "node1", "http://node1/a/b", "", ""},
		{"https://node1:1/behind/", "", "https://node1:1/behind", "https://node1:1/behind/a/b", "", ""},
		{"https://m%40e@node1", "", "https://node1", "https://node1/a/b", "m@e", ""},
		{"me@[::1]:2", ca, "https://[::1]:2", "https://[::1]:2/a/b", "me", ""},
	} {
		s, err := New("--server", tt.target, Access{CAFile: tt.ca}, within)
		if err != nil {
			t.Fatalf("%s: %v", tt.target, err)
		}
		s = s.TrimPath("/cut")
		if s.Target() != tt.shown || s.URL("a/b") != tt.url || s.user != tt.user || s.password != tt.password {
			t.Errorf("%s: shown as %q, asks %s as %q with %q", tt.target, s.Target(), s.URL("a/b"), s.user, s.password)
		}
	}
	for _, bad := range []string{"", "localhost", "ftp://x", "http://", "http://a b", "::1", "http://me:secret@a b", "me:secret@node1", "me:secret@node1:1", "https://me:secret@node1", "https://me:@node1", "https://:9750"} {
		if _, err := New("--server", bad, Access{}, within); err == nil || strings.Contains(err.Error(), "secret") {
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
		{"https://node1", Access{CAFile: "/none"}, "reading the CA file: open /none"},
		{"https://node1", Access{CAFile: write(t, "ca", "x")}, "contains no PEM certificate"},
	} {
		if _, err := New("--server", tt.target, tt.access, within); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.access, err, tt.want)
		}
	}
}

// The password is only for the server that the user has named, not for a server that it redirects to.
func TestAnotherHostIsNotToldThePassword(t *testing.T) {
	asked := map[string]bool{}
	note := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _, asked[name] = r.BasicAuth()
			if to := r.URL.Query().Get("to"); to != "" {
				http.Redirect(w, r, to, http.StatusFound)
			}
		}
	}
	stranger := httptest.NewServer(note("stranger"))
	t.Cleanup(stranger.Close)
	named := httptest.NewServer(note("named"))
	t.Cleanup(named.Close)
	s, err := New("--server", "http://me@"+strings.TrimPrefix(named.URL, "http://"), Access{PasswordFile: write(t, "password", "secret")}, within)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Get(s.URL("") + "?to=" + stranger.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if told, ok := asked["stranger"]; !asked["named"] || !ok || told {
		t.Errorf("these servers got a password: %v", asked)
	}
}

func TestExplain(t *testing.T) {
	free := proctest.FreeAddr(t)
	s, err := New("--server", free, Access{}, within)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Client().Get(s.URL(""))
	var absent *NotListeningError
	if !errors.As(s.Explain(err), &absent) || absent.Target != free {
		t.Errorf("without a listener: %v", s.Explain(err))
	}

	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	if s, err = New("--server", silent.URL, Access{}, 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if _, err = s.Client().Get(s.URL("")); err == nil || !strings.HasSuffix(s.Explain(err).Error(), "no response within 20ms") {
		t.Errorf("without an answer: %v", err)
	}
}

func TestExplainStatus(t *testing.T) {
	for _, tt := range []struct {
		target     string
		status     int
		body, want string
		refused    bool
	}{
		{"node1:1", 401, "", "node1:1 requires a user and a password: use --server http://USER@node1:1 --password-file FILE", true},
		{"http://me@node1:1", 401, "", `node1:1 does not take this password of the user "me": see --password-file`, true},
		{"node1:1", 400, "Client sent an HTTP request to an HTTPS server.", "node1:1 requires TLS: use --server https://node1:1, with --ca-file if it uses your own certificate authority", true},
		{"node1:1", 503, "loading\nmore", "node1:1 answers 503 Service Unavailable: loading", true},
		{"node1:1", 500, "\x1b[31mno", "node1:1 answers 500 Internal Server Error: \ufffd[31mno", false},
	} {
		s, err := New("--server", tt.target, Access{}, within)
		if err != nil {
			t.Fatal(err)
		}
		err = s.ExplainStatus(tt.status, []byte(tt.body))
		var refused *RefusedError
		if err.Error() != tt.want || errors.As(err, &refused) != tt.refused {
			t.Errorf("%d: %v, refused %v", tt.status, err, !tt.refused)
		}
	}
}

func TestLocal(t *testing.T) {
	s := Local("here", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, r.URL.Path)
	}), within)
	resp, err := s.Client().Get(s.URL("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "/a" || resp.StatusCode != http.StatusTeapot || s.Target() != "here" {
		t.Errorf("%d %q, %v", resp.StatusCode, body, err)
	}
}

func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	server := &http.Server{ReadHeaderTimeout: within, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host+r.URL.Path)
	})}
	go func() { _ = server.Serve(l) }() // until it is closed
	defer server.Close()
	s, err := New("--connect", "unix:"+path, Access{}, within)
	if err != nil {
		t.Fatal(err)
	}
	s = s.TrimPath("/metrics")
	resp, err := s.Client().Get(s.URL("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "localhost/a" || s.Target() != "unix:"+path {
		t.Errorf("%q from %s, %v", body, s.Target(), err)
	}
	if _, err := New("--connect", "unix:"+path, Access{CAFile: "a"}, within); err == nil {
		t.Error("a CA file for a socket is accepted")
	}
}
