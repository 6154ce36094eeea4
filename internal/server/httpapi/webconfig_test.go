// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/certtest"
)

// certificate writes a self-signed certificate for 127.0.0.1 and its key, and returns a pool that trusts it.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(certtest.Write(t, dir, "cert.pem", "key.pem", x509.Certificate{
		Subject: pkix.Name{CommonName: "teescope"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}))
	return pool
}

func webConfig(t testing.TB, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "web.config.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTLSAndBasicAuthentication(t *testing.T) {
	dir := t.TempDir()
	pool := certificate(t, dir)
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	path := webConfig(t, dir, "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\nbasic_auth_users:\n  alice: "+string(hash)+"\n")
	s := serve(t, Options{Metrics: gatherer(), Page: builtPage(), WebConfig: path})
	if !strings.HasPrefix(s.URL(), "https://") {
		t.Fatalf("URL() = %s", s.URL())
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	for password, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, "secret": http.StatusOK} {
		r, err := http.NewRequest(http.MethodGet, s.URL()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if password != "" {
			r.SetBasicAuth("alice", password)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("with the password %q: %d, want %d", password, resp.StatusCode, want)
		}
	}
	if resp, err := http.Get("http://" + s.Addr().String() + "/metrics"); err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %d, want it refused", resp.StatusCode)
		}
	}
}

func TestMistakesInTheWebConfigurationEndTheStart(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"tls_server_config:\n  cert_file: none.pem\n  key_file: none.pem\n": "none.pem",
		"basic_auth_users:\n  alice: not-a-hash\n":                          "bcrypt",
		"tls_server_confg: {}\n":                                            "tls_server_confg",
	} {
		path := webConfig(t, dir, text)
		err := New(Options{Listen: "127.0.0.1:0", WebConfig: path, Log: slog.New(slog.DiscardHandler)}).Init(t.Context())
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want the file named, and %q", text, err, want)
		}
	}
}

// TestPipesInWebConfig has named pipes without a writer. A read of one would never return, at the start or at a connection.
func TestPipesInWebConfig(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir)
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "web.yml")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "pipe: it is a named pipe, not a regular file"
	log := slog.New(slog.DiscardHandler)
	if _, err := openWebConfig(pipe, log); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the file itself: %v", err)
	}
	for _, text := range []string{
		"tls_server_config: {cert_file: pipe, key_file: key.pem}", "tls_server_config: {cert_file: cert.pem, key_file: pipe}",
		"tls_server_config: {cert_file: cert.pem, key_file: key.pem, client_ca_file: pipe, client_auth_type: RequireAndVerifyClientCert}",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openWebConfig(file, log); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := os.WriteFile(file, []byte("tls_server_config: {cert_file: cert.pem, key_file: key.pem}"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := openWebConfig(file, log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(pipe, filepath.Join(dir, "cert.pem")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.readTLS(); err == nil || !strings.Contains(err.Error(), "it is a named pipe") {
		t.Errorf("a certificate that became a pipe: %v", err)
	}
}
