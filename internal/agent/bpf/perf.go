// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Counter is a performance counter. Every Period-th event runs a program.
type Counter struct {
	Type   uint32 // PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, ...
	Config uint64
	Period uint64
}

// AttachCounter opens the counter on each CPU and attaches the program. If the machine has no such
// counter (no PMU, as in most virtual machines), it returns an error and nothing stays open.
func (o *Object) AttachCounter(probe, program string, c Counter, cpus []int) (Status, error) {
	prog, err := o.Load(program)
	if err != nil {
		return Status{Probe: probe, Mechanism: NotAttached, Reason: Reason(err)}, err
	}
	var opened []io.Closer
	for _, cpu := range cpus {
		event, err := attachCounter(prog, c, cpu)
		if err != nil {
			for _, e := range opened {
				_ = e.Close()
			}
			_ = prog.Close()
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV) {
				err = fmt.Errorf("no PMU on this machine (%w)", err)
			}
			err = fmt.Errorf("attaching %s: %w", probe, err)
			return Status{Probe: probe, Mechanism: NotAttached, Reason: Reason(err)}, err
		}
		opened = append(opened, event)
	}
	o.keep(program, prog, opened...)
	return Status{Probe: probe, Mechanism: PerfEvent, Program: program}, nil
}

func attachCounter(prog *ebpf.Program, c Counter, cpu int) (io.Closer, error) {
	attr := unix.PerfEventAttr{
		Type: c.Type, Config: c.Config, Sample: c.Period,
		Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
	}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("opening the counter on CPU %d: %w", cpu, err)
	}
	l, err := link.AttachRawLink(link.RawLinkOptions{Target: fd, Program: prog, Attach: ebpf.AttachPerfEvent})
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("attaching to the counter on CPU %d: %w", cpu, err)
	}
	return closerFunc(func() error { return errors.Join(l.Close(), unix.Close(fd)) }), nil
}
