// SPDX-License-Identifier: Apache-2.0

package privilege

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// onThreads starts threads before f is called, and then runs try on each of them.
func onThreads(t *testing.T, f func(), try func() error) {
	t.Helper()
	const threads = 8
	var started, done sync.WaitGroup
	confined := make(chan struct{})
	errs := make([]error, threads)
	started.Add(threads)
	for i := range threads {
		done.Go(func() {
			runtime.LockOSThread()
			started.Done()
			<-confined
			errs[i] = try()
		})
	}
	started.Wait()
	f()
	close(confined)
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// want returns an error when a call has an unexpected result.
func want(what string, got, want error) error {
	if !errors.Is(got, want) {
		return fmt.Errorf("%s: %v, want %v", what, got, want)
	}
	return nil
}

func write(dir string) error {
	f, err := os.CreateTemp(dir, "write-*")
	if err == nil {
		f.Close()
	}
	return err
}

func TestLandlockConfinesAServer(t *testing.T) {
	if _, err := LandlockVersion(); errors.Is(err, errUnsupported) {
		t.Skip(err)
	}
	inChild(t, func(t *testing.T) {
		inside, outside := directory(t), directory(t)
		link := filepath.Join(inside, "link") // to another disk
		beyond := directory(t)
		if err := os.Symlink(beyond, link); err != nil {
			t.Fatal(err)
		}
		onThreads(t, func() {
			if err := Landlock(Server, []string{inside, link, filepath.Join(inside, "none")}); err != nil {
				t.Fatal(err)
			}
		}, func() error {
			_, reading := os.ReadFile(os.Args[0])
			return errors.Join(
				want("writing inside", write(inside), nil),
				want("writing by a link that is given", write(link), nil),
				want("writing outside", write(outside), unix.EACCES),
				want("reading outside", reading, nil),
				want("executing", unix.Exec("/proc/self/exe", []string{"again", "-no-such-flag"}, nil), unix.EACCES),
			)
		})
		if err := errors.Join(
			os.Mkdir(filepath.Join(inside, "a"), 0o700),
			os.Rename(filepath.Join(inside, "a"), filepath.Join(inside, "b")),
			os.Remove(filepath.Join(inside, "b")),
		); err != nil {
			t.Errorf("what a database does inside: %v", err)
		}
	})
}

// The test shows why a process that watches others is not confined by Landlock. When it fails, the kernel has changed,
// and all commands can use Landlock.
func TestLandlockHidesOtherProcesses(t *testing.T) {
	for _, r := range []Role{Supervisor, Agent} {
		if err := Landlock(r, nil); !errors.Is(err, ErrWatches) {
			t.Errorf("Landlock(%d) = %v, want %v", r, err, ErrWatches)
		}
	}
	if _, err := LandlockVersion(); errors.Is(err, errUnsupported) {
		t.Skip(err)
	}
	inChild(t, func(t *testing.T) {
		exe := fmt.Sprintf("/proc/%d/exe", os.Getppid())
		if _, err := os.Readlink(exe); err != nil {
			t.Fatal(err)
		}
		if err := Landlock(Server, []string{"/"}); err != nil { // all files may be written, and reading still fails
			t.Fatal(err)
		}
		if _, err := os.Readlink(exe); !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
			t.Errorf("reading %s: %v", exe, err)
		}
	})
}

func socket(family int) error {
	fd, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
	if err == nil {
		_ = unix.Close(fd) // nothing was written
	}
	return err
}

func mapped(protection int) error {
	m, err := unix.Mmap(-1, 0, os.Getpagesize(), protection, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err == nil {
		err = unix.Munmap(m)
	}
	return err
}

func TestSeccompRefusesWhatARoleDoesNotNeed(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("there is no filter for this processor")
	}
	for role, expect := range map[Role]struct{ write, bpf error }{
		Agent:  {write: unix.EROFS, bpf: unix.EINVAL},
		Server: {write: nil, bpf: unix.EPERM},
	} {
		t.Run(fmt.Sprint(int(role)), func(t *testing.T) {
			inChild(t, func(t *testing.T) {
				dir := directory(t)
				onThreads(t, func() {
					if _, err := Drop(role); err != nil {
						t.Fatal(err)
					}
					if err := Seccomp(role); err != nil {
						t.Fatal(err)
					}
				}, func() error {
					_, _, bpf := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_LOOKUP_ELEM, 0, 0) // of a descriptor that is not a map
					_, _, attaching := unix.Syscall(unix.SYS_BPF, unix.BPF_RAW_TRACEPOINT_OPEN, 0, 0)
					_, _, loading := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, 0, 0)
					_, _, newer := unix.Syscall(999, 0, 0, 0)
					_, reading := os.ReadFile("/proc/self/status")
					return errors.Join(
						want("writing", write(dir), expect.write),
						want("bpf", bpf, expect.bpf),
						want("attaching a program again", attaching, expect.bpf),
						want("loading a program", loading, unix.EPERM),
						want("a call of the future", newer, unix.ENOSYS),
						want("reading", reading, nil),
						want("executing", unix.Exec("/proc/self/exe", []string{"again", "-no-such-flag"}, nil), unix.EPERM),
						want("unshare", unix.Unshare(0), unix.EPERM),
						want("a signal to the parent", unix.Kill(os.Getppid(), 0), unix.EPERM),
						want("a signal to itself", unix.Kill(os.Getpid(), 0), nil),
						want("a packet socket", socket(unix.AF_PACKET), unix.EAFNOSUPPORT),
						want("a unix socket", socket(unix.AF_UNIX), unix.EAFNOSUPPORT),
						want("an Internet socket", socket(unix.AF_INET), nil),
						want("memory", mapped(unix.PROT_READ|unix.PROT_WRITE), nil),
						want("memory to execute", mapped(unix.PROT_READ|unix.PROT_EXEC), unix.EPERM),
					)
				})
			})
		})
	}
}

// A supervisor starts programs and signals them, as before. It refuses what neither it nor they need.
func TestSeccompOfASupervisor(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("there is no filter for this processor")
	}
	inChild(t, func(t *testing.T) {
		onThreads(t, func() {
			if _, err := Drop(Supervisor); err != nil {
				t.Fatal(err)
			}
			if err := Seccomp(Supervisor); err != nil {
				t.Fatal(err)
			}
		}, func() error {
			started := exec.Command("/proc/self/exe", "-test.list", "^$")
			started.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, AmbientCaps: Passed()}
			_, _, memory := unix.Syscall6(unix.SYS_PROCESS_VM_WRITEV, uintptr(os.Getppid()), 0, 0, 0, 0, 0)
			return errors.Join(
				want("starting a program", started.Run(), nil),
				want("signalling", unix.Kill(os.Getppid(), 0), nil),
				want("a unix socket", socket(unix.AF_UNIX), nil),
				want("writing", write(os.Getenv("PRIVILEGE_DIR")), nil),
				want("a packet socket", socket(unix.AF_PACKET), unix.EAFNOSUPPORT),
				want("unshare", unix.Unshare(0), unix.EPERM),
				want("tracing the parent", unix.PtraceSeize(os.Getppid()), unix.EPERM),
				want("writing memory", memory, unix.EPERM),
				want("mounting", unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_RDONLY, ""), unix.EPERM),
			)
		})
		status, err := os.ReadFile("/proc/self/status")
		if err != nil || !strings.Contains(string(status), "CapEff:\t0000000000000004\n") && os.Geteuid() == 0 {
			t.Errorf("other capabilities than CAP_DAC_READ_SEARCH are effective (%v):\n%s", err, status)
		}
	})
}

// A part that a supervisor starts again has the supervisor's filter from its start, and drops its own privileges in all threads. In a binary
// with C code, libcap signals each thread for that.
func TestAPartDropsPrivilegesUnderASupervisor(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("there is no filter for this processor")
	}
	const again = "PRIVILEGE_PART"
	if os.Getenv(again) != "" {
		onThreads(t, func() {
			if err := DieWithParent(); err != nil {
				t.Fatal(err)
			}
			if _, err := Drop(Server); err != nil {
				t.Fatal(err)
			}
			if err := Seccomp(Server); err != nil {
				t.Fatal(err)
			}
		}, func() error {
			_, _, err := unix.Syscall(unix.SYS_TKILL, uintptr(unix.Gettid()), 0, 0)
			return want("a signal to a thread", err, unix.EPERM)
		})
		return
	}
	inChild(t, func(t *testing.T) {
		if _, err := Drop(Supervisor); err != nil {
			t.Fatal(err)
		}
		if err := Seccomp(Supervisor); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // it ends what hangs
		defer cancel()
		part := exec.CommandContext(ctx, "/proc/self/exe", "-test.run", pattern(t.Name()))
		part.Env = append(os.Environ(), again+"=1")
		if out, err := part.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// An older kernel, or a container's filter, makes the error ErrUnsupported.
func TestAbsentMechanismsAreSaidToBeAbsent(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("there is no filter for this processor")
	}
	for answer, text := range map[unix.Errno]string{
		unix.ENOSYS: "CONFIG_SECURITY_LANDLOCK", unix.EOPNOTSUPP: "lsm=landlock", unix.EPERM: "not permitted",
	} {
		t.Run(answer.Error(), func(t *testing.T) {
			inChild(t, func(t *testing.T) {
				if _, err := Drop(Server); err != nil {
					t.Fatal(err)
				}
				old := filter{arch: unix.AUDIT_ARCH_X86_64, newest: unix.SYS_RSEQ_SLICE_YIELD, rules: []rule{
					{unix.SYS_LANDLOCK_CREATE_RULESET, answer, nil}, {unix.SYS_SECCOMP, unix.ENOSYS, nil},
				}}
				if err := old.install(); err != nil {
					t.Fatal(err)
				}
				err := Landlock(Server, []string{directory(t)})
				if !errors.Is(err, errUnsupported) || !strings.Contains(err.Error(), text) {
					t.Errorf("Landlock: %v, want %q", err, text)
				}
				if err := Seccomp(Server); !errors.Is(err, errUnsupported) || !strings.Contains(err.Error(), "CONFIG_SECCOMP_FILTER") {
					t.Errorf("Seccomp: %v", err)
				}
			})
		})
	}
}
