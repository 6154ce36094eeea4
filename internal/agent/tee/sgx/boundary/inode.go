// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// errNoInode means that the kernel could not look at the mapping, because another thread changes the mappings of this
// process.
var errNoInode = fmt.Errorf("the inode of the mapping is not known: %w", reader.ErrStuck)

// inodes returns a function that asks the kernel for the inode that is mapped at an address of this process. It is nil if
// the kernel cannot tell (before 5.17). Then no file is identified by it. Otherwise each is.
func inodes(o *bpf.Object) (func(address uint64) (uint64, error), error) {
	mapped, err := bpf.View[uint64](o, "mapped_at")
	if err != nil {
		return nil, err
	}
	call, err := o.Call("mapped_inode")
	if err != nil {
		return nil, nil //nolint:nilerr // an older kernel shows the inode in the mappings
	}
	var mu sync.Mutex
	ask := func(address uint64) (uint64, error) {
		mu.Lock()
		defer mu.Unlock()
		const tries = 10
		for range tries {
			mapped[0], mapped[1] = address, 0
			if err := call(); err != nil {
				return 0, fmt.Errorf("%w: %w", errNoInode, err)
			}
			if mapped[1] != 0 {
				return mapped[1], nil
			}
		}
		return 0, errNoInode
	}
	if _, err := ask(uint64(reflect.ValueOf(inodes).Pointer())); err != nil { // this function is in the file of this program
		return nil, nil //nolint:nilerr // as above
	}
	return ask, nil
}
