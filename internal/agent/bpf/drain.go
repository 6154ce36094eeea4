// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// batch is the number of entries that one system call takes from a map. The kernel returns whole buckets, so it must
// exceed the entries of a bucket.
const batch = 1024

// Drain removes all entries of a hash map and passes each to f (Linux 5.6). No program may use the map meanwhile, because
// what it adds to an entry between the kernel's copy and the removal would be lost. The arguments are valid until f returns.
func Drain[K, V any](o *Object, name string, f func(key *K, value *V)) error {
	m := o.Map(name)
	if m == nil {
		return fmt.Errorf("emptying %s: no such map", name)
	}
	keys, values := make([]K, batch), make([]V, batch)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := m.BatchLookupAndDelete(&cursor, keys, values, nil)
		for i := range n {
			f(&keys[i], &values[i])
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil // that were all
		}
		if err != nil {
			return fmt.Errorf("emptying %s: %w", name, err)
		}
	}
}
