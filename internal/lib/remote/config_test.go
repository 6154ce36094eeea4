// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/certtest"
)

// certificates writes the certificate of a client, its key and a server's certificate to a directory. It returns the
// client's.
func certificates(t *testing.T, dir string, server *x509.Certificate) *x509.Certificate {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return certtest.Write(t, dir, "client.pem", "client.key", x509.Certificate{
		BasicConstraintsValid: true, IsCA: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// strict is a server that requires a client certificate. Dir has the files of certificates.
func strict(t *testing.T, version uint16, h http.HandlerFunc) (s *httptest.Server, dir string) {
	t.Helper()
	dir = t.TempDir()
	s = httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of refused connections
	known := x509.NewCertPool()
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known, MaxVersion: version}
	s.StartTLS()
	t.Cleanup(s.Close)
	known.AddCert(certificates(t, dir, s.Certificate()))
	return s, dir
}

func configure(t *testing.T, dir, text string) string {
	t.Helper()
	file := filepath.Join(dir, "client.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func get(t *testing.T, target string, a Access) (string, error) {
	t.Helper()
	s, err := New("--server", target, a, within)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Get(s.URL("a"))
	if err != nil {
		return "", s.Explain(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = s.ExplainStatus(resp.StatusCode, body)
	}
	return string(body), err
}

const withCertificate = "tls_config: {ca_file: ca.pem, cert_file: client.pem, key_file: client.key}\n"

func TestServerThatRequiresAClientCertificate(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			s, dir := strict(t, version, func(w http.ResponseWriter, r *http.Request) {
				user, _, _ := r.BasicAuth()
				_, _ = fmt.Fprint(w, len(r.TLS.PeerCertificates), user)
			})
			host := strings.TrimPrefix(s.URL, "https://")
			file := configure(t, dir, withCertificate+"basic_auth: {username: me, password: secret}\n")
			for _, target := range []string{host, s.URL} { // with tls_config, HOST:PORT is https
				if body, err := get(t, target, Access{HTTPConfigFile: file}); err != nil || body != "1me" {
					t.Errorf("%s: %q, %v", target, body, err)
				}
			}
			file = configure(t, dir, "tls_config: {cert_file: client.pem, key_file: client.key}\n")
			_, err := get(t, s.URL, Access{HTTPConfigFile: file})
			if want := "ca_file of tls_config in " + file; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("without the authority: %v, want %q", err, want)
			}
		})
	}
}

// The server uses TLS 1.2, whose handshake ends with the server's refusal. In TLS 1.3 the refusal comes after the
// handshake, and a broken connection can hide it.
func TestAdviceWithoutAClientCertificate(t *testing.T) {
	s, dir := strict(t, tls.VersionTLS12, func(http.ResponseWriter, *http.Request) { t.Error("the request was served") })
	ca, file := filepath.Join(dir, "ca.pem"), configure(t, dir, "tls_config: {ca_file: ca.pem}\n")
	for _, tt := range []struct {
		access Access
		want   string
	}{
		{Access{CAFile: ca}, "name cert_file and key_file in tls_config of a file, and the file with --http-config-file"},
		{Access{HTTPConfigFile: file}, "name cert_file and key_file in tls_config of " + file},
	} {
		if _, err := get(t, s.URL, tt.access); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	for alert, want := range map[string]bool{"certificate required": true, "bad certificate": true, "unknown certificate authority": true, "internal error": false} {
		if wantsCertificate(errors.New("remote error: tls: "+alert)) != want {
			t.Errorf("%s: not %v", alert, want)
		}
	}
}

func TestConfigFileThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	secret := configure(t, dir, "basic_auth: {username: me, password_file: none}\n")
	for _, tt := range []struct {
		target string
		access Access
		want   string
	}{
		{"https://node1", Access{HTTPConfigFile: "a", CAFile: "b"}, "--http-config-file excludes --ca-file and --password-file"},
		{"https://node1", Access{HTTPConfigFile: "a", PasswordFile: "b"}, "--http-config-file excludes --ca-file and --password-file"},
		{"unix:/s", Access{HTTPConfigFile: "a"}, "omit --ca-file, --password-file and --http-config-file"},
		{"https://node1", Access{HTTPConfigFile: "/none"}, "--http-config-file: open /none"},
		{"https://node1", Access{HTTPConfigFile: secret}, "reading " + filepath.Join(dir, "none") + ", which " + secret + " names"},
		{"https://node1", Access{HTTPConfigFile: write(t, "bad", "basic_auth: secret")}, "its format is http_config of Prometheus' configuration"},
		{"https://me@node1", Access{HTTPConfigFile: write(t, "empty", "")}, "write the user into basic_auth of "},
	} {
		if _, err := New("--server", tt.target, tt.access, within); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "`secret") {
			t.Errorf("%+v: %v, want %q", tt.access, err, tt.want)
		}
	}
	plain, err := New("--server", "node1:1", Access{HTTPConfigFile: write(t, "plain", "authorization: {credentials: x}")}, within)
	if err != nil || plain.URL("") != "http://node1:1" {
		t.Errorf("without tls_config: %+v, %v", plain, err)
	}
}

// The credentials of the file are for the named server, as a password is.
func TestAnotherHostGetsNoRequestWithTheFile(t *testing.T) {
	asked := false
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(stranger.Close)
	named := httptest.NewServer(http.RedirectHandler(stranger.URL, http.StatusFound))
	t.Cleanup(named.Close)
	_, err := get(t, named.URL, Access{HTTPConfigFile: write(t, "c.yml", "authorization: {credentials: secret}\n")})
	if err == nil || asked || !strings.Contains(err.Error(), "it redirects to "+stranger.URL+", which must not get the credentials") {
		t.Errorf("%v, stranger asked %v", err, asked)
	}
}

func TestWrongCredentialsInTheFile(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(s.Close)
	file := write(t, "c.yml", "authorization: {credentials: secret}\n")
	_, err := get(t, s.URL, Access{HTTPConfigFile: file})
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "does not take the credentials of "+file) {
		t.Error(err)
	}
}
