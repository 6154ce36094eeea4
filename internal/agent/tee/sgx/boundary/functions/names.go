// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"github.com/teescope/teescope/internal/agent/executable"
)

// ecallNames returns the names of an enclave's ECALLs by their numbers. No table of the application has them. But
// the SDK's tool (sgx_edger8r) writes a stub for each ECALL, and the code of the stub has the number:
//
//	sgx_status_t NAME(sgx_enclave_id_t eid, ...) { ... sgx_ecall(eid, NUMBER, &ocall_table, &ms); ... }
//
// So ecallNames finds the functions that pass this table, and the number that each passes with it. Stubs are
// global symbols. A function with several such calls has inlined stubs and is not a stub. A number that two
// functions pass has no name.
func ecallNames(p *executable.Program, table uint64) (map[uint32]string, error) {
	refers, err := references(p, table)
	if err != nil || len(refers) == 0 {
		return nil, err
	}
	slices.Sort(refers)
	callers := map[uint64]executable.Function{}
	err = p.Functions(func(f executable.Function) {
		if !f.Global || f.Name == "" || f.Size > longestStub || len(callers) >= maxSpots {
			return
		}
		if i, _ := slices.BinarySearch(refers, f.Address); i < len(refers) && refers[i]-f.Address < f.Size {
			callers[f.Address] = f
		}
	})
	names := map[uint32]string{}
	for _, f := range callers {
		numbers := numbersPassed(p, f, table)
		if len(numbers) != 1 {
			continue
		}
		if name, claimed := names[numbers[0]]; claimed && name != f.Name {
			names[numbers[0]] = ""
			continue
		}
		names[numbers[0]] = f.Name
	}
	return names, err
}

const (
	longestStub   = 4 << 10 // bytes of a function
	maxReferences = 1024    // to one table
	maxCode       = 256 << 20
)

// references finds the instructions that load an address as the third argument of a call: lea ADDRESS(%rip),%rdx
// or mov $ADDRESS,%edx. Other bytes may look the same. This does no harm, because functions with a reference are
// decoded later.
func references(p *executable.Program, to uint64) ([]uint64, error) {
	var found []uint64
	read := int64(0)
	err := p.Code(maxCode, func(text *io.SectionReader, address uint64) error {
		if read += text.Size(); read > maxCode {
			return errors.New("too much code to look for ECALLs in")
		}
		buffer := make([]byte, executable.Chunk)
		for at := int64(0); at < text.Size(); at += executable.Chunk - executable.LongestInstruction {
			n, err := text.ReadAt(buffer, at)
			if err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("reading code: %w", err)
			}
			found = appendReferences(found, buffer[:n], address+uint64(at), to)
			if len(found) > maxReferences {
				return fmt.Errorf("the OCALL table at %#x is used in more than %d instructions", to, maxReferences)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

var (
	leaRDX = []byte{0x48, 0x8d, 0x15} // lea disp32(%rip),%rdx
	movEDX = byte(0xba)               // mov imm32,%edx
)

func appendReferences(found []uint64, code []byte, address, to uint64) []uint64 {
	each := func(pattern []byte, f func(at int)) {
		for at := 0; ; at++ {
			next := bytes.Index(code[at:], pattern)
			if next < 0 {
				return
			}
			at += next
			f(at)
		}
	}
	each(leaRDX, func(at int) {
		if end := at + len(leaRDX) + 4; end <= len(code) {
			disp := int32(binary.LittleEndian.Uint32(code[end-4:]))
			if address+uint64(end)+uint64(int64(disp)) == to {
				found = append(found, address+uint64(at))
			}
		}
	})
	if to < 1<<31 { // a program that is linked to a fixed address
		each(binary.LittleEndian.AppendUint32([]byte{movEDX}, uint32(to)), func(at int) {
			found = append(found, address+uint64(at))
		})
	}
	return found
}

// numbersPassed decodes a function and returns the numbers that it passes as second argument together with the
// table as third, in calls and in tail jumps. Arguments that cannot be followed are ignored.
func numbersPassed(p *executable.Program, f executable.Function, table uint64) []uint32 {
	code, ok := p.Bytes(f.Address, f.Size)
	if !ok {
		return nil
	}
	var numbers []uint32
	var a arguments
	for at := 0; at < len(code); {
		if bytes.HasPrefix(code[at:], executable.ENDBR64) {
			at += len(executable.ENDBR64)
			continue
		}
		i, err := x86asm.Decode(code[at:], 64)
		if err != nil {
			return nil
		}
		at += i.Len
		if i.Op == x86asm.CALL || i.Op == x86asm.JMP {
			if a.known && a.table {
				numbers = append(numbers, a.number)
			}
			a = arguments{}
			continue
		}
		a.follow(i, f.Address+uint64(at), table)
	}
	return numbers
}

// arguments has the known values of the second and third argument of the next call.
type arguments struct {
	number       uint32
	known, table bool
}

// follow applies one instruction. next is the address of the instruction after it.
func (a *arguments) follow(i x86asm.Inst, next, table uint64) {
	switch i.Op {
	case x86asm.CMP, x86asm.TEST: // these write no register
		return
	case x86asm.CDQ, x86asm.CQO, x86asm.MUL, x86asm.DIV, x86asm.IDIV, x86asm.RDTSC, x86asm.CPUID, x86asm.XCHG,
		x86asm.SYSCALL, x86asm.MOVSB, x86asm.MOVSD, x86asm.MOVSQ, x86asm.MOVSW:
		*a = arguments{}
		return
	}
	register, ok := i.Args[0].(x86asm.Reg)
	if !ok {
		return
	}
	switch register {
	case x86asm.ESI, x86asm.RSI, x86asm.SI, x86asm.SIB:
		value, isConst := i.Args[1].(x86asm.Imm)
		switch {
		case i.Op == x86asm.MOV && isConst:
			a.number, a.known = uint32(value), true
		case i.Op == x86asm.XOR && i.Args[1] == i.Args[0]:
			a.number, a.known = 0, true
		default:
			a.known = false
		}
	case x86asm.EDX, x86asm.RDX, x86asm.DX, x86asm.DL, x86asm.DH:
		a.table = false
		switch from := i.Args[1].(type) {
		case x86asm.Mem:
			a.table = i.Op == x86asm.LEA && from.Base == x86asm.RIP && from.Index == 0 && next+uint64(from.Disp) == table
		case x86asm.Imm:
			a.table = i.Op == x86asm.MOV && uint64(from) == table
		}
	}
}
