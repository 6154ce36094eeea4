// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Remaining capabilities, as /proc/PID/status shows them.
const (
	watchers = "0000008000080004" // CAP_BPF, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH
	servers  = "0000000000000004" // CAP_DAC_READ_SEARCH
	none     = "0000000000000000"
)

// serviceUser is the default of the key user.
const serviceUser = 65521

// confined starts a command and waits until it reports that it has dropped the privileges of the start.
func confined(t *testing.T, command string, args ...string) *teescope {
	t.Helper()
	s := start(t, command, args...)
	eventually(t, testLimit, s.name+" to be confined", func() error { return settled(s.scrape(t)) })
	return s
}

func settled(s samples) error {
	if s.sum("teescope_sandbox", "mechanism", "seccomp") != 1 {
		return fmt.Errorf("teescope_sandbox is %v", s.by("mechanism", "teescope_sandbox"))
	}
	return nil
}

// threads reads the status of every thread of a process.
func threads(t *testing.T, pid int) []string {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d threads (%v): too few for a Go program", len(files), err)
	}
	var all []string
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil { // a thread may end
			all = append(all, string(data))
		}
	}
	return all
}

// The kernel's status of every thread agrees with the process' metric.
func TestEveryThreadIsConfined(t *testing.T) {
	for command, tt := range map[string]struct {
		args         []string
		capabilities string
		landlock     float64
	}{
		"agent":  {nil, watchers, 0},
		"up":     {[]string{"--data-dir", t.TempDir()}, watchers, 0},
		"server": {[]string{"--data-dir", t.TempDir(), "--targets", "127.0.0.1:1"}, servers, 1},
	} {
		s := confined(t, command, tt.args...)
		var load sync.WaitGroup // creates new threads
		for range 16 {
			load.Go(func() { _, _ = get("http://" + s.addr + "/metrics") })
		}
		load.Wait()
		for _, status := range threads(t, s.cmd.Process.Pid) {
			for field, want := range map[string]string{
				"CapEff": tt.capabilities, "CapPrm": tt.capabilities, "CapInh": none, "CapAmb": none,
				"NoNewPrivs": "1", "Seccomp": "2", "Groups": "",
				"Uid": "65521\\s+65521\\s+65521\\s+65521", "Gid": "65521\\s+65521\\s+65521\\s+65521",
			} {
				if !regexp.MustCompile(`(?m)^` + field + `:\s*` + want + `\s*$`).MatchString(status) {
					t.Errorf("%s: %s is not %s in a thread:\n%s", command, field, want, status)
				}
			}
		}
		now := s.scrape(t)
		wantExactly(t, command+": capabilities", now.sum("teescope_sandbox", "mechanism", "capabilities"), 1)
		wantExactly(t, command+": landlock", now.sum("teescope_sandbox", "mechanism", "landlock"), tt.landlock)
	}
}

// inject makes a process execute a system call. A negative result is an error number.
func inject(t *testing.T, pid int, call int, args ...string) int {
	t.Helper()
	words := append([]string{strconv.Itoa(pid), strconv.Itoa(call)}, args...)
	n, err := strconv.Atoi(strings.TrimSpace(run(t, filepath.Join(programs, "inject"), words...)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// writes makes a process open a file for writing, in a directory.
func writes(t *testing.T, pid int, dir string) int {
	t.Helper()
	flags := unix.O_WRONLY | unix.O_CREAT | unix.O_CLOEXEC
	name := "s:" + filepath.Join(dir, fmt.Sprintf("written-%d", pid))
	return inject(t, pid, unix.SYS_OPENAT, strconv.Itoa(unix.AT_FDCWD), name, strconv.Itoa(flags), "0600")
}

// attempt is a system call that any process may make, and its error in a confined one.
type attempt struct {
	what    string
	refused unix.Errno
	call    int
	args    []string
}

func attempts() []attempt {
	own := strconv.Itoa(os.Getpid())
	protection := strconv.Itoa(unix.PROT_READ | unix.PROT_EXEC)
	private := strconv.Itoa(unix.MAP_PRIVATE | unix.MAP_ANONYMOUS)
	return []attempt{
		// Calls with another error in an unconfined process change nothing.
		{"execute a program", unix.EPERM, unix.SYS_EXECVE, []string{"s:/nonexistent", "0", "0"}},
		{"make a process", unix.EPERM, unix.SYS_CLONE, []string{strconv.Itoa(unix.CLONE_SIGHAND)}},
		{"make a process in the new way", unix.ENOSYS, unix.SYS_CLONE3, []string{"0", "0"}},
		{"signal this test", unix.EPERM, unix.SYS_KILL, []string{own, "0"}},
		{"map memory to execute", unix.EPERM, unix.SYS_MMAP, []string{"0", "4096", protection, private, "-1", "0"}},
		{"open a unix socket", unix.EAFNOSUPPORT, unix.SYS_SOCKET, []string{strconv.Itoa(unix.AF_UNIX), "1", "0"}},
		{"open a pair of sockets", unix.EAFNOSUPPORT, unix.SYS_SOCKETPAIR, []string{strconv.Itoa(unix.AF_UNIX), "1", "0", "0"}},
		{"open a packet socket", unix.EAFNOSUPPORT, unix.SYS_SOCKET, []string{strconv.Itoa(unix.AF_PACKET), "3", "0"}},
		{"unshare", unix.EPERM, unix.SYS_UNSHARE, []string{"0"}},
		{"ask for its personality", unix.EPERM, unix.SYS_PERSONALITY, []string{"0xffffffff"}},
		{"watch its own page faults", unix.EPERM, unix.SYS_USERFAULTFD, []string{"-1"}},
		{"mount", unix.EPERM, unix.SYS_MOUNT, []string{"0", "0", "s:tmpfs", "0", "0"}},
		{"load a module", unix.EPERM, unix.SYS_FINIT_MODULE, []string{"-1", "s:", "0"}},
	}
}

// The calls fail in the running process and succeed in an unconfined one; otherwise the test would prove nothing.
func TestRefusedSystemCalls(t *testing.T) {
	free := held(t, prog(t, "burn", "e2efree"), "1", "0", "1").cmd.Process.Pid
	for _, a := range attempts() {
		if n := inject(t, free, a.call, a.args...); n == -int(a.refused) {
			t.Errorf("an ordinary process may not %s either", a.what)
		}
	}
	outside := t.TempDir()
	if n := writes(t, free, outside); n < 0 {
		t.Errorf("an ordinary process cannot write: %v", unix.Errno(-n))
	}
	for command, args := range map[string][]string{
		"agent":  nil,
		"up":     {"--data-dir", t.TempDir()},
		"server": {"--data-dir", t.TempDir(), "--targets", "127.0.0.1:1"},
	} {
		s := confined(t, command, args...)
		pid := s.cmd.Process.Pid
		for _, a := range attempts() {
			if n := inject(t, pid, a.call, a.args...); n != -int(a.refused) {
				t.Errorf("%s may %s: %d, want %d", command, a.what, n, -int(a.refused))
			}
		}
		if n := inject(t, pid, unix.SYS_OPENAT, strconv.Itoa(unix.AT_FDCWD), "s:/etc/shadow", "0"); n < 0 {
			t.Errorf("%s cannot read: %v", command, unix.Errno(-n))
		}
		if n := inject(t, pid, unix.SYS_KILL, strconv.Itoa(pid), "0"); n != 0 {
			t.Errorf("%s cannot signal itself: %v", command, unix.Errno(-n))
		}
		mayWatch(t, command, pid)
		mayWrite(t, command, pid, outside, args)
	}
}

// mayWatch requires that only a server cannot create BPF programs and perf events. Invalid arguments cause other errors.
func mayWatch(t *testing.T, command string, pid int) {
	t.Helper()
	for _, call := range []int{unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_PROCESS_VM_READV} {
		n := inject(t, pid, call, "-1", "0", "-1", "0", "0", "-1")
		if refused := n == -int(unix.EPERM); refused != (command == "server") {
			t.Errorf("%s: system call %d returns %d", command, call, n)
		}
	}
}

// mayWrite requires that an agent cannot write anywhere, and a server only in its data directory. Parts of that may be
// elsewhere.
func mayWrite(t *testing.T, command string, pid int, outside string, args []string) {
	t.Helper()
	switch command {
	case "agent":
		if n := writes(t, pid, outside); n != -int(unix.EROFS) {
			t.Errorf("the agent writes to a file: %d", n)
		}
		if n := inject(t, pid, unix.SYS_MKDIR, "s:"+filepath.Join(outside, "agents"), "0700"); n != -int(unix.EROFS) {
			t.Errorf("the agent makes a directory: %d", n)
		}
	case "server":
		if n := writes(t, pid, outside); n != -int(unix.EACCES) {
			t.Errorf("the server writes outside: %d", n)
		}
		fallthrough
	case "up":
		if n := writes(t, pid, filepath.Join(args[1], "tsdb", "wal")); n < 0 {
			t.Errorf("%s cannot write to its database: %v", command, unix.Errno(-n))
		}
	}
}

// A log on another disk, which is mounted there, continues to work.
func TestServerWithItsLogElsewhere(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	log := filepath.Join(dir, "tsdb", "wal")
	if err := os.MkdirAll(log, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(elsewhere, log, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(log, unix.MNT_DETACH) })
	// Root follows no link when it gives the directory to the service user.
	says(t, refused(t, 0, "server", "--listen", freeAddr(t), "--data-dir", dir, "--targets", "127.0.0.1:1"), regexp.QuoteMeta(elsewhere)+`|tsdb/wal`, `chown -R 65521`)
	run(t, "chown", "-R", strconv.Itoa(serviceUser), elsewhere)
	s := confined(t, "server", "--data-dir", dir, "--targets", "127.0.0.1:1")
	if n := writes(t, s.cmd.Process.Pid, elsewhere); n < 0 {
		t.Errorf("the server cannot write to its log: %v", unix.Errno(-n))
	}
}

// Without Landlock and seccomp everything works, and their absence is reported.
func TestKernelWithoutSandboxes(t *testing.T) {
	for _, args := range [][]string{
		{"agent"},
		{"server", "--data-dir", t.TempDir(), "--targets", "127.0.0.1:1"},
	} {
		addr := freeAddr(t)
		p := background(t, filepath.Join(programs, "oldkernel"), append([]string{binary, args[0], "--listen", addr}, args[1:]...)...)
		s := &teescope{process: p, addr: addr}
		eventually(t, startWithin, args[0]+" to drop its capabilities", func() error {
			body, err := get("http://" + addr + "/metrics")
			if err == nil && !strings.Contains(body, "teescope_sandbox{mechanism=\"capabilities\"} 1\n") {
				err = fmt.Errorf("it has not yet dropped its privileges")
			}
			return err
		})
		now := s.scrape(t)
		wantExactly(t, args[0]+": landlock", now.sum("teescope_sandbox", "mechanism", "landlock"), 0)
		wantExactly(t, args[0]+": seccomp", now.sum("teescope_sandbox", "mechanism", "seccomp"), 0)
		says(t, s.log.String(), `not confined.*seccomp.*CONFIG_SECCOMP_FILTER`, `not confined.*landlock`)
		s.stop(t)
	}
	report, _, _ := check(t, filepath.Join(programs, "oldkernel"))
	for _, c := range report.Checks {
		if c.Name == "landlock" && (c.Status != "missing" || c.Required) {
			t.Errorf("check says of Landlock: %+v", c)
		}
	}
}
