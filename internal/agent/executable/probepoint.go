// SPDX-License-Identifier: Apache-2.0

package executable

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// ProbePoint is an address in a file at which a probe can be set.
type ProbePoint struct {
	Offset  uint64
	Stepped bool // the kernel single-steps the instruction, which is expensive
}

// ENDBR64 is the first instruction of functions built for indirect branch tracking. It has no other effect, so
// the instruction after it is also executed once for each call.
var ENDBR64 = []byte{0xf3, 0x0f, 0x1e, 0xfa}

// LongestInstruction is the maximum length of an x86 instruction in bytes.
const LongestInstruction = 15

// ProbePoint returns where the probe of a function is set: at its first instruction, or at the second after an
// ENDBR64. It refuses instructions that the kernel cannot or must not execute at another address.
func (p *Program) ProbePoint(address uint64) (ProbePoint, error) {
	offset, ok := p.Offset(address, elf.PF_X)
	if !ok {
		return ProbePoint{}, fmt.Errorf("the function at %#x is in no executable part of the file", address)
	}
	code := make([]byte, len(ENDBR64)+LongestInstruction)
	n, err := p.file.ReadAt(code, int64(offset))
	if err != nil && !errors.Is(err, io.EOF) {
		return ProbePoint{}, fmt.Errorf("reading the function at %#x: %w", address, err)
	}
	code = code[:n]
	if bytes.HasPrefix(code, ENDBR64) {
		code, offset = code[len(ENDBR64):], offset+uint64(len(ENDBR64))
		if _, ok := p.Address(offset, elf.PF_X); !ok {
			return ProbePoint{}, fmt.Errorf("the function at %#x ends after its first instruction", address)
		}
	}
	stepped, err := check(code)
	if err != nil {
		return ProbePoint{}, fmt.Errorf("the function at %#x: %w", address, err)
	}
	return ProbePoint{offset, stepped}, nil
}

// Begins returns the addresses of code at which an instruction begins for certain, in ascending order. A probe in the middle of
// an instruction would change the program. Begins reads the symbols once.
func (p *Program) Begins(addresses ...uint64) (certain []uint64, err error) {
	var all []occurrence
	for _, address := range addresses {
		for _, s := range p.segments {
			if offset, ok := p.Offset(address, elf.PF_X); ok && offset-s.Off < s.Filesz && address-s.Vaddr == offset-s.Off {
				all = append(all, occurrence{address: address, offset: offset, before: offset - s.Off})
				break
			}
		}
	}
	slices.SortFunc(all, func(a, b occurrence) int { return cmp.Compare(a.address, b.address) })
	if err := p.enclose(all); err != nil {
		return nil, err
	}
	for i := range all {
		is, err := p.judge(&all[i])
		if err != nil {
			return nil, err
		}
		if is == begins {
			certain = append(certain, all[i].address)
		}
	}
	return certain, nil
}

// errUnsafe marks instructions on which no probe is set.
var errUnsafe = errors.New("its first instruction cannot be probed")

// check decodes the instruction that a probe would replace, and reports whether the kernel would single-step it.
// It refuses instructions that the decoder does not support, such as ENCLU (0f 01 d7).
func check(code []byte) (stepped bool, err error) {
	i, err := x86asm.Decode(code, 64)
	if err != nil {
		return false, fmt.Errorf("%w: %w", errUnsafe, err)
	}
	for _, prefix := range i.Prefix {
		switch prefix &^ (x86asm.PrefixImplicit | x86asm.PrefixIgnored) {
		// The kernel refuses these prefixes (arch/x86/kernel/uprobes.c, is_prefix_bad). Segment prefixes of
		// threads are refused too: no compiled function begins with one, but Gramine's counters use them.
		case x86asm.PrefixLOCK, x86asm.PrefixES, x86asm.PrefixCS, x86asm.PrefixSS, x86asm.PrefixDS,
			x86asm.PrefixFS, x86asm.PrefixGS:
			return false, fmt.Errorf("%w: it has the prefix %v", errUnsafe, prefix)
		}
	}
	switch i.Op {
	case x86asm.INT, x86asm.INTO, x86asm.ICEBP, x86asm.UD0, x86asm.UD1, x86asm.UD2, x86asm.HLT,
		x86asm.SYSCALL, x86asm.SYSENTER, x86asm.SYSEXIT, x86asm.SYSRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ:
		return false, fmt.Errorf("%w: %v", errUnsafe, i.Op)
	}
	return !emulated(code, i), nil
}

// emulated reports whether every kernel from 5.15 on emulates the instruction: push of a register, one-byte nop,
// relative jump and call (branch_setup_xol_ops and push_setup_xol_ops in arch/x86/kernel/uprobes.c).
func emulated(code []byte, i x86asm.Inst) bool {
	if code[0]&0xf0 == 0x40 && i.Op == x86asm.PUSH { // REX prefix
		code = code[1:]
	}
	op := code[0]
	return op >= 0x50 && op <= 0x57 || op == 0x90 || op == 0xe8 || op == 0xe9 || op == 0xeb
}
