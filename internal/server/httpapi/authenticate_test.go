// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/teescope/teescope/internal/lib/requester"
)

// Only a password or a certificate that the server has checked proves a user. Without a web configuration a password is a claim.
// The log of requests says the same.
func TestWhoIsProven(t *testing.T) {
	dir := t.TempDir()
	pool := certificate(t, dir)
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	who := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		by, verified := requester.Of(r, "claimed")
		_, _ = fmt.Fprint(w, by, " ", verified)
	})
	const tlsOnly = "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n"
	users := "basic_auth_users:\n  alice: " + string(hash) + "\n"
	for _, tt := range []struct{ what, config, says string }{
		{"no web configuration", "", "claimed false"},
		{"TLS", tlsOnly, "claimed false"},
		{"a password", users, "alice true"},
		{"a certificate that is not checked", tlsOnly + "  client_auth_type: RequireAnyClientCert\n", "claimed false"},
		{"a certificate", tlsOnly + "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: cert.pem\n", "teescope true"},
		{"both", tlsOnly + "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: cert.pem\n" + users, "alice true"},
	} {
		var logged bytes.Buffer
		o := Options{Control: who, AccessLog: AccessLog{Requests: logQueries, To: &logged}}
		if tt.config != "" {
			o.WebConfig = webConfig(t, dir, tt.config)
		}
		s := serve(t, o)
		r, err := http.NewRequest(http.MethodGet, s.URL()+"/api/control", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("alice", "secret")
		r.Header.Set("Teescope-User", "root")
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
			RootCAs: pool, Certificates: []tls.Certificate{mine}, MinVersion: tls.VersionTLS12,
		}}}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", tt.what, err)
		}
		said, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		client.CloseIdleConnections()
		if string(said) != tt.says {
			t.Errorf("%s: %s %q, want %q", tt.what, resp.Status, said, tt.says)
		}
		name, verified, _ := strings.Cut(strings.Replace(tt.says, "claimed", "alice", 1), " ")
		if line := fmt.Sprintf(`"user":%q,"user_verified":%s,`, name, verified); !strings.Contains(logged.String(), line) {
			t.Errorf("%s: %s is not in the log %s", tt.what, line, &logged)
		}
	}
}
