// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// Versions of the table of functions that Go's linker writes (internal/abi/symtab.go in Go's sources).
const (
	go116 = 0xfffffffa // has addresses
	go118 = 0xfffffff0 // has offsets from the beginning of the code
	go120 = 0xfffffff1 // the same
)

const (
	goHeader     = 8 + 8*8
	maxGoTable   = 1 << 23 // functions. Kubernetes' largest programs have 200,000.
	goTableChunk = 64 << 10
)

// GoTable is the table of functions of a program in Go, for a processor with addresses of 64 bits. The program needs it to
// run, so strip keeps it. Its section is .gopclntab.
type GoTable struct {
	in             io.ReaderAt
	order          binary.ByteOrder
	functions      uint64 // number of functions
	names, entries uint64 // offsets
	text           uint64 // is added to the addresses
	address        int    // bytes of an address in the table
}

// errNoGoTable reports that the data is not a table of functions.
var errNoGoTable = errors.New("no table of functions of Go 1.16 or later")

// OpenGoTable reads the header of a table.
func OpenGoTable(in io.ReaderAt, order binary.ByteOrder) (*GoTable, error) {
	var h [goHeader]byte
	if _, err := in.ReadAt(h[:], 0); err != nil || h[4] != 0 || h[5] != 0 || h[7] != 8 {
		return nil, errNoGoTable
	}
	word := func(i int) uint64 { return order.Uint64(h[8+8*i:]) }
	t := &GoTable{in: in, order: order, functions: word(0)}
	switch order.Uint32(h[:]) {
	case go116:
		t.names, t.entries, t.address = word(2), word(6), 8
	case go118, go120:
		t.names, t.entries, t.address = word(3), word(7), 4
	default:
		return nil, errNoGoTable
	}
	if t.functions == 0 || t.functions > maxGoTable || t.names > 1<<40 || t.entries > 1<<40 {
		return nil, errNoGoTable
	}
	return t, nil
}

// startAt is the offset in the table of the word with the address of the code. The word is zero since Go 1.26. In a program that can
// be loaded anywhere, it may be zero until the program is loaded.
const startAt = 8 + 2*8

// Words of the first module that Go's linker describes in the section .go.module, since Go 1.26 (moduledata in
// runtime/symtab.go).
const (
	moduleTable = 0  // the address of the table
	moduleStart = 22 // the address at which the code begins
)

// Start finds the address at which the code of Go begins, and reports whether the table has names then. This is the
// address of the symbol runtime.text: in programs with C code, the section does not begin with the code of Go. table
// and module are the addresses of the sections of the table and .go.module, the latter 0 if there is none. words reads
// words at an address as linked, and returns none if it cannot.
func (t *GoTable) Start(table, module uint64, words func(address uint64, n int) []uint64) bool {
	if t.address == 8 {
		return true // the table has addresses
	}
	if w := words(table+startAt, 1); len(w) == 1 && w[0] != 0 {
		t.text = w[0]
		return true
	}
	if module == 0 {
		return false
	}
	w := words(module, moduleStart+1)
	if len(w) <= moduleStart || w[moduleTable] != table {
		return false
	}
	t.text = w[moduleStart]
	return t.text != 0
}

// Names returns the name of the function at each of these ascending addresses, as linked, and an empty one if there is none.
// It reads the table once, in chunks.
func (t *GoTable) Names(addresses []uint64) []string {
	names := make([]string, len(addresses))
	size := 2 * t.address
	buffer := make([]byte, goTableChunk)
	list := io.NewSectionReader(t.in, int64(t.entries), int64(t.functions+1)*int64(size))
	from, record, name := ^uint64(0), uint64(0), "" // of the function before
	for at := 0; at < len(addresses); {
		n, err := io.ReadFull(list, buffer)
		for i := 0; i+t.address <= n && at < len(addresses); i += size {
			start := t.word(buffer[i:]) + t.text
			for ; at < len(addresses) && addresses[at] < start; at++ {
				if addresses[at] < from {
					continue // it is before all functions
				}
				if name == "" {
					name = t.name(record)
				}
				names[at] = name
			}
			if i+size > n {
				break // behind the last function is only its end
			}
			from, record, name = start, t.word(buffer[i+t.address:]), ""
		}
		if err != nil {
			break
		}
	}
	return names
}

func (t *GoTable) word(b []byte) uint64 {
	if t.address == 4 {
		return uint64(t.order.Uint32(b))
	}
	return t.order.Uint64(b)
}

// name reads the name in the record of a function.
func (t *GoTable) name(record uint64) string {
	var b [12]byte
	if _, err := t.in.ReadAt(b[:t.address+4], int64((t.entries+record)&(1<<62-1))); err != nil {
		return ""
	}
	text := make([]byte, Longest)
	n, err := t.in.ReadAt(text, int64(t.names+uint64(t.order.Uint32(b[t.address:]))))
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	name, _, ends := bytes.Cut(text[:n], []byte{0})
	if !ends || slices.ContainsFunc(name, func(c byte) bool { return c < ' ' }) {
		return ""
	}
	return string(name)
}
