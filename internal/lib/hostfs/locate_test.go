// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLocate: each path leads to the file that the process would see, and none out of its root.
func TestLocate(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	for _, name := range []string{"proc/7", "root/usr/bin", "root/data/deep"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"secret": "outside", "root/usr/bin/app": "app", "root/data/deep/file": "file", "root/secret": "inside"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"proc/7/root": root, "root/bin": "usr/bin", "root/loop": "loop", "root/ping": "/pong", "root/pong": "ping",
		"root/data/absolute": "/usr/bin/app", "root/data/up": "../../../../secret", "root/data/host": filepath.Join(dir, "secret"),
		"root/data/chain": "absolute", "root/usr/self": "..",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("usr/self/", maxLinks+1)
	for name, want := range map[string]string{
		"/usr/bin/app": "app", "usr/bin/app": "app", "/bin/app": "app", "/data/absolute": "app", "/data/chain": "app", "/usr/self/data/deep/file": "file",
		"/data/up": "inside", "/../../secret": "inside", "/data/../secret": "inside",
		"/data/host": "ENOENT", "/none": "ENOENT", "/loop": "ELOOP", "/ping": "ELOOP", "/secret/file": "ENOTDIR", long + "secret": "ELOOP",
		strings.Repeat("a/", maxSteps+1): "ENAMETOOLONG",
	} {
		if got := content(At(filepath.Join(dir, "proc")).Process(7), name); got != want {
			t.Errorf("%.60s leads to %s, want %s", name, got, want)
		}
	}
	if _, err := At(dir).Process(8).Locate("/x"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("without a process: %v", err)
	}
}

// content returns the content of a located file, or the name of the error.
func content(p Process, name string) string {
	fd, err := p.Locate(name)
	if err != nil {
		var errno unix.Errno
		errors.As(err, &errno)
		return unix.ErrnoName(errno)
	}
	defer func() { _ = unix.Close(fd) }()
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return err.Error()
	}
	return string(text)
}
