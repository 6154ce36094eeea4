// SPDX-License-Identifier: Apache-2.0

package executable

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// ENCLU is the instruction that enters and resumes enclaves. The decoder does not support it.
var ENCLU = []byte{0x0f, 0x01, 0xd7}

// Limits of the search for ENCLU in a file.
const (
	maxENCLUs   = 64       // occurrences of its bytes
	maxOwn      = 1 << 20  // symbols that are read to judge them
	maxFunction = 16 << 10 // bytes of a function that are decoded
)

// errTooMuchCode means that a file has more code than the caller reads.
var errTooMuchCode = errors.New("the file has too much code to search for ENCLU")

// ENCLUs are the offsets in a file that have the bytes of ENCLU.
type ENCLUs struct {
	Offsets   []uint64 // in the file, of those that are this instruction
	Uncertain int      // occurrences of which it is not certain
}

// verdict is the result for an occurrence: whether an instruction begins there.
type verdict uint8

const (
	unknown verdict = iota
	begins          // decoding the code before it arrives there
	isNot           // decoding passes over it, or it is data
)

// occurrence is an offset with the bytes of ENCLU.
type occurrence struct {
	address, offset uint64
	before          uint64 // bytes of its segment before it
	function        uint64 // start of the function that contains it, by its symbol
	named           bool   // there is such a function
	data            bool   // a symbol says that it is data
}

// codeSize returns the number of bytes of code in the file.
func (p *Program) codeSize() (n uint64) {
	for _, s := range p.segments {
		if elf.ProgType(s.Type) == elf.PT_LOAD && elf.ProgFlag(s.Flags)&elf.PF_X != 0 {
			n += min(s.Filesz, 1<<56)
		}
	}
	return n
}

// ENCLUs finds this instruction in the code of a file, of which it reads at most the given number of bytes. The same bytes
// may be data or lie in the middle of another instruction. So the code before them is decoded: from the start of the
// function if a symbol names one, and otherwise from many addresses, which must agree.
func (p *Program) ENCLUs(most uint64) (found ENCLUs, err error) {
	if p.codeSize() > most {
		return found, errTooMuchCode
	}
	all, err := p.occurrences()
	if err != nil || len(all) == 0 {
		return found, err
	}
	if err := p.enclose(all); err != nil {
		return found, err
	}
	for i := range all {
		v, err := p.judge(&all[i])
		if err != nil {
			return found, err
		}
		switch v {
		case begins:
			found.Offsets = append(found.Offsets, all[i].offset)
		case unknown:
			found.Uncertain++
		}
	}
	return found, nil
}

// occurrences finds the bytes, ordered by their address.
func (p *Program) occurrences() ([]occurrence, error) {
	var all []occurrence
	for _, s := range p.segments {
		if elf.ProgType(s.Type) != elf.PT_LOAD || elf.ProgFlag(s.Flags)&elf.PF_X == 0 {
			continue
		}
		err := search(io.NewSectionReader(p.file, int64(s.Off&(1<<62-1)), int64(s.Filesz)), ENCLU, func(at uint64) error {
			if len(all) >= maxENCLUs {
				return fmt.Errorf("the bytes of ENCLU occur more often than %d times", maxENCLUs)
			}
			all = append(all, occurrence{address: s.Vaddr + at, offset: s.Off + at, before: at})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b occurrence) int { return bytes.Compare(key(a), key(b)) })
	return slices.CompactFunc(all, func(a, b occurrence) bool { return a.offset == b.offset }), nil
}

func key(o occurrence) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, o.address), o.offset)
}

// search calls f with the position of each occurrence of some bytes.
func search(code io.Reader, what []byte, f func(at uint64) error) error {
	buffer, kept, base := make([]byte, Chunk), 0, uint64(0)
	for {
		n, err := code.Read(buffer[kept:])
		text := buffer[:kept+n]
		for from := 0; ; {
			i := bytes.Index(text[from:], what)
			if i < 0 {
				break
			}
			if err := f(base + uint64(from+i)); err != nil {
				return err
			}
			from += i + 1
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading code: %w", err)
		}
		rest := text[max(0, len(text)-len(what)+1):]
		base += uint64(len(text) - len(rest))
		kept = copy(buffer, rest)
	}
}

// enclose finds the symbols that the occurrences belong to. It reads the tables once, without names. A file with more
// symbols than the limit is judged without them.
func (p *Program) enclose(all []occurrence) error {
	symbols := uint64(0)
	for _, s := range p.sections {
		if t := elf.SectionType(s.Type); t != elf.SHT_SYMTAB && t != elf.SHT_DYNSYM {
			continue
		}
		if symbols += s.Size / elf.Sym64Size; symbols > maxOwn {
			return nil
		}
		if err := p.entries(s, elf.Sym64Size, func(entry []byte) { enclosed(all, entry) }); err != nil {
			return fmt.Errorf("reading symbols: %w", err)
		}
	}
	return nil
}

// enclosed notes a symbol at the occurrences that it covers. The function that begins closest is the one.
func enclosed(all []occurrence, entry []byte) {
	start, size := binary.LittleEndian.Uint64(entry[8:]), binary.LittleEndian.Uint64(entry[16:])
	kind := elf.ST_TYPE(entry[4])
	if binary.LittleEndian.Uint16(entry[6:]) == uint16(elf.SHN_UNDEF) || kind != elf.STT_FUNC && kind != elf.STT_OBJECT {
		return
	}
	from, _ := slices.BinarySearchFunc(all, start, func(o occurrence, at uint64) int {
		switch {
		case o.address < at:
			return -1
		case o.address > at:
			return 1
		}
		return 0
	})
	for i := from; i < len(all) && all[i].address-start < size; i++ {
		o := &all[i]
		if kind == elf.STT_OBJECT {
			o.data = true
		} else if !o.named || start > o.function {
			o.function, o.named = start, true
		}
	}
}

// judge decides whether an occurrence is the instruction.
func (p *Program) judge(o *occurrence) (verdict, error) {
	if o.data {
		return isNot, nil
	}
	// A symbol is untrusted data: its function must begin in the same segment and have a plausible size.
	if length := o.address - o.function; o.named && length <= min(o.before, maxFunction) {
		code, err := p.codeBefore(o, length)
		if err != nil {
			return unknown, err
		}
		if v := follow(code)[0]; v != unknown {
			return v, nil
		}
	}
	code, err := p.codeBefore(o, min(o.before, farthest))
	if err != nil {
		return unknown, err
	}
	return vote(code), nil
}

// codeBefore reads the bytes before an occurrence, and as many behind its first byte as the longest instruction has.
func (p *Program) codeBefore(o *occurrence, n uint64) ([]byte, error) {
	code := make([]byte, n+LongestInstruction)
	read, err := p.file.ReadAt(code, int64((o.offset-n)&(1<<62-1)))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading code: %w", err)
	}
	if uint64(read) < n {
		return nil, io.ErrUnexpectedEOF
	}
	clear(code[read:])
	return code, nil
}

// follow decodes code from each position up to the occurrence, which is at the length of the longest instruction before the
// end, and returns for each whether that arrives at it. It is unknown if an instruction cannot be decoded.
func follow(code []byte) []verdict {
	end := len(code) - LongestInstruction
	from := make([]verdict, end+1)
	from[end] = begins
	for at := end - 1; at >= 0; at-- { // an instruction leads to a later position, which is known
		switch next := at + lengthOf(code[at:]); {
		case next > end:
			from[at] = isNot
		case next > at:
			from[at] = from[next]
		}
	}
	return from
}

// lengthOf returns the length of an instruction, or 0 if it is not known.
func lengthOf(code []byte) int {
	switch {
	case bytes.HasPrefix(code, ENCLU):
		return len(ENCLU)
	case bytes.HasPrefix(code, ENDBR64):
		return len(ENDBR64)
	}
	i, err := x86asm.Decode(code, 64)
	if err != nil {
		return 0
	}
	return i.Len
}

// The addresses from which an occurrence without a function is decoded: from farthest to nearest bytes before it. Decoding
// from the middle of an instruction mostly finds the true instructions again after a few of them.
const (
	farthest = 160
	nearest  = 40
	// enough is the least number of these that must be decodable up to the occurrence, and agree in all but a tenth.
	enough = 20
)

// vote decodes from each of the addresses. They must agree, because a wrong answer would take a debug register for nothing,
// or hide an ENCLU.
func vote(code []byte) verdict {
	arrive, pass := 0, 0
	from := follow(code)
	for _, v := range from[:max(0, len(from)-nearest)] {
		switch v {
		case begins:
			arrive++
		case isNot:
			pass++
		}
	}
	switch all := arrive + pass; {
	case all < enough:
		return unknown
	case pass*10 <= all:
		return begins
	case arrive*10 <= all:
		return isNot
	}
	return unknown
}
