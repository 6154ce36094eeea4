// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// The kernel is asked once. Only if the lock of the mappings is taken the answer may come later.
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
