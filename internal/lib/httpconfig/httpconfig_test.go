// SPDX-License-Identifier: Apache-2.0

package httpconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPipesAreRefused has a named pipe without a writer in each place of a file name. A read of it would never return.
func TestPipesAreRefused(t *testing.T) {
	dir := t.TempDir()
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"basic_auth: {username: a, password_file: pipe}", "authorization: {credentials_file: pipe}", "bearer_token_file: pipe",
		"tls_config: {ca_file: pipe}", "tls_config: {cert_file: pipe, key_file: pipe}", "http_headers: {a: {files: [pipe]}}",
		"oauth2: {client_id: a, token_url: http://h, client_secret: b, tls_config: {ca_file: pipe}}",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(file); err == nil || !strings.Contains(err.Error(), pipe+": it is a named pipe, not a regular file") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for name, want := range map[string]string{pipe: "named pipe", "/dev/zero": "a device"} {
		if _, err := Read(name); err == nil || !strings.Contains(err.Error(), want+", not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
