// SPDX-License-Identifier: Apache-2.0

package nested

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// The measured program calls its root this often, and each root calls an empty function this often.
const (
	rootCalls  = 20
	emptyCalls = 100
	// rounds is the number of rounds of a measurement. Other programs on the machine make the results differ.
	rounds = 5
	// measureLimit ends a measurement that hangs.
	measureLimit = 20 * time.Second
)

// The empty functions: the kernel emulates the first instruction of one, and executes that of the other in a single step.
var (
	emulated = []byte{
		0x55,             // push %rbp
		0x48, 0x89, 0xe5, // mov %rsp, %rbp
		0x5d, // pop %rbp
		0xc3, // ret
	}
	stepped = []byte{
		0x48, 0x83, 0xec, 0x08, // sub $8, %rsp
		0x48, 0x83, 0xc4, 0x08, // add $8, %rsp
		0xc3, // ret
	}
)

// Measure measures the cost of probes on this machine, with a program that calls an empty function. The time of that function is
// what probes add to the call itself. The time of the function around it, divided by the calls, is what they add to that
// function.
func Measure(ctx context.Context) (Costs, error) {
	var c Costs
	for _, k := range []struct {
		to   *Cost
		leaf []byte
	}{{&c.Emulated, emulated}, {&c.Stepped, stepped}} {
		var inside, whole []time.Duration
		for range rounds {
			one, err := measure(ctx, k.leaf)
			if err != nil {
				return Costs{}, fmt.Errorf("measuring the cost of a probe: %w", err)
			}
			inside, whole = append(inside, one.Inside), append(whole, one.Whole)
		}
		slices.Sort(inside)
		slices.Sort(whole)
		*k.to = Cost{Inside: inside[rounds/2], Whole: whole[rounds/2], Low: whole[0], High: whole[rounds-1]}
	}
	return c, nil
}

func measure(ctx context.Context, leaf []byte) (c Cost, err error) {
	image, root, empty := loop(leaf)
	file, err := inMemory(image)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	program, err := executable.Read(file)
	if err != nil {
		return c, err
	}
	functions := []Function{{Name: "root"}, {Name: "empty"}}
	for i, address := range []uint64{root, empty} {
		point, err := program.ProbePoint(address)
		if err != nil {
			return c, err
		}
		functions[i].Points = []executable.ProbePoint{point}
	}
	t, err := Open(Options{File: file, Functions: functions, Ancestor: os.Getpid()})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, measureLimit)
	defer cancel()
	if err := exec.CommandContext(ctx, hostfs.DescriptorPath(int(file.Fd()))).Run(); err != nil {
		return c, err
	}
	if err := t.Stop(); err != nil {
		return c, err
	}
	times := t.Read().Functions
	if n := times[1].Calls; n != rootCalls*emptyCalls {
		return c, fmt.Errorf("%d of %d calls were seen", n, rootCalls*emptyCalls)
	}
	// The medians: interrupts and other programs make some calls longer.
	c.Inside = time.Duration(times[1].Quantile(0.5))
	c.Whole = max(c.Inside, time.Duration(times[0].Quantile(0.5))/emptyCalls)
	return c, nil
}

// inMemory returns a file in memory that can be executed.
func inMemory(image []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("teescope-probe-cost", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("teescope-probe-cost", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("making a program in memory: %w", err)
	}
	written := os.NewFile(uintptr(fd), "memfd")
	defer func() { _ = written.Close() }() // the other descriptor reads the same memory
	if _, err := written.Write(image); err != nil {
		return nil, fmt.Errorf("making a program in memory: %w", err)
	}
	// A file that is open for writing cannot be executed.
	file, err := os.Open(hostfs.DescriptorPath(fd))
	if err != nil {
		return nil, fmt.Errorf("making a program in memory: %w", err)
	}
	return file, nil
}

// loop returns an ELF file that calls a root, which calls the empty function, and the addresses of both.
func loop(leaf []byte) (image []byte, root, empty uint64) {
	const base, headers = 0x400000, 64 + 56
	var code bytes.Buffer
	put := func(b ...byte) { code.Write(b) }
	number := func(n int) { _ = binary.Write(&code, binary.LittleEndian, int32(n)) } // a buffer returns no error
	const startSize, rootSize = 24, 22
	put(0xbb) // mov $rootCalls, %ebx
	number(rootCalls)
	put(0xe8) // call root
	number(startSize - (code.Len() + 4))
	put(0xff, 0xcb)                   // dec %ebx
	put(0x75, 0xf7)                   // jnz to the call
	put(0xb8, 0x3c, 0x00, 0x00, 0x00) // mov $60, %eax: exit
	put(0x31, 0xff)                   // xor %edi, %edi
	put(0x0f, 0x05)                   // syscall
	put(0x90)                         // nop
	root = base + headers + uint64(code.Len())
	put(0x41, 0x54) // push %r12
	put(0x41, 0xbc) // mov $emptyCalls, %r12d
	number(emptyCalls)
	put(0xe8) // call empty
	number(startSize + rootSize - (code.Len() + 4))
	put(0x41, 0xff, 0xcc) // dec %r12d
	put(0x75, 0xf6)       // jnz to the call
	put(0x41, 0x5c)       // pop %r12
	put(0xc3)             // ret
	for code.Len() < startSize+rootSize {
		put(0x90)
	}
	empty = base + headers + uint64(code.Len())
	put(leaf...)

	size := uint64(headers + code.Len())
	var out bytes.Buffer
	for _, part := range []any{
		elf.Header64{
			Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
			Entry: base + headers, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
		},
		elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: base, Paddr: base, Filesz: size, Memsz: size, Align: 0x1000},
	} {
		_ = binary.Write(&out, binary.LittleEndian, part) // fixed size, and a buffer returns no error
	}
	out.Write(code.Bytes())
	return out.Bytes(), root, empty
}
