// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// Counter is a performance counter. Every Period-th event runs a program.
type Counter struct {
	Type   uint32 // PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, ...
	Config uint64
	Period uint64
	// Frequency, if not 0, is the number of samples per second. The kernel adapts the period to it.
	Frequency uint64
}

// AttachCounter opens the counter on each of these CPUs, which are on line, and attaches the program. If the machine has no
// such counter (no PMU, as in most virtual machines), it returns an error and nothing stays open.
func (o *Object) AttachCounter(probe, program string, c Counter, online []int) (Status, error) {
	prog, err := o.Load(program)
	if err != nil {
		return Status{Probe: probe, Mechanism: NotAttached, Reason: Reason(err)}, err
	}
	events := &perCPU{open: func(cpu int) (io.Closer, error) { return attachCounter(prog, c, cpu) }}
	if err := events.follow(online); err != nil {
		err = errors.Join(err, events.Close(), prog.Close())
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV) {
			err = fmt.Errorf("no PMU on this machine (%w)", err)
		}
		err = fmt.Errorf("attaching %s: %w", probe, err)
		return Status{Probe: probe, Mechanism: NotAttached, Reason: Reason(err)}, err
	}
	o.keep(program, prog, events)
	o.counters[program] = events
	return Status{Probe: probe, Mechanism: PerfEvent, Program: program}, nil
}

// FollowCPUs opens the counter of a program on new CPUs, and closes it on CPUs that went off line. An error names a CPU on
// which it could not be opened. The others continue. It is tried again in the next call.
func (o *Object) FollowCPUs(program string, online []int) error {
	events := o.counters[program]
	if events == nil {
		return fmt.Errorf("following the CPUs of %s: %w", program, errNotProbe)
	}
	return events.follow(online)
}

// SetFrequency changes how often the counter of a program runs it, in times a second and CPU. 0 stops the counter. The
// counter must have a frequency, and the change needs no privilege.
func SetFrequency(o *Object, program string, hertz int) error {
	events := o.counters[program]
	if events == nil {
		return fmt.Errorf("setting the frequency of %s: %w", program, errNotProbe)
	}
	var errs []error
	for _, event := range events.events {
		errs = append(errs, event.(*eventLink).setFrequency(uint64(hertz)))
	}
	return errors.Join(errs...)
}

// perCPU is an event that is opened on each CPU that is on line.
type perCPU struct {
	open   func(cpu int) (io.Closer, error)
	events map[int]io.Closer
}

// follow opens the event on new CPUs and closes it on those that are not on line any more. A CPU that has gone meanwhile
// (ENODEV) is omitted, unless it is the only one.
func (p *perCPU) follow(online []int) error {
	if p.events == nil {
		p.events = map[int]io.Closer{}
	}
	var errs []error
	for cpu, event := range p.events {
		if !slices.Contains(online, cpu) {
			errs = append(errs, event.Close())
			delete(p.events, cpu)
		}
	}
	for _, cpu := range online {
		if p.events[cpu] != nil {
			continue
		}
		event, err := p.open(cpu)
		switch {
		case err == nil:
			p.events[cpu] = event
		case errors.Is(err, unix.ENODEV) && len(p.events) > 0:
		default:
			return errors.Join(append(errs, err)...) // the others have the same problem
		}
	}
	return errors.Join(errs...)
}

// Close closes the event on all CPUs.
func (p *perCPU) Close() error {
	var errs []error
	for _, event := range p.events {
		errs = append(errs, event.Close())
	}
	p.events = nil
	return errors.Join(errs...)
}

// kprobes is the directory of the PMU of kprobes.
var kprobes = hostfs.At("/sys/bus/event_source/devices/kprobe")

// attachAt attaches a program to the function at an address of the kernel, or to its return. The library takes names only.
func attachAt(address uint64, prog *ebpf.Program, returns bool) (io.Closer, error) {
	const anyProcess, firstCPU, noGroup = -1, 0, -1
	attr := unix.PerfEventAttr{Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Ext2: address}
	if err := scanFile("type", "%d", &attr.Type); err != nil {
		return nil, fmt.Errorf("looking for kprobes: %w", err)
	}
	if returns {
		var bit uint
		if err := scanFile("format/retprobe", "config:%d", &bit); err != nil {
			return nil, fmt.Errorf("looking for kretprobes: %w", err)
		}
		attr.Config = 1 << bit
	}
	fd, err := unix.PerfEventOpen(&attr, anyProcess, firstCPU, noGroup, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("opening a kprobe: %w", err)
	}
	l, err := link.AttachRawLink(link.RawLinkOptions{Target: fd, Program: prog, Attach: ebpf.AttachPerfEvent})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attaching to a kprobe: %w", err), unix.Close(fd))
	}
	return &eventLink{Link: l, fd: fd}, nil
}

// scanFile reads one value of a file about kprobes.
func scanFile(name, format string, value any) error {
	const most = 128 // bytes
	data, err := kprobes.Read(most, name)
	if err != nil {
		return err
	}
	if _, err := fmt.Sscanf(string(data), format, value); err != nil {
		return fmt.Errorf("reading %s: %w", kprobes.Path(name), err)
	}
	return nil
}

// eventLink is a link to a perf event, which it closes too.
type eventLink struct {
	link.Link
	fd int
	// hasPeriod says that the kernel turned the frequency into a period in nanoseconds when the event was opened, as it does for
	// its clocks (perf_swevent_init_hrtimer in kernel/events/core.c). Setting a frequency would then set a period of as many
	// nanoseconds.
	hasPeriod bool
}

// setFrequency changes how often the event overflows. 0 disables it.
func (l *eventLink) setFrequency(hertz uint64) error {
	if hertz == 0 {
		if err := unix.IoctlSetInt(l.fd, unix.PERF_EVENT_IOC_DISABLE, 0); err != nil {
			return fmt.Errorf("stopping a counter: %w", err)
		}
		return nil
	}
	value := hertz
	if l.hasPeriod {
		value = uint64(time.Second) / hertz
	}
	// The kernel reads the number from memory.
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.PERF_EVENT_IOC_PERIOD, uintptr(unsafe.Pointer(&value))); errno != 0 {
		return fmt.Errorf("setting the frequency of a counter: %w", errno)
	}
	if err := unix.IoctlSetInt(l.fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return fmt.Errorf("starting a counter: %w", err)
	}
	return nil
}

// Close detaches the program and closes the event.
func (l *eventLink) Close() error { return errors.Join(l.Link.Close(), unix.Close(l.fd)) }

func attachCounter(prog *ebpf.Program, c Counter, cpu int) (io.Closer, error) {
	attr := unix.PerfEventAttr{
		Type: c.Type, Config: c.Config, Sample: c.Period,
		Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
	}
	if c.Frequency > 0 {
		attr.Sample, attr.Bits = c.Frequency, unix.PerfBitFreq
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
	return &eventLink{Link: l, fd: fd, hasPeriod: c.Type == unix.PERF_TYPE_SOFTWARE}, nil
}
