// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// upIs waits until the target with a label has this value of up, and its failure contains a text.
func upIs(t *testing.T, base, label, target string, want float64, reason string) {
	t.Helper()
	eventually(t, testLimit, fmt.Sprintf("up of %s to be %v with %q", target, want, reason), func() error {
		up, err := query(base, fmt.Sprintf("sum(up{%s=%q})", label, target), time.Now())
		if err != nil {
			return err
		}
		why, err := failuresBy(base, label)
		if err == nil && (len(up) == 0 || up["{}"] != want || !strings.Contains(why[target], reason) || reason == "" && why[target] != "") {
			err = fmt.Errorf("up is %v, and the reason %q", up, why[target])
		}
		return err
	})
}

// showsLinesOf requires that a server shows the lines of a manifest on the machine of an agent, and that no other client gets them there. The
// program has the command line of gramine-direct.
func showsLinesOf(t *testing.T, server, agent string) {
	t.Helper()
	app := filepath.Join(t.TempDir(), "app")
	replace(t, app+".manifest", []byte("loader.env.PASSWORD = \"planted\"\nsgx.max_threads = 2\n"))
	held(t, prog(t, "threads", "e2eremote"), "8/direct/libpal.so", "init", app)
	const want = "\n@@ -2,1 +2,1 @@\n-sgx.max_threads = 2\n+sgx.max_threads = 4\n"
	eventually(t, testLimit, "the lines of the manifest", func() error {
		body, err := get(server + "/api/findings/manifest?workload=e2eremote&instance=" + agent)
		if err == nil && (!strings.Contains(body, want) || strings.Contains(body, "planted")) {
			err = fmt.Errorf("the server says %q", body)
		}
		return err
	})
	body, err := get(server + "/api/findings/manifest?workload=e2enobody&instance=" + agent)
	if err == nil || !strings.Contains(err.Error(), "Run this on 127.0.0.1: sudo teescope advise --live") {
		t.Errorf("without a program: %q, %v", body, err)
	}
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	if resp, err := insecure.Post("https://"+agent+"/api/manifest", "application/json", strings.NewReader(`{"workload": "e2eremote"}`)); err == nil {
		resp.Body.Close()
		t.Errorf("the agent answers a client without a certificate: %s", resp.Status)
	}
}

// An agent requires a client certificate and a password. A server that has both scrapes it. Certificates, authorities
// and passwords are replaced without a restart, and each that does not fit is a reason that the user sees.
func TestProtectedAgentIsScraped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	password := func(p string) []byte {
		return fmt.Appendf(nil, "tls_server_config:\n  cert_file: agent.pem\n  key_file: agent.key\n  client_ca_file: agent-ca.pem\n"+
			"  client_auth_type: RequireAndVerifyClientCert\nbasic_auth_users:\n  scraper: %s\n", hashed(t, p))
	}
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	first.issue(t, dir, "agent")
	first.issue(t, dir, "server")
	replace(t, at("agent-ca.pem"), first.pem)
	replace(t, at("ca.pem"), first.pem)
	replace(t, at("web.yml"), password("pass one"))
	replace(t, at("password"), []byte("pass one\n"))
	replace(t, at("client.yml"), []byte("basic_auth:\n  username: scraper\n  password_file: password\n"+
		"tls_config:\n  ca_file: ca.pem\n  cert_file: server.pem\n  key_file: server.key\n"))
	replace(t, at("nobody.yml"), []byte("basic_auth: {username: nobody, password: other}\n"))
	addr := freeAddr(t)
	background(t, binary, "agent", "--listen", addr, "--web.config-file", at("web.yml"))
	s := start(t, "server", "--data-dir", t.TempDir(), "--interval", "1s", "--rules.default=false", "--analysis.interval", "1h",
		"--targets", "https://"+addr, "--targets-config-file", at("nobody.yml"), "--targets-config-file", "127.0.0.*:*="+at("client.yml"))
	base := "http://" + s.addr
	agentIs := func(want float64, reason string) {
		t.Helper()
		upIs(t, base, "instance", addr, want, reason)
	}
	agentIs(1, "")
	if got, err := query(base, fmt.Sprintf("count(teescope_build_info{instance=%q})", addr), time.Now()); err != nil || got["{}"] != 1 {
		t.Errorf("the metrics of the agent: %v, %v", got, err)
	}
	showsLinesOf(t, base, addr)

	replace(t, at("web.yml"), password("pass two"))
	agentIs(0, "401 Unauthorized")
	replace(t, at("password"), []byte("pass two"))
	agentIs(1, "")

	replace(t, at("ca.pem"), second.pem)
	agentIs(0, "certificate signed by unknown authority")
	replace(t, at("agent-ca.pem"), second.pem)
	second.issue(t, dir, "agent")
	agentIs(0, "https://"+addr) // the agent does not know the authority of the server's certificate
	second.issue(t, dir, "server")
	agentIs(1, "")

	if text := s.log.String(); strings.Contains(text, "pass ") {
		t.Errorf("the log has a password:\n%s", text)
	}
}

// A file that is missing or wrong ends the start, with the key, the file and no password.
func TestWrongCredentialFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		replace(t, file, []byte(text))
		return file
	}
	for name, c := range map[string]struct{ text, want string }{
		"nopassword.yml": {"basic_auth: {username: me, password_file: none}", "targets-config-file: reading " + dir + "/none, which " + dir + "/nopassword.yml names: "},
		"noca.yml":       {"tls_config: {ca_file: none.pem}", "targets-config-file: " + dir + "/noca.yml: tls_config: .*none.pem"},
		"misplaced.yml":  {"basic_auth: planted", "targets-config-file: reading " + dir + "/misplaced.yml: "},
		"unknown.yml":    {"basic_auth: {username: me, passwrd: planted}", "targets-config-file: reading .*field passwrd not found"},
	} {
		text := refused(t, 0, "server", "--data-dir", t.TempDir(), "--listen", freeAddr(t), "--targets", "https://127.0.0.1:1",
			"--targets-config-file", write(name, c.text))
		says(t, text, c.want)
		if strings.Contains(text, "planted") {
			t.Errorf("%s: the password is in the message:\n%s", name, text)
		}
	}
}

// Passwords, tokens and secret addresses come from files. No answer, log or list of processes has them, also while the
// targets and webhooks fail.
func TestNoSecretIsShown(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(guarded.Close)
	for name, text := range map[string]string{
		"agents.yml": "basic_auth:\n  username: me\n  password: planted-1\nproxy_url: http://me:planted-2@127.0.0.1:1\n",
		"app.yml":    "authorization:\n  credentials_file: token\nhttp_headers:\n  X-Key:\n    secrets: [planted-3]\n",
		"token":      "planted-4",
		"hook":       "http://127.0.0.1:1/planted-5",
		"config.yml": "interval: 500ms\ntargets: ['https://127.0.0.1:1']\ntargets-config-file: " + at("agents.yml") + "\n" +
			"scrape: ['app=" + guarded.URL + "/metrics?token=planted-6']\nscrape-config-file: ['app=" + at("app.yml") + "']\n" +
			"alerting:\n  webhooks: ['file:" + at("hook") + "', 'http://127.0.0.1:1/planted-7?token=planted-7']\nlog: {level: debug}\n",
	} {
		replace(t, at(name), []byte(text))
	}
	s := start(t, "server", "--data-dir", t.TempDir(), "--config", at("config.yml"))
	base := "http://" + s.addr
	upIs(t, base, "job", "app", 0, "401 Unauthorized")
	upIs(t, base, "instance", "127.0.0.1:1", 0, "127.0.0.1:1")
	// A parameter of a target is part of its address, as in any Prometheus. The documentation says so.
	shown := map[string]string{"the log": strings.ReplaceAll(s.log.String(), "planted-6", "")}
	for _, path := range []string{"/api/v1/status/flags", "/api/v1/status/runtimeinfo", "/api/v1/alertmanagers", "/metrics"} {
		text, err := get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		shown[path] = text
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	shown["the command line"] = string(line)
	for _, path := range []string{"/api/v1/status/config", "/api/v1/targets"} {
		text, err := get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		shown[path] = strings.ReplaceAll(text, "planted-6", "")
	}
	for where, text := range shown {
		if i := strings.Index(text, "planted"); i >= 0 {
			t.Errorf("%s has a secret: ...%s", where, text[max(0, i-100):min(len(text), i+20)])
		}
	}
	for _, args := range [][]string{
		{"server", "--targets", "me:planted@127.0.0.1:1"}, {"server", "--scrape", "http://me:planted@127.0.0.1:1"},
		{"server", "--targets", "127.0.0.1:1", "--alerting.webhooks", "http://me:planted@127.0.0.1:1"},
		{"top", "--once", "--connect", "http://me:planted@127.0.0.1:1"}, {"analyze", "--server", "http://me:planted@127.0.0.1:1"},
	} {
		if text := refused(t, 0, args...); strings.Contains(text, "planted") {
			t.Errorf("%v: the message has the password:\n%s", args, text)
		}
	}
}
