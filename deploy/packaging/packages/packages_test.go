// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// names are all files of a package.
var names = []string{
	"/etc/teescope/agent.env", "/etc/teescope/server.env", "/etc/teescope/up.env", "/usr/bin/teescope",
	"/usr/lib/systemd/system/teescope-agent.service", "/usr/lib/systemd/system/teescope-server.service", "/usr/lib/systemd/system/teescope-up.service",
	"/usr/lib/sysusers.d/teescope.conf", "/usr/share/bash-completion/completions/teescope", "/usr/share/doc/teescope/copyright",
	"/usr/share/fish/vendor_completions.d/teescope.fish", "/usr/share/man/man1/teescope.1", "/usr/share/zsh/vendor-completions/_teescope",
}

// build writes the packages of a small program, and returns them by ending.
func build(t *testing.T, version string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if err := os.WriteFile(filepath.Join(dir, shell), []byte("# "+shell+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const self = "/bin/true" // a small program of this machine
	if err := write(self, version, "../../..", dir, dir, time.Unix(1_700_000_000, 0).UTC()); err != nil {
		t.Fatal(err)
	}
	arch, err := architecture(self)
	if err != nil {
		t.Fatal(err)
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
	return map[string]string{
		"deb": filepath.Join(dir, "teescope_"+version+"_"+arch+".deb"), "rpm": filepath.Join(dir, "teescope-"+version+"-1."+machine+".rpm"),
	}
}

func TestTheSameBytes(t *testing.T) {
	first, second := build(t, "1.2.3"), build(t, "1.2.3")
	for kind := range first {
		a, err := os.ReadFile(first[kind])
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(second[kind])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("two builds of the %s differ", kind)
		}
	}
}

// run runs a tool of a system.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// installed lists the files below a directory, without those of the package system.
func installed(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		at := strings.TrimPrefix(name, root)
		if strings.HasPrefix(at, "/var/lib/dpkg") || strings.HasPrefix(at, "/var/lib/rpm") || strings.HasPrefix(at, "/var/log") {
			return nil
		}
		if err == nil && !d.IsDir() {
			all = append(all, at)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDpkg installs into an empty directory with Debian's own dpkg, upgrades, removes and purges.
func TestDpkg(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("there is no dpkg")
	}
	root := t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/updates", "var/lib/dpkg/info", "var/log"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) string {
		t.Helper()
		return run(t, "dpkg", append([]string{"--root=" + root, "--force-script-chrootless", "--force-not-root", "--log=" + root + "/var/log/dpkg.log"}, args...)...)
	}
	dpkg("--install", build(t, "1.2.3")["deb"])
	if got := installed(t, root); !slices.Equal(got, names) {
		t.Errorf("installed %q, want %q", got, names)
	}
	unit, err := os.ReadFile(root + "/usr/lib/systemd/system/teescope-agent.service")
	if err != nil || !bytes.Contains(unit, []byte("ExecStart=/usr/bin/teescope agent\n")) {
		t.Errorf("the unit is %s, %v", unit, err)
	}
	if out := dpkg("--verify", "teescope"); out != "" {
		t.Errorf("files differ from their sums:\n%s", out)
	}
	// A changed configuration stays, and so does the database.
	for name, text := range map[string]string{"/etc/teescope/agent.env": "TEESCOPE_INTERVAL=1s\n", "/etc/teescope/own.pem": "x", "/var/lib/teescope/data": "x"} {
		if err := os.MkdirAll(filepath.Dir(root+name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dpkg("--force-confold", "--install", build(t, "1.2.4")["deb"])
	if text, err := os.ReadFile(root + "/etc/teescope/agent.env"); err != nil || string(text) != "TEESCOPE_INTERVAL=1s\n" {
		t.Errorf("the configuration is %q, %v", text, err)
	}
	dpkg("--remove", "teescope")
	if got := installed(t, root); !slices.Equal(got, []string{"/etc/teescope/agent.env", "/etc/teescope/own.pem", "/etc/teescope/server.env", "/etc/teescope/up.env", "/var/lib/teescope/data"}) {
		t.Errorf("after the removal: %q", got)
	}
	dpkg("--purge", "teescope")
	if got := installed(t, root); !slices.Equal(got, []string{"/etc/teescope/own.pem"}) {
		t.Errorf("after the purge: %q", got)
	}
}

// TestRPM does the same with rpm, where there is one.
func TestRPM(t *testing.T) {
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Skip("there is no rpm")
	}
	root := t.TempDir()
	rpm := func(args ...string) string {
		t.Helper()
		return run(t, "rpm", append([]string{"--root", root, "--dbpath", "/var/lib/rpm"}, args...)...)
	}
	rpm("--install", "--nodeps", "--noscripts", build(t, "1.2.3")["rpm"])
	if got := installed(t, root); !slices.Equal(got, names) {
		t.Errorf("installed %q, want %q", got, names)
	}
	if out := rpm("--verify", "--nouser", "--nogroup", "teescope"); out != "" {
		t.Errorf("files differ:\n%s", out)
	}
	if out := rpm("--query", "--configfiles", "teescope"); out != strings.Join(names[:3], "\n")+"\n" {
		t.Errorf("configurations: %s", out)
	}
	rpm("--erase", "--noscripts", "teescope")
	if got := installed(t, root); len(got) > 0 {
		t.Errorf("after the removal: %q", got)
	}
}

// TestSignature signs checksums as the release does, and verifies them as docs/user/fleet.md says. Changed ones are refused.
func TestSignature(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("there is no ssh-keygen")
	}
	dir := t.TempDir()
	key, sums, signers := filepath.Join(dir, "key"), filepath.Join(dir, "SHA256SUMS"), filepath.Join(dir, "teescope.signers")
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{sums: []byte("0123  teescope.deb\n"), signers: append([]byte("release "), public...)} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verify := func(text string) error {
		c := exec.Command("ssh-keygen", "-Y", "verify", "-f", signers, "-I", "release", "-n", "teescope", "-s", sums+".sig")
		c.Stdin = strings.NewReader(text)
		return c.Run()
	}
	for range 2 { // a release may be made again
		run(t, "make", "-C", "../../..", "sign", "SIGN_KEY="+key, "SUMS="+sums)
	}
	if err := verify("0123  teescope.deb\n"); err != nil {
		t.Errorf("the signature is refused: %v", err)
	}
	if verify("0124  teescope.deb\n") == nil {
		t.Error("changed checksums are accepted")
	}
}

// TestScripts runs the scripts as both systems do, in a directory of their own.
func TestScripts(t *testing.T) {
	all, err := scripts("scripts")
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, []string{"postinst", "postrm", "prerm"}) {
		t.Errorf("scripts %q", got)
	}
	for name := range all {
		run(t, "sh", "-n", filepath.Join("scripts", name))
	}
}

func TestManual(t *testing.T) {
	page, err := manual([]byte("# The command line\n\n## teescope top\n\n```text\n.hidden --flag 'a\\b'\n```\n"))
	if err != nil || !strings.Contains(string(page), ".SH TEESCOPE TOP\n.nf\n\\&.hidden \\-\\-flag 'a\\eb'\n.fi\n") {
		t.Errorf("%s, %v", page, err)
	}
	for _, bad := range []string{"", "## a\n```text\n"} {
		if _, err := manual([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	reference, err := os.ReadFile("../../../docs/user/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	if page, err = manual(reference); err != nil || bytes.Count(page, []byte(".SH ")) < 10 {
		t.Errorf("the page of the reference has %d sections, %v", bytes.Count(page, []byte(".SH ")), err)
	}
}

func TestVersions(t *testing.T) {
	for _, bad := range []string{"", "v1.2.3", "1.2.3-rc1", "1.2.3\nDepends: x"} {
		if err := write("x", bad, "", "", t.TempDir(), time.Time{}); err == nil || !strings.Contains(err.Error(), "not numbers and dots") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
