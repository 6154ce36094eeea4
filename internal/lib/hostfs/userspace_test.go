// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// mountFUSE mounts a file system in user space that has no files, and answers what the kernel asks about it.
func mountFUSE(t *testing.T) (dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root mounts file systems")
	}
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip(err)
	}
	dir = t.TempDir()
	if err := unix.Mount("test", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device)); err != nil {
		_ = unix.Close(device)
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for request := make([]byte, 1<<20); ; {
			if _, err := unix.Read(device, request); errors.Is(err, unix.EINTR) {
				continue
			} else if err != nil { // it was unmounted
				return
			}
			var code unix.Errno
			var body []byte
			switch binary.NativeEndian.Uint32(request[4:]) { // struct fuse_in_header
			case 26: // FUSE_INIT, with the version 7.31
				body = make([]byte, 64)
				binary.NativeEndian.PutUint32(body, 7)
				binary.NativeEndian.PutUint32(body[4:], 31)
			case 17: // FUSE_STATFS
				body = make([]byte, 80)
			default:
				code = unix.ENOSYS
			}
			answer := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body))) // struct fuse_out_header
			answer = binary.NativeEndian.AppendUint32(answer, uint32(-int32(code)))
			answer = append(answer, request[8:16]...)
			_, _ = unix.Write(device, append(answer, body...)) // some requests take no answer
		}
	}()
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		<-done
		_ = unix.Close(device)
	})
	return dir
}

func TestProbesAreNotForFileSystemsInUserSpace(t *testing.T) {
	for _, tt := range []struct {
		path string
		want error
	}{{"/", nil}, {"/proc", nil}, {t.TempDir(), nil}, {mountFUSE(t), errUserSpace}} {
		fd, err := unix.Open(tt.path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckFileSystem(fd); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.path, err, tt.want)
		}
		if err := unix.Close(fd); err != nil {
			t.Fatal(err)
		}
	}
	if err := CheckFileSystem(-1); err == nil {
		t.Error("there is no such file")
	}
}
