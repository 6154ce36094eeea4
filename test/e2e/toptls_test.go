// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// protected writes a web configuration with TLS and one user. It returns that file, the certificate and the file with
// the password.
func protected(t *testing.T, user, password string) (config, certificate, passwordFile string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	certificate = write("cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
	config = write("web.yml", fmt.Appendf(nil, "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\nbasic_auth_users:\n  %s: %s\n", user, hash))
	return config, certificate, write("password", []byte(password+"\n"))
}

// An agent with TLS and a password is reached with both, including its threads. The message of each mistake gives
// advice.
func TestTopOnAProtectedAgent(t *testing.T) {
	held(t, prog(t, "crowd", "e2etls"), "3")
	config, certificate, password := protected(t, "me", "se cret")
	addr := freeAddr(t)
	background(t, binary, "agent", "--listen", addr, "--web.config-file", config)
	s := terminal(t, "until "+binary+" top --connect https://me@"+addr+" --ca-file "+certificate+" --password-file "+password+
		" --interval 500ms --filter e2etls; do sleep 0.1; done; sleep 60")
	s.shows(t, "teescope top  https://"+addr, "e2etls ")
	s.keys(t, "Enter", "t")
	s.shows(t, "6 threads", "crowd half")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--connect", addr}, "requires TLS: use --connect https://" + addr},
		{[]string{"--connect", "https://" + addr}, "certificate is not trusted(.|\n)*--ca-file"},
		{[]string{"--connect", "https://" + addr, "--ca-file", certificate}, "requires a user and a password(.|\n)*--password-file"},
		{[]string{"--connect", "https://me@" + addr, "--ca-file", certificate, "--password-file", certificate}, "does not take this password"},
		{[]string{"--connect", "https://me:wrong@" + addr, "--ca-file", certificate}, "contains a password(.|\n)*https://me@" + addr + " --password-file"},
	} {
		text := refused(t, 0, append([]string{"top", "--once"}, c.args...)...)
		says(t, text, c.want)
	}
}
