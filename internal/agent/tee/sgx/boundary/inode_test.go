// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"errors"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// The kernel is asked once. The answer comes later only if the lock of the mappings is taken.
func TestABusyKernelIsAskedLater(t *testing.T) {
	mapped := make([]uint64, 3)
	for _, tt := range []struct {
		code  unix.Errno
		inode uint64
		later bool
	}{{0, 7, false}, {unix.EBUSY, 0, true}, {unix.ENOENT, 0, false}, {0, 0, false}} {
		asked := 0
		inode, err := askOnce(mapped, 5, func() error {
			asked++
			mapped[1], mapped[2] = tt.inode, -uint64(tt.code)
			return nil
		})
		if asked != 1 || inode != tt.inode || (err == nil) != (tt.inode > 0) || reader.Unanswered(err) != tt.later {
			t.Errorf("%v: asked %d times, inode %d, %v", tt.code, asked, inode, err)
		}
	}
}

// A read of a process may run when the programs are removed. It gets an error and does not read their memory.
func TestAnInodeIsAskedForAfterTheEnd(t *testing.T) {
	b := start(t, modeOn, 0)
	inode := b.processes.Host.Inode
	if inode == nil {
		t.Skip("this kernel shows the inode in the mappings")
	}
	address := uint64(reflect.ValueOf(inodes).Pointer())
	if _, err := inode(address); err != nil && !reader.Unanswered(err) {
		t.Fatal(err)
	}
	if err := b.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := inode(address); !errors.Is(err, errUnloaded) || !reader.Unanswered(err) {
		t.Errorf("after the end: %v", err)
	}
}
