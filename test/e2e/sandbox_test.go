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
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Remaining capabilities, as /proc/PID/status shows them.
const (
	watchers = "0000008000080004" // CAP_BPF, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH
	servers  = "0000000000000004" // CAP_DAC_READ_SEARCH
	starters = "000000c000080404" // those of both, CAP_PERFMON and CAP_NET_BIND_SERVICE
	none     = "0000000000000000"
)

// serviceUser is the default of the key user.
const serviceUser = 65521

// confined starts a command and waits until it reports that it has dropped the privileges of the start.
func confined(t *testing.T, command string, args ...string) *teescope {
	t.Helper()
	s := start(t, command, args...)
	eventually(t, testLimit, s.name+" to be confined", func() error { return allConfined(s.scrape(t)) })
	return s
}

func allConfined(s samples) error {
	for _, one := range s.all {
		if one.matches("teescope_sandbox", nil) && one.labels["mechanism"] != "landlock" && one.value != 1 {
			return fmt.Errorf("teescope_sandbox%v is %v", one.labels, one.value)
		}
	}
	return nil
}

// processes returns the processes of a running teescope by their roles: up has three.
func (s *teescope) processes(t *testing.T) map[string]int {
	t.Helper()
	all, err := s.running(t)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// running returns an error when a process is missing.
func (s *teescope) running(t *testing.T) (map[string]int, error) {
	t.Helper()
	pid := s.cmd.Process.Pid
	_, command, _ := strings.Cut(s.name, " ")
	all := map[string]int{command: pid}
	for _, child := range childrenOf(t, pid) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
		if err != nil {
			continue // it has ended
		}
		if words := strings.Split(string(line), "\x00"); len(words) > 1 {
			all[strings.TrimPrefix(words[1], "up-")] = child
		}
	}
	if want := map[string]int{"up": 3}[command]; len(all) != max(1, want) {
		return nil, fmt.Errorf("%s has the processes %v", s.name, all)
	}
	return all, nil
}

// childrenOf lists the children of a process.
func childrenOf(t *testing.T, pid int) (all []int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, _ := os.ReadFile(file) // a thread may end
		for _, word := range strings.Fields(string(data)) {
			if n, err := strconv.Atoi(word); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
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
	for command, args := range roles(t) {
		s := confined(t, command, args...)
		var load sync.WaitGroup // creates new threads
		for range 16 {
			load.Go(func() { _, _ = get("http://" + s.addr + "/metrics") })
		}
		load.Wait()
		for role, pid := range s.processes(t) {
			want := map[string]string{"agent": watchers, "server": servers, "up": starters}[role]
			eventually(t, testLimit, role+" of "+command+" to be confined", func() error {
				for _, status := range threads(t, pid) {
					if err := confinedAs(status, want); err != nil {
						return err
					}
				}
				return nil
			})
		}
		want := map[string]float64{"agent": 0, "server": 1, "up": 1}[command]
		wantExactly(t, command+": landlock", s.scrape(t).sum("teescope_sandbox", "mechanism", "landlock"), want)
	}
}

// confinedAs compares the status of a thread. A supervisor uses one of its capabilities, and passes the others on.
func confinedAs(status, capabilities string) error {
	effective := capabilities
	if capabilities == starters {
		effective = servers
	}
	for field, want := range map[string]string{
		"CapEff": effective, "CapPrm": capabilities, "CapInh": none, "CapAmb": none,
		"NoNewPrivs": "1", "Seccomp": "2", "Groups": "",
		"Uid": "65521\\s+65521\\s+65521\\s+65521", "Gid": "65521\\s+65521\\s+65521\\s+65521",
	} {
		if !regexp.MustCompile(`(?m)^` + field + `:[\t ]*` + want + `[\t ]*$`).MatchString(status) {
			return fmt.Errorf("%s is not %s in a thread:\n%s", field, want, status)
		}
	}
	return nil
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
	starts  bool // a supervisor may do it, because it starts others
}

func attempts() []attempt {
	own := strconv.Itoa(os.Getpid())
	protection := strconv.Itoa(unix.PROT_READ | unix.PROT_EXEC)
	private := strconv.Itoa(unix.MAP_PRIVATE | unix.MAP_ANONYMOUS)
	return []attempt{
		// Calls with another error in an unconfined process change nothing.
		{"execute a program", unix.EPERM, unix.SYS_EXECVE, []string{"s:/nonexistent", "0", "0"}, true},
		{"make a process", unix.EPERM, unix.SYS_CLONE, []string{strconv.Itoa(unix.CLONE_SIGHAND)}, true},
		{"make a process in the new way", unix.ENOSYS, unix.SYS_CLONE3, []string{"0", "0"}, false},
		{"signal this test", unix.EPERM, unix.SYS_KILL, []string{own, "0"}, true},
		{"map memory to execute", unix.EPERM, unix.SYS_MMAP, []string{"0", "4096", protection, private, "-1", "0"}, true},
		{"open a unix socket", unix.EAFNOSUPPORT, unix.SYS_SOCKET, []string{strconv.Itoa(unix.AF_UNIX), "1", "0"}, true},
		{"open a pair of sockets", unix.EAFNOSUPPORT, unix.SYS_SOCKETPAIR, []string{strconv.Itoa(unix.AF_UNIX), "1", "0", "0"}, true},
		{"open a packet socket", unix.EAFNOSUPPORT, unix.SYS_SOCKET, []string{strconv.Itoa(unix.AF_PACKET), "3", "0"}, false},
		{"unshare", unix.EPERM, unix.SYS_UNSHARE, []string{"0"}, false},
		{"ask for its personality", unix.EPERM, unix.SYS_PERSONALITY, []string{"0xffffffff"}, false},
		{"watch its own page faults", unix.EPERM, unix.SYS_USERFAULTFD, []string{"-1"}, false},
		{"mount", unix.EPERM, unix.SYS_MOUNT, []string{"0", "0", "s:tmpfs", "0", "0"}, false},
		{"load a BPF program", unix.EPERM, unix.SYS_BPF, []string{strconv.Itoa(unix.BPF_PROG_LOAD), "0", "0"}, true},
		{"trace", unix.EPERM, unix.SYS_PTRACE, []string{"-1", "0"}, false},
		{"write to the memory of a process", unix.EPERM, unix.SYS_PROCESS_VM_WRITEV, []string{"-1", "0", "0", "0", "0", "0"}, false},
		{"load another kernel", unix.EPERM, unix.SYS_KEXEC_LOAD, []string{"0", "0", "0", "-1"}, false},
		{"load a module", unix.EPERM, unix.SYS_FINIT_MODULE, []string{"-1", "s:", "0"}, false},
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
	for command, args := range roles(t) {
		s := confined(t, command, args...)
		for role, pid := range s.processes(t) {
			refuses(t, command, role, pid, outside, args)
		}
	}
}

// refuses checks one process of a command.
func refuses(t *testing.T, command, role string, pid int, outside string, args []string) {
	t.Helper()
	of := command + "'s " + role
	for _, a := range attempts() {
		if n := inject(t, pid, a.call, a.args...); n != -int(a.refused) && (!a.starts || role != "up") {
			t.Errorf("%s may %s: %d, want %d", of, a.what, n, -int(a.refused))
		}
	}
	if n := inject(t, pid, unix.SYS_OPENAT, strconv.Itoa(unix.AT_FDCWD), "s:/etc/shadow", "0"); n < 0 {
		t.Errorf("%s cannot read: %v", of, unix.Errno(-n))
	}
	if n := inject(t, pid, unix.SYS_KILL, strconv.Itoa(pid), "0"); n != 0 {
		t.Errorf("%s cannot signal itself: %v", of, unix.Errno(-n))
	}
	if role == "up" {
		return
	}
	mayWatch(t, role, pid)
	mayWrite(t, role, pid, outside, args)
}

// mayWatch requires that only a server cannot read BPF maps and create perf events. Invalid arguments cause other errors.
func mayWatch(t *testing.T, command string, pid int) {
	t.Helper()
	for call, first := range map[int]int{unix.SYS_BPF: unix.BPF_MAP_LOOKUP_ELEM, unix.SYS_PERF_EVENT_OPEN: -1, unix.SYS_PROCESS_VM_READV: -1} {
		n := inject(t, pid, call, strconv.Itoa(first), "0", "-1", "0", "0", "-1")
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
		if n := writes(t, pid, filepath.Join(args[1], "tsdb", "wal")); n < 0 {
			t.Errorf("%s cannot write to its database: %v", command, unix.Errno(-n))
		}
	}
}

// Root follows no link to a log on another disk. A log that is mounted there works.
func TestServerWithItsLogElsewhere(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	log := filepath.Join(dir, "tsdb", "wal")
	if err := errors.Join(os.Mkdir(filepath.Dir(log), 0o755), os.Symlink(elsewhere, log)); err != nil {
		t.Fatal(err)
	}
	says(t, refused(t, 0, "server", "--listen", freeAddr(t), "--data-dir", dir, "--targets", "127.0.0.1:1"), "tsdb/wal is a link", "mount --bind")
	if err := errors.Join(os.Remove(log), os.Mkdir(log, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(elsewhere, log, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(log, unix.MNT_DETACH) })
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
