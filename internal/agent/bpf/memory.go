// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"
	"io"
	"os"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// View maps an array map (BPF_F_MMAPABLE) into memory as a slice of T. So reading a counter is a
// load instead of a system call. The kernel writes concurrently: an aligned 8-byte load is atomic, but two
// loads may see different moments. The slice is invalid after Object.Close.
//
// T must have the size of the map's value. Otherwise the error states both sizes.
func View[T any](o *Object, name string) ([]T, error) {
	m := o.Map(name)
	if m == nil {
		return nil, fmt.Errorf("mapping %s: no such map", name)
	}
	size := int(unsafe.Sizeof(*new(T)))
	if m.Type() != ebpf.Array || m.Flags()&unix.BPF_F_MMAPABLE == 0 {
		return nil, fmt.Errorf("mapping %s: not a memory-mappable array", name)
	}
	if int(m.ValueSize()) != size || size%8 != 0 {
		return nil, fmt.Errorf("mapping %s: its values have %d bytes, the Go type %d", name, m.ValueSize(), size)
	}
	page := os.Getpagesize()
	length := (int(m.MaxEntries())*size + page - 1) / page * page
	data, err := unix.Mmap(m.FD(), 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", name, err)
	}
	o.closers = append(o.closers, closerFunc(func() error { return unix.Munmap(data) }))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), m.MaxEntries()), nil
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

var _ io.Closer = closerFunc(nil)
