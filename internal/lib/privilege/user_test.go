// SPDX-License-Identifier: Apache-2.0

package privilege

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"
)

func TestFindAccount(t *testing.T) {
	accounts := map[string]Account{"0": {0, 0}, "65521": {65521, 65521}, "65521:12": {65521, 12}}
	if _, err := os.Stat("/etc/passwd"); err == nil { // a virtual machine of the tests has none
		accounts["root"] = Account{0, 0}
	}
	for text, want := range accounts {
		if got, err := FindAccount(text); err != nil || got != want {
			t.Errorf("FindAccount(%q) = %+v, %v", text, got, err)
		}
	}
	if _, err := FindAccount("no-such-user"); err == nil {
		t.Error("an unknown user was found")
	}
}

// The rights of the user hold even without seccomp and Landlock: root's files, memory and sockets are closed to every
// thread, and the kept capabilities still read everything.
func TestWithoutRootRootsFilesAreClosed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: there is nothing to leave")
	}
	inChild(t, func(t *testing.T) {
		dir := directory(t)
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		socket := filepath.Join(dir, "engine.sock")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		connect := func() error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err == nil {
				err = unix.Connect(fd, &unix.SockaddrUnix{Name: socket})
				_ = unix.Close(fd) // nothing was written
			}
			return err
		}
		opening := func(file string, flags int) error {
			f, err := os.OpenFile(file, flags, 0)
			if err == nil {
				err = f.Close()
			}
			return err
		}
		onThreads(t, func() {
			if err := connect(); err != nil {
				t.Fatal(err)
			}
			if err := Become(Account{65521, 65521}); err != nil {
				t.Fatal(err)
			}
			if !Held("CAP_SYS_ADMIN") {
				t.Error("the capabilities went with the user")
			}
			if _, err := Drop(Agent); err != nil {
				t.Fatal(err)
			}
		}, func() error {
			return errors.Join(
				want("connecting to root's socket", connect(), unix.EACCES),
				want("writing root's file", opening(filepath.Join(dir, "file"), os.O_WRONLY), unix.EACCES),
				want("reading root's file", opening(filepath.Join(dir, "file"), os.O_RDONLY), nil),
				want("writing memory", opening(fmt.Sprintf("/proc/%d/mem", os.Getppid()), os.O_RDWR), unix.EACCES),
				want("reading memory", opening(fmt.Sprintf("/proc/%d/mem", os.Getppid()), os.O_RDONLY), nil),
				want("creating a file", write(dir), unix.EACCES),
				want("returning to root", unix.Setresuid(0, 0, 0), unix.EPERM),
			)
		})
	})
}

func TestWhoStays(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	inChild(t, func(t *testing.T) {
		if err := Become(Account{}); !errors.Is(err, ErrRoot) {
			t.Errorf("Become(root) = %v", err)
		}
		if err := Become(Account{1234, 1234}); err != nil {
			t.Fatal(err)
		}
		if err := Become(Account{65521, 65521}); err != nil || Own().UID != 1234 {
			t.Errorf("Become() of another user = %v, and it is %+v", err, Own())
		}
	})
}

// Other processes of the same UID can use up its limit of threads. Threads are still created, also when the process may
// raise the limit only up to the hard one.
func TestThreadsOfOthersAreNoLimit(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: the limit of other users stays")
	}
	const hard = 4096
	for name, may := range map[string]bool{"with CAP_SYS_RESOURCE": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			inChild(t, func(t *testing.T) {
				set := func(soft, most uint64) error {
					return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: soft, Max: most})
				}
				if err := set(1, hard); err != nil {
					t.Fatal(err)
				}
				if have := cap.GetProc(); !may {
					err := errors.Join(have.SetFlag(cap.Effective, false, cap.SYS_RESOURCE), have.SetFlag(cap.Permitted, false, cap.SYS_RESOURCE))
					if err = errors.Join(err, have.SetProc()); err != nil {
						t.Fatal(err)
					}
				}
				want := uint64(hard)
				if set(1, unix.RLIM_INFINITY) == nil { // root of a container may not
					want = unix.RLIM_INFINITY
					if err := set(1, hard); err != nil {
						t.Fatal(err)
					}
				}
				if !may && want != hard {
					t.Error("the hard limit can be raised without CAP_SYS_RESOURCE")
				}
				if err := Become(Account{UID: 65521, GID: 65521}); err != nil {
					t.Fatal(err)
				}
				if _, err := Drop(Server); err != nil {
					t.Fatal(err)
				}
				var now unix.Rlimit
				if err := unix.Getrlimit(unix.RLIMIT_NPROC, &now); err != nil || now.Cur != want || now.Max != want {
					t.Errorf("the limit is %+v (%v), want %d", now, err, want)
				}
				var all sync.WaitGroup
				started, end := make(chan struct{}), make(chan struct{})
				for range 20 { // each takes a thread. Go's runtime ends the process if it cannot create one
					all.Go(func() {
						runtime.LockOSThread()
						started <- struct{}{}
						<-end
					})
				}
				for range 20 {
					<-started
				}
				close(end)
				all.Wait()
			})
		})
	}
}
