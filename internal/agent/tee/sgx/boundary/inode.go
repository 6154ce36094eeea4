// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// errNoInode means that the kernel could not read the mapping, because another thread changes the mappings of this process.
var errNoInode = fmt.Errorf("the inode of the mapping is not known: %w", reader.ErrStuck)

// errUnloaded means that the programs of the kernel side are removed. Reads of processes may run longer.
var errUnloaded = fmt.Errorf("the programs are removed: %w", reader.ErrStuck)

// inodes returns a function for the inode that the kernel reports as mapped at an address of this process. The function is nil if
// the kernel does not report it (before 5.17). Then no file is identified by its inode, and otherwise every file is. The function
// may be called at any time, also after stop. stop must be called before the object is closed.
func inodes(o *bpf.Object) (ask func(address uint64) (uint64, error), stop func(), err error) {
	stop = func() {}
	mapped, err := bpf.View[uint64](o, "mapped_at")
	if err != nil {
		return nil, stop, err
	}
	call, err := o.Call("mapped_inode")
	if err != nil {
		return nil, stop, nil //nolint:nilerr // an older kernel shows the inode in the mappings
	}
	var mu sync.Mutex
	ask = func(address uint64) (uint64, error) {
		mu.Lock()
		defer mu.Unlock()
		if mapped == nil {
			return 0, errUnloaded
		}
		return askOnce(mapped, address, call)
	}
	_, err = ask(uint64(reflect.ValueOf(inodes).Pointer())) // this function is in the file of this program
	if err != nil && !reader.Unanswered(err) {
		return nil, stop, nil //nolint:nilerr // as above
	}
	return ask, func() {
		mu.Lock()
		defer mu.Unlock()
		mapped = nil
	}, nil
}

// askOnce asks for the inode at an address. The kernel does not wait for the lock of the mappings (EBUSY, bpf_find_vma in
// kernel/bpf/task_iter.c). So the next scan asks again, as for every process that did not answer.
func askOnce(mapped []uint64, address uint64, call func() error) (uint64, error) {
	mapped[0], mapped[1], mapped[2] = address, 0, 0
	if err := call(); err != nil {
		return 0, err
	}
	switch code := unix.Errno(-int64(mapped[2])); {
	case code == unix.EBUSY:
		return 0, errNoInode
	case code != 0:
		return 0, fmt.Errorf("asking for the inode of a mapping: %w", code)
	case mapped[1] == 0:
		return 0, errors.New("the mapping has no file")
	}
	return mapped[1], nil
}
