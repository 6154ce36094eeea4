// SPDX-License-Identifier: Apache-2.0

package unwind

import "bytes"

// machine executes the instructions of a function's call frame information (DWARF 5, section 6.4.2).
type machine struct {
	*common
	state
	first      state // after the instructions of the CIE
	address    uint64
	last       uint64 // after the function
	remembered []state
	steps      *int // that are left for the file
}

// Expressions for the CFA that compilers and the C library write.
var (
	// A stub of the linker: SP + 8, and 8 more if the low bits of the address are at least 11, or 10 with IBT.
	pltOld = []byte{0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}
	pltIBT = []byte{0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22}
	// The frame of a signal: the stack pointer is at SP + 160.
	signalFrame = []byte{0x77, 0xa0, 0x01, 0x06}
)

// run executes instructions, calls row with each state that covers addresses, and reports whether all were understood.
func (m *machine) run(r *reader, row func(uint64, state)) bool {
	for r.at < len(r.data) && !r.failed {
		if *m.steps--; *m.steps < 0 {
			return false
		}
		op := byte(r.fixed(1))
		switch op & 0xc0 {
		case 0x40:
			m.advance(uint64(op&0x3f), row)
			continue
		case 0x80:
			m.store(uint64(op&0x3f), int64(r.uleb())*m.dataAlign)
			continue
		case 0xc0:
			m.restore(uint64(op & 0x3f))
			continue
		}
		if !m.long(op, r, row) {
			return false
		}
	}
	return !r.failed
}

// long executes an instruction whose operands follow it.
func (m *machine) long(op byte, r *reader, row func(uint64, state)) bool {
	switch op {
	case 0x00: // nop
	case 0x02, 0x03, 0x04: // advance_loc1, 2 and 4
		m.advance(r.fixed(1<<(op-2)), row)
	case 0x05: // offset_extended
		m.store(r.uleb(), int64(r.uleb())*m.dataAlign)
	case 0x11: // offset_extended_sf
		m.store(r.uleb(), r.sleb()*m.dataAlign)
	case 0x06: // restore_extended
		m.restore(r.uleb())
	case 0x07: // undefined
		if r.uleb() == regRA {
			m.state = state{kind: kindEnd}
		}
	case 0x08: // same_value
		if r.uleb() == regBP {
			m.bp = 0
		}
	case 0x0a: // remember_state
		if len(m.remembered) >= maxRemember {
			return false
		}
		m.remembered = append(m.remembered, m.state)
	case 0x0b: // restore_state
		if len(m.remembered) == 0 {
			return false
		}
		m.state = m.remembered[len(m.remembered)-1]
		m.remembered = m.remembered[:len(m.remembered)-1]
	case 0x0c: // def_cfa
		return m.define(r.uleb(), int64(r.uleb()))
	case 0x12: // def_cfa_sf
		return m.define(r.uleb(), r.sleb()*m.dataAlign)
	case 0x0d: // def_cfa_register
		return m.define(r.uleb(), m.offset)
	case 0x0e: // def_cfa_offset
		m.offset = int64(r.uleb())
	case 0x13: // def_cfa_offset_sf
		m.offset = r.sleb() * m.dataAlign
	case 0x0f: // def_cfa_expression
		return m.expression(r.bytes(r.uleb()))
	case 0x10, 0x16: // expression, val_expression: of a register
		register := r.uleb()
		r.bytes(r.uleb())
		return m.kind == kindSignal || register != regBP && register != regRA
	case 0x2e: // GNU_args_size
		r.uleb()
	case 0x09, 0x14, 0x15: // register, val_offset, val_offset_sf
		register := r.uleb()
		r.uleb()
		return register != regBP && register != regRA
	default:
		return false
	}
	return true
}

func (m *machine) advance(by uint64, row func(uint64, state)) {
	if by > 0 && row != nil && m.address < m.last {
		row(m.address, m.state)
	}
	m.address = min(m.address+min(by, m.last)*max(m.codeAlign, 1), m.last)
}

func (m *machine) store(register uint64, offset int64) {
	if register == regBP {
		m.bp = -offset
	}
}

func (m *machine) restore(register uint64) {
	if register == regBP {
		m.bp = m.first.bp
	}
}

// define sets the register of the CFA. One that the program does not know makes the rest of the function unknown.
func (m *machine) define(register uint64, offset int64) bool {
	m.offset = offset
	switch register {
	case regSP:
		m.kind = kindSP
	case regBP:
		m.kind = kindBP
	default:
		m.state = state{}
	}
	return true
}

func (m *machine) expression(e []byte) bool {
	switch {
	case bytes.Equal(e, pltOld):
		m.state = state{kind: kindPLT, offset: 11}
	case bytes.Equal(e, pltIBT):
		m.state = state{kind: kindPLT, offset: 10}
	case bytes.Equal(e, signalFrame):
		m.state = state{kind: kindSignal}
	default:
		m.state = state{}
	}
	return true
}
