// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzInput fuzzes the file of TLS and passwords, and the Host of a request.
func FuzzInput(f *testing.F) {
	f.Add("tls_server_config:\n  cert_file: none.pem\n  key_file: none.pem\n", "localhost:9750")
	f.Add("basic_auth_users:\n  alice: $2y$10$abcdefghijklmnopqrstuuJ0nSyvlRUbl9hbBGMPPSvA8ZcM6yvvi\n", "127.0.0.2")
	f.Add("http_server_config: {http2: true, headers: {X-Frame-Options: deny}}\n", "rebound.example:80")
	f.Add("a: &a [*a]\n", "[::1]:1")
	f.Add("tls_server_config: {}\n", "LOCALHOST.")
	f.Add("", "x.localhost")
	f.Add("\"a\x1b\": 1", "machine")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text, host string) {
		path := webConfig(t, dir, text)
		file, err := openWebConfig(path, slog.New(slog.DiscardHandler))
		if err != nil && (file != nil || !strings.Contains(err.Error(), path)) {
			t.Errorf("the error %q does not name the file", err)
		}
		if err == nil && file.start.tls && !strings.Contains(text, "tls_server_config") {
			t.Errorf("TLS by %q", text)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		checkHosts(t, host)
	})
}

// checkHosts: on a loopback address the server answers only for names of this host. A refusal contains no control
// characters for any name.
func checkHosts(t *testing.T, host string) {
	t.Helper()
	s := New(Options{Hostname: "machine"})
	handler := s.checkHost(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9750}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
	}))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host = host
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	body := strings.ReplaceAll(w.Body.String(), "\n", "")
	if !utf8.ValidString(body) || strings.ContainsFunc(body, unicode.IsControl) {
		t.Errorf("the answer is %q", body)
	}
	if w.Code != http.StatusOK {
		return
	}
	lower := strings.ToLower(host)
	if strings.Contains(lower, "localhost") || strings.HasPrefix(lower, "machine") {
		return
	}
	if name, _, err := net.SplitHostPort(lower); err == nil {
		lower = name
	}
	if ip, err := netip.ParseAddr(strings.Trim(lower, "[].")); err != nil || !ip.Unmap().IsLoopback() {
		t.Errorf("%q is answered", host)
	}
}
