// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// bound makes a unix socket of a type. It listens when the queue of connections has a length.
func bound(t *testing.T, path string, kind, queue int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if queue >= 0 {
		if err := unix.Listen(fd, queue); err != nil {
			t.Fatal(err)
		}
	}
}

// A socket without a listener is replaced. The new one is removed at the end.
func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	bound(t, path, unix.SOCK_STREAM, -1)
	l, err := ListenSocket(t.Context(), "unix:"+path, Socket{Mode: 0o640})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != os.ModeSocket|0o640 {
		t.Errorf("%v, %v", info, err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	_ = l.Close()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// Nothing else is replaced.
func TestWhatIsAtTheAddressStays(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	file := func(name string) {
		if err := os.WriteFile(at(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		make func()
		want string
	}{
		"listener": {func() { bound(t, at("listener"), unix.SOCK_STREAM, 8) }, "another process is listening there; stop it or choose another path with --listen"},
		"busy": {func() {
			bound(t, at("busy"), unix.SOCK_STREAM, 0)
			conn, err := net.Dial("unix", at("busy")) // fills the queue
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
		}, "another process is listening there"},
		"datagrams": {func() { bound(t, at("datagrams"), unix.SOCK_DGRAM, -1) }, "there is a socket of another kind"},
		"file":      {func() { file("file") }, "there is a file that is not a socket"},
		"directory": {func() { _ = os.Mkdir(at("directory"), 0o700) }, "there is a file that is not a socket"},
		"link": {func() {
			bound(t, at("target"), unix.SOCK_STREAM, -1)
			_ = os.Symlink(at("target"), at("link"))
		}, "there is a file that is not a socket"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.make()
			before, err := os.Lstat(at(name))
			if err != nil {
				t.Fatal(err)
			}
			_, err = ListenSocket(t.Context(), "unix:"+at(name), Socket{Mode: 0o600})
			if err == nil || !strings.HasPrefix(err.Error(), "listening on unix:"+at(name)+": ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if after, err := os.Lstat(at(name)); err != nil || !os.SameFile(before, after) {
				t.Errorf("%v is %v now, %v", before, after, err)
			}
		})
	}
}
