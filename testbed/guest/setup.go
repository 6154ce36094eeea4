// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/testbed/machine/job"
)

// mounts makes the file systems that programs expect.
func mounts() error {
	for _, m := range []struct{ target, kind string }{
		{"/proc", "proc"}, {"/sys", "sysfs"}, {"/dev", "devtmpfs"}, {"/dev/pts", "devpts"}, {"/dev/shm", "tmpfs"},
		{"/tmp", "tmpfs"}, {"/run", "tmpfs"}, {"/sys/fs/cgroup", "cgroup2"}, {"/sys/fs/bpf", "bpf"},
		{"/sys/kernel/tracing", "tracefs"}, {"/sys/kernel/debug", "debugfs"}, {"/sys/kernel/security", "securityfs"},
	} {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.target, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", m.target, err)
		}
	}
	for _, link := range [][2]string{{"/proc/self/fd", "/dev/fd"}, {"fd/0", "/dev/stdin"}, {"fd/1", "/dev/stdout"}, {"fd/2", "/dev/stderr"}} {
		if err := os.Symlink(link[0], link[1]); err != nil && !os.IsExist(err) {
			return err
		}
	}
	return os.Chmod("/tmp", 0o777|os.ModeSticky)
}

func load(modules []job.Module) error {
	for _, m := range modules {
		f, err := os.Open(m.File)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), m.Params, 0)
		f.Close()
		if err != nil {
			return fmt.Errorf("loading %s %q: %w", m.File, m.Params, err)
		}
	}
	return nil
}

// address is the guest's address in QEMU's user network.
var address = [4]byte{10, 0, 2, 15}

// network brings the interfaces up and starts the relays.
func network(relays []job.Relay) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := up(fd, "lo"); err != nil || len(relays) == 0 {
		return err
	}
	if err := set(fd, "eth0", unix.SIOCSIFADDR, address); err != nil {
		return err
	}
	if err := set(fd, "eth0", unix.SIOCSIFNETMASK, [4]byte{255, 255, 255, 0}); err != nil {
		return err
	}
	if err := up(fd, "eth0"); err != nil {
		return err
	}
	for _, r := range relays {
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", net.IP(address[:]), r.Listen))
		if err != nil {
			return err
		}
		go relay(l, r.To)
	}
	return nil
}

func up(fd int, name string) error {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("bringing up %s: %w", name, err)
	}
	return nil
}

func set(fd int, name string, what uint, value [4]byte) error {
	request, err := unix.NewIfreq(name)
	if err == nil {
		err = request.SetInet4Addr(value[:])
	}
	if err == nil {
		err = unix.IoctlIfreq(fd, what, request)
	}
	if err != nil {
		return fmt.Errorf("setting up %s: %w", name, err)
	}
	return nil
}

// relay copies data between a listener and a port of the loopback. So a program that listens only on 127.0.0.1 is
// reachable from the host.
func relay(l net.Listener, to int) {
	for {
		outer, err := l.Accept()
		if err != nil {
			return
		}
		go join(outer, to)
	}
}

// join connects a connection to a port of the loopback until both sides have closed.
func join(outer net.Conn, to int) {
	defer outer.Close()
	inner, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", to))
	if err != nil {
		return
	}
	defer inner.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{inner, outer}, {outer, inner}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].(*net.TCPConn).CloseWrite()
		})
	}
	both.Wait()
}

// trouble returns the kernel's warnings and errors from its log.
func trouble() []string {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return []string{"no kernel log: " + err.Error()}
	}
	defer func() { _ = unix.Close(fd) }()
	var lines []string
	for record := make([]byte, 8192); len(lines) < 20; {
		n, err := unix.Read(fd, record)
		if err == unix.EPIPE { // overwritten before it was read
			continue
		}
		if err != nil || n == 0 {
			break
		}
		_, line, _ := strings.Cut(string(record[:n]), ";")
		line, _, _ = strings.Cut(line, "\n")
		for _, sign := range []string{"WARNING:", "BUG:", "Oops:", "rcu: INFO:", "unchecked MSR", "general protection fault, maybe"} {
			if strings.Contains(line, sign) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}
