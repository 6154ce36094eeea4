// SPDX-License-Identifier: Apache-2.0

package unwind

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// The kinds of rows: how the stack pointer of the caller (the CFA) is found. The eBPF program has the same numbers
// (profiling.h).
const (
	kindNone   = iota // unknown
	kindSP            // the stack pointer and an offset
	kindBP            // the frame pointer and an offset
	kindPLT           // a stub of the linker, which has pushed a word or not yet
	kindSignal        // the kernel's frame of a signal, which has all registers
	kindEnd           // nothing called this function
)

// A tableRow says how to find the caller from an address on, up to the next row: the linked address in the
// upper 32 bits, then 4 bits of kind, 14 bits of the offset of the CFA, and 14 bits of the offset below the CFA where the caller's
// frame pointer is stored, both in words. The last is 0 if the frame pointer is unchanged.
type tableRow uint64

const (
	fieldBits = 14
	maxField  = 1<<fieldBits - 1
)

func row(address uint64, kind, cfa, bp uint64) tableRow {
	return tableRow(address<<32 | kind<<(2*fieldBits) | cfa<<fieldBits | bp)
}

// Numbers of registers (System V ABI for x86-64, figure 3.36).
const (
	regBP = 6
	regSP = 7
	regRA = 16
)

// Limits of a file.
const (
	maxRows     = 1 << 20
	maxRemember = 16 // nested states
	maxAddress  = 1<<32 - 1
	maxAlign    = 16  // bytes of an instruction's unit
	stepsOfByte = 2   // instructions for each byte of the section; what compilers write needs less than one
	maxInitial  = 128 // bytes of instructions that functions have in common, which are executed for each
)

var (
	errDamaged = errors.New("damaged .eh_frame")
	errSteps   = errors.New("its .eh_frame takes too many steps")
	errRows    = fmt.Errorf("its .eh_frame has more than %d rows", maxRows)
)

// reader reads the section. After an error it returns zeros.
type reader struct {
	data   []byte
	at     int
	vaddr  uint64 // of the section
	failed bool
}

func (r *reader) bytes(n uint64) []byte {
	if r.failed || n > uint64(len(r.data)-r.at) {
		r.failed = true
		return nil
	}
	b := r.data[r.at : r.at+int(n)]
	r.at += int(n)
	return b
}

func (r *reader) fixed(size int) uint64 {
	b := r.bytes(uint64(size))
	if b == nil {
		return 0
	}
	var whole [8]byte
	copy(whole[:], b)
	return binary.LittleEndian.Uint64(whole[:])
}

func (r *reader) uleb() (v uint64) {
	for shift := 0; shift < 63; shift += 7 {
		b := r.fixed(1)
		v |= (b & 0x7f) << shift
		if b&0x80 == 0 {
			return v
		}
	}
	r.failed = true
	return 0
}

func (r *reader) sleb() int64 {
	var v int64
	for shift := 0; shift < 63; shift += 7 {
		b := r.fixed(1)
		v |= int64(b&0x7f) << shift
		if b&0x80 == 0 {
			if b&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
	r.failed = true
	return 0
}

// pointer reads a pointer in an encoding (Linux Standard Base, DWARF Exception Header Encoding).
func (r *reader) pointer(encoding byte) (v uint64) {
	here := r.vaddr + uint64(r.at)
	switch encoding & 0x0f {
	case 0x00, 0x04, 0x0c:
		v = r.fixed(8)
	case 0x01:
		v = r.uleb()
	case 0x02:
		v = r.fixed(2)
	case 0x03:
		v = r.fixed(4)
	case 0x09:
		v = uint64(r.sleb())
	case 0x0a:
		v = uint64(int16(r.fixed(2)))
	case 0x0b:
		v = uint64(int32(r.fixed(4)))
	default:
		r.failed = true
	}
	switch encoding & 0x70 {
	case 0x00:
	case 0x10:
		v += here
	default:
		r.failed = true
	}
	return v
}

// common is a CIE: what functions have in common.
type common struct {
	codeAlign uint64
	dataAlign int64
	encoding  byte // of addresses in its FDEs
	augmented bool
	initial   []byte // instructions
}

// state is how the caller is found at an address.
type state struct {
	kind   uint64
	offset int64 // of the CFA, in bytes
	bp     int64 // where the frame pointer is stored, below the CFA, in bytes; 0 if it is unchanged
}

// rowsOf returns the rows of a section .eh_frame at a linked address, in ascending order. Where no function is known, there is a
// row of that kind. Code above 4 GiB has none.
func rowsOf(section []byte, vaddr uint64) ([]tableRow, error) {
	p := parser{commons: map[int]*common{}, steps: stepsOfByte * len(section)}
	r := &reader{data: section, vaddr: vaddr}
	for r.at < len(section) {
		length := r.fixed(4)
		if length == 0 || r.failed {
			break // the end
		}
		if length == 0xffffffff {
			length = r.fixed(8)
		}
		start := r.at
		if r.bytes(length) == nil {
			return nil, errDamaged
		}
		entry := &reader{data: section[:r.at], at: start, vaddr: vaddr}
		id := entry.fixed(4)
		if id == 0 {
			continue // a CIE, which is read when an FDE needs it
		}
		if err := p.function(entry, section, start-int(id)); err != nil {
			return nil, err
		}
	}
	return p.finish(), nil
}

type parser struct {
	steps   int // instructions that may still be executed
	commons map[int]*common
	rows    []tableRow
	ends    []tableRow
}

// common reads the CIE at an offset of the section, or returns nil.
func (p *parser) common(section []byte, at int) *common {
	if c, known := p.commons[at]; known {
		return c
	}
	p.commons[at] = nil
	if at < 0 || at+4 > len(section) {
		return nil
	}
	r := &reader{data: section, at: at}
	length := r.fixed(4)
	if length == 0xffffffff || length > uint64(len(section)-r.at) {
		return nil
	}
	r.data = section[:r.at+int(length)]
	if r.fixed(4) != 0 {
		return nil
	}
	if version := r.fixed(1); version != 1 && version != 3 {
		return nil
	}
	end := bytes.IndexByte(r.data[min(r.at, len(r.data)):], 0)
	if end < 0 {
		return nil
	}
	augmentation := string(r.bytes(uint64(end)))
	r.bytes(1)
	c := &common{codeAlign: r.uleb(), dataAlign: r.sleb()}
	if r.uleb() != regRA || c.codeAlign > maxAlign || !r.augmentation(c, augmentation) {
		return nil
	}
	if c.initial = r.data[r.at:]; len(c.initial) > maxInitial {
		return nil
	}
	p.commons[at] = c
	return c
}

// augmentation reads what a CIE says about its FDEs, and reports whether it is understood.
func (r *reader) augmentation(c *common, text string) bool {
	if text == "" {
		return !r.failed
	}
	if text[0] != 'z' {
		return false
	}
	c.augmented = true
	after := r.uleb()
	if r.failed || after > uint64(len(r.data)-r.at) {
		return false
	}
	after += uint64(r.at)
	for _, what := range text[1:] {
		switch what {
		case 'R':
			c.encoding = byte(r.fixed(1))
		case 'P':
			encoding := byte(r.fixed(1))
			r.pointer(encoding &^ 0x70)
		case 'L':
			r.bytes(1)
		case 'S', 'B':
		default:
			return false
		}
	}
	if r.failed {
		return false
	}
	r.at = int(after)
	return true
}

// function adds the rows of an FDE. One that is not understood has none.
func (p *parser) function(r *reader, section []byte, at int) error {
	c := p.common(section, at)
	if c == nil {
		return nil
	}
	start := r.pointer(c.encoding)
	length := r.pointer(c.encoding & 0x0f)
	if c.augmented {
		r.bytes(r.uleb())
	}
	if r.failed {
		return errDamaged
	}
	if start > maxAddress || length == 0 || length > maxAddress-start {
		return nil
	}
	m := machine{common: c, address: start, last: start + length, steps: &p.steps}
	if !m.run(&reader{data: c.initial}, nil) {
		return p.enough()
	}
	m.first = m.state
	ok := m.run(&reader{data: r.data, at: r.at}, func(address uint64, s state) { p.add(address, s) })
	if ok && m.address < m.last {
		p.add(m.address, m.state)
	} else if !ok {
		p.add(m.address, state{})
	}
	p.ends = append(p.ends, row(start+length, kindNone, 0, 0))
	return p.enough()
}

// enough returns an error if no more may be read.
func (p *parser) enough() error {
	switch {
	case p.steps < 0:
		return errSteps
	case len(p.rows) > maxRows, len(p.ends) > maxRows:
		return errRows
	}
	return nil
}

// add adds a row. A state that does not fit into a row is unknown.
func (p *parser) add(address uint64, s state) {
	if len(p.rows) > maxRows {
		return
	}
	unit := int64(8)
	if s.kind == kindPLT {
		unit = 1
	}
	cfa, bp := s.offset/unit, s.bp/8
	if cfa < 0 || cfa > maxField || bp < 0 || bp > maxField || s.offset%unit != 0 || s.bp%8 != 0 {
		s, cfa, bp = state{}, 0, 0
	}
	p.rows = append(p.rows, row(address, s.kind, uint64(cfa), uint64(bp)))
}

// finish sorts the rows. The end of a function counts only where no other begins.
func (p *parser) finish() []tableRow {
	begins := make(map[uint32]bool, len(p.rows))
	for _, r := range p.rows {
		begins[uint32(r>>32)] = true
	}
	for _, e := range p.ends {
		if !begins[uint32(e>>32)] {
			p.rows = append(p.rows, e)
		}
	}
	slices.Sort(p.rows)
	same := func(a, b tableRow) bool { return a>>32 == b>>32 || uint32(a) == uint32(b) }
	return slices.CompactFunc(p.rows, same)
}
