// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A file that an operator names is a pipe without a writer, a device that never ends, or too large. The command ends with
// an error that names the file, whichever key, flag or other file names it.
func TestFilesThatNeverEnd(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	pipe, huge := at("pipe"), at("huge")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	replace(t, huge, nil)
	if err := os.Truncate(huge, 1<<40); err != nil { // it takes no space
		t.Fatal(err)
	}
	server := func(more ...string) []string {
		return append([]string{"server", "--listen", freeAddr(t), "--data-dir", t.TempDir(), "--targets", "127.0.0.1:1"}, more...)
	}
	// indirect writes a file that names the bad one, instead of FILE.
	indirect := func(name, text, bad string) string {
		to := at(filepath.Base(bad) + "-" + name)
		replace(t, to, []byte(strings.ReplaceAll(text, "FILE", bad)))
		return to
	}
	tlsOf := func(text string) string { return "tls_server_config: {" + text + "}\n" }
	remote := func(flag string) []string {
		return []string{"top", "--once", "--connect", "https://me@127.0.0.1:1", flag}
	}
	type mistake struct {
		name, file string
		args       []string
	}
	var mistakes []mistake
	for _, bad := range []string{pipe, "/dev/zero", huge} {
		for name, args := range map[string][]string{
			"config":              {"agent", "--config", bad},
			"web.config-file":     server("--web.config-file", bad),
			"cert_file":           server("--web.config-file", indirect("w1.yml", tlsOf("cert_file: FILE, key_file: FILE"), bad)),
			"client_ca_file":      server("--web.config-file", indirect("w2.yml", tlsOf("cert_file: /dev/null, key_file: /dev/null, client_ca_file: FILE"), bad)),
			"rules.files":         server("--rules.files", bad),
			"rules.files pattern": server("--rules.files", bad[:len(bad)-1]+"[a-z]"),
			"targets-config-file": server("--targets-config-file", bad),
			"password_file":       server("--targets-config-file", indirect("h1.yml", "basic_auth: {username: me, password_file: FILE}", bad)),
			"credentials_file":    server("--targets-config-file", indirect("h2.yml", "authorization: {credentials_file: FILE}", bad)),
			"ca_file":             server("--targets-config-file", indirect("h3.yml", "tls_config: {ca_file: FILE}", bad)),
			"http_headers":        server("--targets-config-file", indirect("h4.yml", "http_headers: {X-Key: {files: [FILE]}}", bad)),
			"scrape-config-file":  server("--scrape", "app=http://127.0.0.1:1/metrics", "--scrape-config-file", "app="+bad),
			"alertmanagers":       server("--alerting.alertmanagers", "http://127.0.0.1:1", "--alerting.alertmanager-config-file", bad),
			"webhooks":            server("--alerting.webhooks", "file:"+bad),
			"webhook-config-file": server("--alerting.webhooks", "http://127.0.0.1:1", "--alerting.webhook-config-file", bad),
			"ca-file":             append(remote("--ca-file"), bad),
			"password-file":       append(remote("--password-file"), bad),
			"http-config-file":    append(remote("--http-config-file"), bad),
			"rules check":         {"rules", "check", bad},
			"rules test":          {"rules", "test", bad},
			"rules test's rules":  {"rules", "test", indirect("t.yml", "rule_files: [FILE]\ntests: []\n", bad)},
			"analyze":             {"analyze", bad},
			"correlate":           {"correlate", bad},
		} {
			if bad == "/dev/zero" && strings.HasSuffix(name, "pattern") {
				continue // it matches other devices too
			}
			mistakes = append(mistakes, mistake{name + " " + filepath.Base(bad), bad, args})
		}
	}
	defer withAddressSpace(t, attackAddresses)() // a command that reads too much ends, and not another program of this machine
	t.Run("all", func(t *testing.T) {
		for _, a := range mistakes {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				says(t, refused(t, 0, a.args...), regexp.QuoteMeta(a.file))
			})
		}
	})
	t.Setenv("TEESCOPE_CONFIG", pipe)
	says(t, refused(t, 0, "agent"), regexp.QuoteMeta(pipe))
}
