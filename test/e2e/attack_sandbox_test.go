// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// roles are the commands that run as services, with what they need.
func roles(t *testing.T) map[string][]string {
	return map[string][]string{
		"agent":  nil,
		"up":     {"--data-dir", t.TempDir()},
		"server": {"--data-dir", t.TempDir(), "--targets", "127.0.0.1:1"},
	}
}

// opening is an attempt to open a file for writing.
func opening(t *testing.T, pid int, file string) unix.Errno {
	t.Helper()
	n := inject(t, pid, unix.SYS_OPENAT, strconv.Itoa(unix.AT_FDCWD), "s:"+file, strconv.Itoa(unix.O_WRONLY|unix.O_CLOEXEC), "0")
	return unix.Errno(max(0, -n))
}

// An attacker who controls a process of teescope tries to control the machine by files of root: the memory of root's
// processes, programs and settings of root, and places in which root creates files. An ordinary process of root may do
// all of it.
func TestAttackOnFilesOfRoot(t *testing.T) {
	victim := held(t, prog(t, "burn", "e2evictim"), "1", "0", "1").cmd.Process.Pid
	dir := t.TempDir()
	file := filepath.Join(dir, "program")
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	targets := []string{fmt.Sprintf("/proc/%d/mem", victim), file, "/proc/self/mem", "/proc/sys/kernel/core_pattern"}
	free := held(t, prog(t, "burn", "e2efree"), "1", "0", "1").cmd.Process.Pid
	for _, target := range targets {
		if errno := opening(t, free, target); errno != 0 {
			t.Errorf("an ordinary process of root may not write to %s: %v", target, errno)
		}
	}
	for command, args := range roles(t) {
		s := confined(t, command, args...)
		for role, pid := range s.processes(t) {
			for _, target := range targets {
				if errno := opening(t, pid, target); errno != unix.EACCES && errno != unix.EROFS && errno != unix.EPERM {
					t.Errorf("%s of %s opens %s for writing: %v", role, command, target, errno)
				}
			}
			if n := writes(t, pid, dir); n >= 0 {
				t.Errorf("%s of %s creates a file in a directory of root", role, command)
			}
		}
		s.stop(t)
	}
}

// With sandbox=required nothing runs without its sandboxes, and the message names what is missing.
func TestRequiredSandboxFailsClosed(t *testing.T) {
	t.Parallel()
	old := filepath.Join(programs, "oldkernel")
	for _, tt := range []struct {
		args []string
		says []string
	}{
		{[]string{old, binary, "agent"}, []string{`CONFIG_SECCOMP_FILTER`}},
		{[]string{old, binary, "server", "--data-dir", t.TempDir(), "--targets", "127.0.0.1:1"}, []string{`CONFIG_SECCOMP_FILTER`, `Landlock`}},
		{[]string{binary, "agent", "--user", "root"}, []string{`stays root`}},
		{[]string{binary, "agent", "--user", "no-such-user"}, []string{`no-such-user`, `--user`}},
	} {
		p := background(t, tt.args[0], append(tt.args[1:], "--listen", freeAddr(t), "--sandbox", "required")...)
		if err := p.ended(t, testLimit); err == nil {
			t.Errorf("%v runs without its sandboxes", tt.args)
		}
		says(t, p.log.String(), tt.says...)
	}
	for command, args := range roles(t) {
		confined(t, command, append(args, "--sandbox", "required")...).stop(t)
	}
}

// What root's teescope wrote in the data directory is given to the user of the process. A file that has another
// name elsewhere is not, and neither is a file of another program. A directory with links is refused: TestRootRefusesAnUnsafeDataDirectory.
func TestAttackOnTheOwnerOfFiles(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	linked := filepath.Join(elsewhere, "linked")
	for _, file := range []string{linked, filepath.Join(dir, "tsdb", "old"), filepath.Join(dir, "findings.json.bad"), filepath.Join(dir, "conf.d", "other")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(linked, filepath.Join(dir, "tsdb", "hard")); err != nil {
		t.Fatal(err)
	}
	confined(t, "server", "--data-dir", dir, "--targets", "127.0.0.1:1")
	for file, want := range map[string]uint32{
		linked: 0, elsewhere: 0, dir: serviceUser, filepath.Join(dir, "tsdb", "old"): serviceUser, filepath.Join(dir, "tsdb", "wal"): serviceUser,
		filepath.Join(dir, "findings.json.bad"): serviceUser, filepath.Join(dir, "conf.d"): 0, filepath.Join(dir, "conf.d", "other"): 0,
	} {
		var info unix.Stat_t
		if err := unix.Stat(file, &info); err != nil || info.Uid != want {
			t.Errorf("%s belongs to %d (%v), want %d", file, info.Uid, err, want)
		}
	}
}

// Root refuses the directory of another program and changes nothing in it.
func TestAttackOnTheDirectoryOfOthers(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "conf.d"), 0o750), os.WriteFile(filepath.Join(dir, "secret"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	says(t, refused(t, 0, "server", "--listen", freeAddr(t), "--data-dir", dir, "--targets", "127.0.0.1:1"),
		dir+" is not a data directory of teescope: it holds conf.d; choose an empty directory or a new one")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the directory now holds %v (%v)", entries, err)
	}
	for _, file := range []string{dir, filepath.Join(dir, "conf.d"), filepath.Join(dir, "secret")} {
		var info unix.Stat_t
		if err := unix.Stat(file, &info); err != nil || info.Uid != 0 {
			t.Errorf("%s belongs to %d (%v)", file, info.Uid, err)
		}
	}
}

// A process that another user starts with capabilities keeps its user.
func TestOtherUsersKeepTheirUser(t *testing.T) {
	p := background(t, "setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups", binary, "server",
		"--listen", "127.0.0.1:0", "--data-dir", filepath.Join(openDir(t), "data"), "--targets", "127.0.0.1:1", "--sandbox", "required")
	eventually(t, testLimit, "the server to be confined", func() error {
		if !regexp.MustCompile(`process confined.*seccomp`).MatchString(p.log.String()) {
			return fmt.Errorf("its log is %s", p.log.String())
		}
		return nil
	})
	for _, status := range threads(t, p.cmd.Process.Pid) {
		if !regexp.MustCompile(`(?m)^Uid:\s+1234\s+1234\s+1234\s+1234$`).MatchString(status) {
			t.Errorf("a thread has another user:\n%s", status)
		}
	}
}
