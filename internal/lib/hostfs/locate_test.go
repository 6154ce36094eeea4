// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	if _, err := At(dir).Process(8).Locate("/x", 0); !errors.Is(err, unix.ENOENT) {
		t.Errorf("without a process: %v", err)
	}
}

// content returns the content of a located file, or the name of the error.
func content(p Process, name string) string {
	fd, err := p.Locate(name, 0)
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

// Directories of other users stay closed, also behind a link.
func TestLocateForAUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to other users")
	}
	const owner, other = 1000, 1001
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	for name, mode := range map[string]os.FileMode{"proc/7": 0o755, "root/open": 0o755, "root/closed/deep": 0o755, "root/group": 0o750} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, name), 0o755), os.Chmod(filepath.Join(dir, name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"open/file", "closed/deep/file", "group/file"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	closed := filepath.Join(root, "closed")
	if err := errors.Join(os.Symlink(root, filepath.Join(dir, "proc/7/root")), os.Symlink("/closed/deep/file", filepath.Join(root, "open/link")),
		os.Chmod(closed, 0o700), os.Chown(closed, owner, owner)); err != nil {
		t.Fatal(err)
	}
	for name, allowed := range map[string][]User{
		"/open/file": {0, owner, other}, "/closed/deep/file": {0, owner}, "/open/link": {0, owner}, "/group/file": {0},
	} {
		for _, user := range []User{0, owner, other} {
			fd, err := At(filepath.Join(dir, "proc")).Process(7).Locate(name, user)
			if err == nil {
				_ = unix.Close(fd)
			}
			if is := slices.Contains(allowed, user); is != (err == nil) || !is && !errors.Is(err, unix.EACCES) {
				t.Errorf("%s for user %d: %v", name, user, err)
			}
		}
	}
	file := unix.Stat_t{Uid: owner, Mode: unix.S_IFREG | 0o440}
	if !User(owner).MayRead(&file) || User(other).MayRead(&file) || !User(0).MayRead(&file) {
		t.Error("who may read a file of 1000 with the rights 0440")
	}
}
