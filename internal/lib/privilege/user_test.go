// SPDX-License-Identifier: Apache-2.0

package privilege

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
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
