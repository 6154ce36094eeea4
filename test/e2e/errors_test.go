// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// refused runs teescope in a way that must fail soon, and returns its output.
func refused(t *testing.T, as uint32, args ...string) string {
	t.Helper()
	cmd := exec.Command(binary, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Dir = openDir(t)
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir)
	if as != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: as, Gid: as}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() <= 0 {
			t.Errorf("teescope %s: ended with %v, want a non-zero exit status\n%s", strings.Join(args, " "), err, out.String())
		}
	case <-time.After(testLimit):
		cmd.Process.Kill()
		t.Fatalf("teescope %s: still runs (killed: %v)\n%s", strings.Join(args, " "), <-ended, out.String())
	}
	text := out.String()
	for _, bad := range []string{"goroutine ", "panic:", "failed to", "0x"} {
		if strings.Contains(text, bad) {
			t.Errorf("teescope %s: the message holds %q:\n%s", strings.Join(args, " "), bad, text)
		}
	}
	if n := strings.Count(text, "\n"); n > 12 {
		t.Errorf("teescope %s: %d lines of message:\n%s", strings.Join(args, " "), n, text)
	}
	return text
}

// says requires that a message matches each of these patterns, in any case.
func says(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?i)" + p).MatchString(text) {
			t.Errorf("the message does not match %q:\n%s", p, text)
		}
	}
}

// openDir makes a directory that everyone can write to. Those of t.TempDir are private.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(programs, "open-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// nobody: the user without any privilege.
const nobody = 65534

func TestNotRoot(t *testing.T) {
	for _, command := range []string{"agent", "up"} {
		text := refused(t, nobody, command, "--listen", freeAddr(t))
		// The message names the capability and the command that grants it.
		says(t, text, `CAP_BPF`, `CAP_PERFMON`, `setcap|sudo`)
	}
}

func TestServerNeedsNoPrivilege(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "data")
	addr := freeAddr(t)
	s := background(t, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", binary,
		"server", "--listen", addr, "--data-dir", dir, "--targets", "127.0.0.1:1")
	eventually(t, startWithin, "a server of nobody", func() error { _, err := get("http://" + addr + "/-/ready"); return err })
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.ended(t, testLimit); err != nil {
		t.Error(err)
	}
}

func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, args := range [][]string{
		{"agent"},
		{"up", "--data-dir", t.TempDir()},
		{"server", "--data-dir", t.TempDir(), "--targets", "127.0.0.1:1"},
	} {
		text := refused(t, 0, append(args, "--listen", l.Addr().String())...)
		says(t, text, regexp.QuoteMeta(l.Addr().String()), `in use|listening there`, `--listen`)
	}
}

func TestDataDirectoryNotWritable(t *testing.T) {
	dir := filepath.Join(openDir(t), "closed")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := refused(t, nobody, "server", "--listen", freeAddr(t), "--data-dir", dir, "--targets", "127.0.0.1:1")
	says(t, text, regexp.QuoteMeta(dir), `permission|writ`, `data.dir`)
}

func TestDataDirectoryIsAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	says(t, refused(t, 0, "up", "--listen", freeAddr(t), "--data-dir", file), regexp.QuoteMeta(file), `not a directory`)
}

func TestDataDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	start(t, "server", "--data-dir", dir, "--targets", "127.0.0.1:1")
	text := refused(t, 0, "server", "--listen", freeAddr(t), "--data-dir", dir, "--targets", "127.0.0.1:1")
	says(t, text, regexp.QuoteMeta(dir), `in use|another|lock`)
}

// A write-ahead log is damaged in the middle. The start repairs it and logs that, or fails with the name of the
// directory. It never panics and never continues silently.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, "up", "--data-dir", dir, "--interval", "1s")
	var segment string
	eventually(t, testLimit, "a write-ahead log under "+dir, func() error {
		for _, at := range []string{"wal", "*/wal"} {
			all, _ := filepath.Glob(filepath.Join(dir, at, "0*"))
			for _, segment = range all {
				if info, err := os.Stat(segment); err == nil && info.Size() >= 100_000 {
					return nil
				}
			}
		}
		return errors.New("it is empty")
	})
	first.cmd.Process.Kill()
	<-first.done
	data, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(data) / 2; i < len(data)/2+500; i++ {
		data[i] ^= 0x5a
	}
	if err := os.WriteFile(segment, data, 0o644); err != nil {
		t.Fatal(err)
	}
	second := start(t, "up", "--data-dir", dir, "--interval", "1s")
	says(t, second.log.String(), `corrupt|repair|damaged`)
	if strings.Contains(second.log.String(), "goroutine ") {
		t.Errorf("a stack trace:\n%s", second.log.String())
	}
}

func TestConfigurationErrorsAreAllListed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "teescope.yaml")
	text := "listen: 127.0.0.1:9750\nintervall: 5s\nworkloads:\n  max: many\nretention:\n  time: -3d\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out := refused(t, 0, "up", "--config", file)
	says(t, out,
		regexp.QuoteMeta(file)+`:2.*intervall`, // unknown key, with its line
		regexp.QuoteMeta(file)+`:4.*workloads\.max.*many`,
		regexp.QuoteMeta(file)+`:6.*retention\.time.*-3d`)
}

func TestWrongFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"up", "--no-such-flag"}, []string{`no-such-flag`}},
		{[]string{"upp"}, []string{`upp`}},
		{[]string{"server"}, []string{`targets`}},
		{[]string{"agent", "--watch", "comm=("}, []string{`watch`, `comm=\(`}},
		{[]string{"agent", "--watch", "colour=red"}, []string{`watch`, `colour`}},
		{[]string{"agent", "--workloads.max", "0"}, []string{`workloads\.max`, `1024`}},
		{[]string{"agent", "--listen", "nowhere"}, []string{`listen`, `nowhere`}},
		{[]string{"up", "--interval", "0s"}, []string{`interval`}},
		{[]string{"agent", "--config", "/nonexistent.yaml"}, []string{`/nonexistent\.yaml`, `no such file`}},
	} {
		says(t, refused(t, 0, c.args...), c.want...)
	}
}
