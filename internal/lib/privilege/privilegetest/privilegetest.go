// SPDX-License-Identifier: Apache-2.0

// Package privilegetest lets tests attach eBPF programs one at a time on a machine.
//
// It does not load programs.
package privilegetest

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/privilege"
)

// lock is that of this process. Its tests share it.
var lock struct {
	sync.Mutex
	file  *os.File
	users int
}

// Alone skips a test without the privileges to attach eBPF programs. Until the test ends, no test of another package attaches
// any. The kernel drops some events of a tracepoint while another program is attached to it or detached, and counts them nowhere.
// So exact counts would be wrong by chance if packages were tested side by side.
func Alone(t testing.TB) {
	t.Helper()
	if err := privilege.Check("go test"); err != nil {
		t.Skip(err)
	}
	lock.Lock()
	defer lock.Unlock()
	if lock.users == 0 {
		f, err := locked(filepath.Join(os.TempDir(), "teescope-tests.lock"))
		if err != nil {
			t.Fatal(err)
		}
		lock.file = f
	}
	lock.users++
	t.Cleanup(func() {
		lock.Lock()
		defer lock.Unlock()
		if lock.users--; lock.users == 0 {
			_ = lock.file.Close() // also releases it
		}
	})
}

// locked opens a file and waits until no other process has locked it.
func locked(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
