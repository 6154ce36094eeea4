// SPDX-License-Identifier: Apache-2.0

//go:build vm

package vm

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/testbed/machine"
)

// systemdFiles are what a machine needs to boot this machine's systemd with the units below and nothing else.
var systemdFiles = []string{"/lib/systemd/systemd", "/bin/systemctl", "/bin/systemd-sysusers", "/lib/systemd/systemd-shutdown"}

// targets are the units that every boot pulls in. Those of the distribution would start its services.
var targets = map[string]string{
	"default.target": "Requires=basic.target\nAfter=basic.target", "basic.target": "Requires=sysinit.target\nAfter=sysinit.target",
	"sysinit.target": "", "shutdown.target": "DefaultDependencies=no", "multi-user.target": "", "network.target": "",
	"network-online.target": "", "sockets.target": "", "timers.target": "", "paths.target": "", "slices.target": "",
	"local-fs.target": "", "umount.target": "DefaultDependencies=no",
}

// systemdMachine adds a file system with systemd, the binary and its units.
func systemdMachine(a *machine.Archive, files string) error {
	for _, file := range systemdFiles {
		if err := a.Tree(file, file); err != nil {
			return err
		}
	}
	for name, lines := range targets {
		a.Bytes("/etc/systemd/system/"+name, 0o644, []byte("[Unit]\n"+lines+"\n"))
	}
	units, err := filepath.Glob("../../deploy/systemd/*.service")
	if err != nil {
		return err
	}
	for _, unit := range units {
		a.File("/etc/systemd/system/"+filepath.Base(unit), unit)
		name := strings.TrimSuffix(filepath.Base(unit), ".service")
		// The logs are files, because nothing collects them here. A watchdog of a minute would make the test a minute longer.
		a.Bytes("/etc/systemd/system/"+filepath.Base(unit)+".d/test.conf", 0o644,
			[]byte("[Service]\nWatchdogSec=15s\nStandardOutput=append:/run/"+name+".log\nStandardError=inherit\n"))
	}
	a.File("/usr/lib/sysusers.d/teescope.conf", "../../deploy/systemd/teescope.sysusers.conf")
	a.Bytes("/etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\n"))
	a.Bytes("/etc/group", 0o644, []byte("root:x:0:\n"))
	a.Bytes("/etc/nsswitch.conf", 0o644, []byte("passwd: files\ngroup: files\n"))
	a.Bytes("/etc/os-release", 0o644, []byte("ID=teescope-test\n"))
	a.Bytes("/etc/machine-id", 0o644, []byte(strings.Repeat("5", 32)+"\n"))
	a.Bytes("/etc/teescope/server.env", 0o644, []byte("TEESCOPE_LISTEN=127.0.0.1:9751\nTEESCOPE_TARGETS=127.0.0.1:9750\nTEESCOPE_INTERVAL=1s\n"))
	for _, dir := range []string{"/var/lib", "/home", "/root", "/tmp", "/var/tmp"} {
		a.Dir(dir, 0o755)
	}
	a.File("/usr/local/bin/teescope", filepath.Join(files, "teescope"))
	a.File("/guest", filepath.Join(files, "guest"))
	return nil
}

// TestUnitsOfSystemd boots systemd and starts the units of deploy/systemd: they become ready, hold only what they say,
// and are started again when they hang.
func TestUnitsOfSystemd(t *testing.T) {
	files := image(t)
	m := machine.Machine{
		Kernel: kernel(t, kernels[1].version), Guest: filepath.Join(files, "init"), CPUs: 2, MemoryMiB: 1536,
		Init: []string{systemdFiles[0], "--log-target=console"},
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	var out, problems, console bytes.Buffer
	m.Console = &console
	began := time.Now()
	result, err := m.Run(ctx, machine.Command{
		Argv: []string{"/guest", "services"}, Env: []string{"HOME=/", "PATH=/bin:/usr/bin"}, Stdout: &out, Stderr: &problems,
		Files: func(a *machine.Archive) error { return systemdMachine(a, files) },
	})
	if err != nil || result.Exit != 0 {
		t.Fatalf("the guest ended with status %d (%v): %s\n%s\n%s", result.Exit, err, problems.String(), out.String(), console.String())
	}
	t.Logf("the machine ran for %v", time.Since(began).Round(100*time.Millisecond))
	r := sections(out.String())
	for unit, want := range map[string]struct{ caps, memory, role string }{
		"teescope-agent":  {"cap_bpf,cap_sys_ptrace,cap_dac_read_search", "536870912", "agent"},
		"teescope-server": {"", "2147483648", "server"},
		"teescope-up":     {"cap_bpf,cap_sys_ptrace,cap_dac_read_search", "2147483648", "up"},
	} {
		checkUnit(t, r, unit, want.memory)
		if got := r["stopped "+unit]; !strings.Contains(got, "Result=success") || !strings.Contains(got, "ExecMainStatus=0") {
			t.Errorf("%s ended with %q and logged:\n%s", unit, got, r["log of "+unit])
		}
		if log := r["log of "+unit]; strings.Contains(log, "level=ERROR") || !strings.Contains(log, `msg="privileges dropped" left=`+quoted(want.caps)) {
			t.Errorf("%s logged:\n%s", unit, log)
		}
		for _, mechanism := range []string{"user", "capabilities", "seccomp"} {
			if !strings.Contains(r[want.role+" metrics"], `teescope_sandbox{mechanism="`+mechanism+`"} 1`) {
				t.Errorf("%s is not confined by %s", unit, mechanism)
			}
		}
	}
	// The agent needs its probes for anything.
	if families := r.exposition(t, "agent metrics"); sum(families, "teescope_collector_success") != float64(len(families["teescope_collector_success"].GetMetric())) {
		t.Error("a collector of the agent failed")
	}
	if !strings.Contains(console.String(), "Watchdog timeout") {
		t.Errorf("systemd did not say that the agent hung:\n%s", console.String())
	}
}

func quoted(s string) string {
	if s == "" || strings.Contains(s, ",") && strings.ContainsAny(s, " \"=") {
		return strconv.Quote(s)
	}
	return s
}

// checkUnit compares what a unit's process holds with what the unit says.
func checkUnit(t *testing.T, r report, unit, memory string) {
	t.Helper()
	if r[unit+" memory.max"] != memory {
		t.Errorf("%s: memory.max is %q, want %s", unit, r[unit+" memory.max"], memory)
	}
	status := r[unit+" status"]
	if regexp.MustCompile(`(?m)^Uid:\t0\t|^Uid:(\t\d+)*\t0$`).MatchString(status) || !strings.Contains(status, "NoNewPrivs:\t1") ||
		!strings.Contains(status, "Seccomp:\t2") {
		t.Errorf("%s runs as:\n%s", unit, status)
	}
	if !regexp.MustCompile(`(?m)^\d+ \d+ \S+ \S+ / ro[, ]`).MatchString(r[unit+" mountinfo"]) {
		t.Errorf("%s: / is not read-only:\n%s", unit, r[unit+" mountinfo"])
	}
}

// The collectors of the agent need the probes.
func TestUnitsAreValid(t *testing.T) {
	units, err := filepath.Glob("../../deploy/systemd/*.service")
	if err != nil || len(units) != 3 {
		t.Fatalf("found the units %v (%v)", units, err)
	}
	doc, err := os.ReadFile("../../docs/user/systemd.md")
	if err != nil {
		t.Fatal(err)
	}
	levels := regexp.MustCompile("gives the agent (\\d\\.\\d), `up` (\\d\\.\\d) and the server (\\d\\.\\d)").FindSubmatch(doc)
	if levels == nil {
		t.Fatal("docs/user/systemd.md has no levels of exposure")
	}
	stated := map[string]string{
		"teescope-agent.service": string(levels[1]), "teescope-up.service": string(levels[2]), "teescope-server.service": string(levels[3]),
	}
	dir := t.TempDir()
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		// verify requires that the program exists.
		text = bytes.ReplaceAll(text, []byte("/usr/local/bin/teescope"), []byte("/bin/true"))
		copied := filepath.Join(dir, filepath.Base(unit))
		if err := os.WriteFile(copied, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("systemd-analyze", "verify", copied).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
		out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=30", copied).CombinedOutput()
		if err != nil {
			t.Errorf("%s is exposed to more than 3.0: %v\n%s", unit, err, out)
		}
		level := regexp.MustCompile(`level for \S+: (\d\.\d)`).FindSubmatch(out)
		if level == nil || string(level[1]) != stated[filepath.Base(unit)] {
			t.Errorf("%s: docs/user/systemd.md says %s\n%s", unit, stated[filepath.Base(unit)], out)
		}
	}
}
