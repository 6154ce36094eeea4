// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Breakpoints is a program that runs before a thread executes an instruction. It uses the processor's debug registers, which
// change nothing in the memory of the process. So any instruction is possible, including those of the vDSO, where no other probe
// works. A processor has four such registers. Debuggers use them too.
type Breakpoints struct{ prog *ebpf.Program }

// LoadBreakpoints loads a program of the type perf_event. Loading needs CAP_PERFMON. Setting needs CAP_PERFMON or
// CAP_SYS_PTRACE, and more on kernels with kernel.perf_event_paranoid above 2.
func LoadBreakpoints(o *Object, name string) (*Breakpoints, error) {
	prog, err := o.Load(name)
	if err != nil {
		return nil, err
	}
	o.keep(name, prog)
	return &Breakpoints{prog: prog}, nil
}

// Values of perf_event_attr that x/sys lacks: HW_BREAKPOINT_X, and the bit remove_on_exec (Linux 5.13).
const (
	onExecution  = 4
	removeOnExec = 1 << 36
)

// Set sets a breakpoint at an address of a thread, and of all threads and processes that it creates later, until
// they execute another program or the result is closed. The breakpoint is disabled at first.
func (b *Breakpoints) Set(tid int, address uint64) (*Breakpoint, error) {
	const anyCPU, noGroup = -1, -1
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_BREAKPOINT, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bp_type: onExecution, Ext1: address, Ext2: uint64(unsafe.Sizeof(uintptr(0))),
		Sample: 1, // every time
		Bits:   unix.PerfBitDisabled | unix.PerfBitInherit | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv | removeOnExec,
	}
	fd, err := unix.PerfEventOpen(&attr, tid, anyCPU, noGroup, unix.PERF_FLAG_FD_CLOEXEC)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("setting a breakpoint: %w; kernel.perf_event_paranoid must be 2 or less", err)
	case errors.Is(err, unix.ENOSPC):
		return nil, fmt.Errorf("setting a breakpoint: %w: a debugger uses all debug registers", err)
	case err != nil:
		return nil, fmt.Errorf("setting a breakpoint: %w", err)
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, b.prog.FD()); err != nil {
		return nil, errors.Join(fmt.Errorf("attaching to a breakpoint: %w", err), unix.Close(fd))
	}
	return &Breakpoint{fd: fd}, nil
}

// Breakpoint is a breakpoint of a thread and of those that inherited it.
type Breakpoint struct{ fd int }

// Switch enables or disables the breakpoint, including inherited ones.
func (b *Breakpoint) Switch(on bool) error {
	request := uint(unix.PERF_EVENT_IOC_DISABLE)
	if on {
		request = unix.PERF_EVENT_IOC_ENABLE
	}
	if err := unix.IoctlSetInt(b.fd, request, 0); err != nil {
		return fmt.Errorf("switching a breakpoint: %w", err)
	}
	return nil
}

// Close removes the breakpoint, including inherited ones.
func (b *Breakpoint) Close() error { return unix.Close(b.fd) }
