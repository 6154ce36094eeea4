// SPDX-License-Identifier: Apache-2.0

package executable

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Limits of the search for USDT probes.
const (
	maxUSDTNotes = 4 << 20 // bytes. Those of a database or an interpreter have less than 100 kB.
	maxUSDTSites = 64      // of one probe: compilers copy a probe with its function
)

// USDT is an offset in a file at which a USDT probe (sys/sdt.h) is.
type USDT struct {
	Offset    uint64 // of the instruction, in the file
	Semaphore uint64 // offset in the file of the counter that switches the probe on; 0 if it is always on
	Arguments string // as the compiler wrote them: "-4@%edi 8@16(%rsp)"
}

// USDT returns the sites of a probe.
func (p *Program) USDT(provider, name string) ([]USDT, error) {
	base, notes, err := p.usdtNotes()
	if err != nil {
		return nil, err
	}
	var all []USDT
	for len(notes) > 0 {
		var d []byte
		var ok bool
		if d, notes, ok = nextUSDT(notes); !ok {
			return nil, errors.New("reading USDT probes: a note is damaged")
		}
		u, ok, err := p.usdt(d, base, provider, name)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if all = append(all, u); len(all) > maxUSDTSites {
			return nil, fmt.Errorf("the USDT probe %s:%s is at more than %d sites", provider, name, maxUSDTSites)
		}
	}
	return all, nil
}

// usdtNotes returns the notes, and the address of the section by which a tool can move them all. It is 0 if there is none.
func (p *Program) usdtNotes() (base uint64, notes []byte, err error) {
	if int(p.sectionNames) >= len(p.sections) {
		return 0, nil, nil
	}
	names := &names{file: p.file, from: p.sections[p.sectionNames].Off, windows: maxSections}
	for _, s := range p.sections {
		switch names.at(s.Name) {
		case ".stapsdt.base":
			base = s.Addr
		case ".note.stapsdt":
			if notes != nil || s.Size > maxUSDTNotes || elf.SectionType(s.Type) != elf.SHT_NOTE {
				return 0, nil, errors.New("reading USDT probes: too many, in several sections, or in one of another type")
			}
			notes = make([]byte, s.Size)
			if _, err := p.file.ReadAt(notes, int64(s.Off&(1<<62-1))); err != nil && !errors.Is(err, io.EOF) {
				return 0, nil, fmt.Errorf("reading USDT probes: %w", err)
			}
		}
	}
	return base, notes, nil
}

// nextUSDT returns the description of the first note, which is empty if it is not a USDT probe, and the notes after it.
func nextUSDT(notes []byte) (description, rest []byte, ok bool) {
	const header = 12
	if len(notes) < header {
		return nil, nil, false
	}
	nameSize, size := uint64(binary.LittleEndian.Uint32(notes)), uint64(binary.LittleEndian.Uint32(notes[4:]))
	kind := binary.LittleEndian.Uint32(notes[8:])
	from := header + (nameSize+3)&^3
	end := from + (size+3)&^3
	if from+size > uint64(len(notes)) {
		return nil, nil, false
	}
	if kind == 3 && string(notes[header:header+nameSize]) == "stapsdt\x00" {
		description = notes[from : from+size]
	}
	return description, notes[min(end, uint64(len(notes))):], true
}

// usdt reads a description. It returns false if that is another probe.
func (p *Program) usdt(d []byte, base uint64, provider, name string) (USDT, bool, error) {
	const addresses = 24
	if len(d) < addresses {
		return USDT{}, false, nil
	}
	texts := bytes.SplitN(d[addresses:], []byte{0}, 4)
	if len(texts) < 3 || string(texts[0]) != provider || string(texts[1]) != name {
		return USDT{}, false, nil
	}
	at, linked, semaphore := binary.LittleEndian.Uint64(d), binary.LittleEndian.Uint64(d[8:]), binary.LittleEndian.Uint64(d[16:])
	moved := uint64(0)
	if base != 0 && linked != 0 {
		moved = base - linked
	}
	u := USDT{Arguments: string(texts[2])}
	var ok bool
	if u.Offset, ok = p.Offset(at+moved, elf.PF_X); !ok {
		return u, false, fmt.Errorf("the USDT probe %s:%s at %#x is in no executable part of the file", provider, name, at)
	}
	if code, _ := p.Bytes(at+moved, 1); code[0] != nop {
		return u, false, fmt.Errorf("there is no nop at the USDT probe %s:%s at %#x", provider, name, at)
	}
	if semaphore != 0 {
		if u.Semaphore, ok = p.Offset(semaphore+moved, elf.PF_W); !ok {
			return u, false, fmt.Errorf("the semaphore of the USDT probe %s:%s is in no part of the file that can be written", provider, name)
		}
	}
	return u, true, nil
}

// nop is the instruction of one byte at each USDT probe.
const nop = 0x90
