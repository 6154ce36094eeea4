// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// batch is the number of entries that one system call takes from a map. The kernel returns whole buckets, so it must
// exceed the entries of a bucket.
const batch = 256

// Drain empties or reads a hash map again and again. It keeps the memory that this needs.
type Drain[K, V any] struct {
	from   *ebpf.Map
	name   string
	keys   []K
	values []V
}

// NewDrain returns a Drain of a hash map.
func NewDrain[K, V any](o *Object, name string) (*Drain[K, V], error) {
	m := o.Map(name)
	if m == nil {
		return nil, fmt.Errorf("emptying %s: no such map", name)
	}
	return &Drain[K, V]{m, name, make([]K, batch), make([]V, batch)}, nil
}

// All removes all entries and passes each to f (Linux 5.6). No program may use the map meanwhile, because what it adds to
// an entry between the kernel's copy and the removal would be lost. The arguments are valid until f returns.
func (d *Drain[K, V]) All(f func(key *K, value *V)) error {
	var cursor ebpf.MapBatchCursor
	for {
		n, err := d.from.BatchLookupAndDelete(&cursor, d.keys, d.values, nil)
		for i := range n {
			f(&d.keys[i], &d.values[i])
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil // no more entries
		}
		if err != nil {
			return fmt.Errorf("emptying %s: %w", d.name, err)
		}
	}
}

// Each passes each entry to f and removes none (Linux 5.6). Entries that programs add meanwhile may be missing. The arguments
// are valid until f returns.
func (d *Drain[K, V]) Each(f func(key *K, value *V)) error {
	var cursor ebpf.MapBatchCursor
	for {
		n, err := d.from.BatchLookup(&cursor, d.keys, d.values, nil)
		for i := range n {
			f(&d.keys[i], &d.values[i])
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil // no more entries
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", d.name, err)
		}
	}
}
