// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certify writes a certificate with a serial number and its key as the user nobody with private permissions, as
// programs that renew certificates do.
func certify(t *testing.T, dir string, serial int64) {
	t.Helper()
	const nobody = 65534
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(file, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
}

// securely reads /metrics over TLS on a new connection, and returns the serial number of the certificate.
func securely(addr string) (metrics string, serial int64, err error) {
	client := &http.Client{
		Timeout: testLimit,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the serial number identifies the certificate
		},
	}
	resp, err := client.Get("https://" + addr + "/metrics")
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), resp.TLS.PeerCertificates[0].SerialNumber.Int64(), err
}

// A certificate that is renewed at run time is served, also by a confined program and for files of another user.
func TestCertificatesAreReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certify(t, dir, 1)
	web := filepath.Join(dir, "web.yml")
	if err := os.WriteFile(web, []byte("tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"agent"},
		{"up", "--data-dir", t.TempDir()},
		{"server", "--data-dir", t.TempDir(), "--targets", "127.0.0.1:1"},
	} {
		certify(t, dir, 1)
		addr := freeAddr(t)
		s := &teescope{process: background(t, binary, append(args, "--listen", addr, "--web.config-file", web)...), addr: addr}
		eventually(t, startWithin, args[0]+" to be confined", func() error {
			metrics, serial, err := securely(addr)
			if err == nil && !strings.Contains(metrics, "teescope_sandbox{mechanism=\"seccomp\"} 1\n") {
				err = fmt.Errorf("certificate %d, not yet confined", serial)
			}
			return err
		})
		certify(t, dir, 2)
		if _, serial, err := securely(addr); err != nil || serial != 2 {
			t.Errorf("%s serves certificate %d after it was renewed (%v)", args[0], serial, err)
		}
		s.stop(t)
	}
}
