// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests to /dev/kvm, include/uapi/linux/kvm.h.
const (
	kvmCreateVM   = 0xae01
	kvmMmapSize   = 0xae04
	kvmCreateVCPU = 0xae41
	kvmSetMemory  = 0x4020ae46
	kvmRun        = 0xae80
	kvmSetRegs    = 0x4090ae82
	kvmGetSregs   = 0x8138ae83
	kvmSetSregs   = 0x4138ae84
	exitIO        = 2
	exitHLT       = 5
	exitMMIO      = 6
	exitIntr      = 10
	guestCode     = 0x1000
	guestMemory   = 64 << 10
	endPort       = 0x11
	reasonAt      = 8  // kvm_run.exit_reason
	portAt        = 34 // kvm_run.io.port
	slowExits     = 20
	slowExit      = 2 * time.Millisecond
)

// tiny runs a virtual machine that executes known numbers of CPUID, OUT, writes to a device and HLT in real mode. It
// prints how many exits it got, and stays until its input ends. The first exits of OUT take slowExit each.
func tiny(args []string) error {
	var n [4]uint16
	for i, arg := range args[len(args)-len(n):] {
		v, err := strconv.ParseUint(arg, 10, 15)
		if err != nil {
			return err
		}
		n[i] = uint16(v)
	}
	runtime.LockOSThread()
	began := time.Now()
	seen, err := runTiny(n)
	if err != nil {
		return err
	}
	fmt.Println(seen[exitIO], seen[exitMMIO], seen[exitHLT], time.Since(began).Seconds())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// instructions returns the instructions of the virtual machine. SI counts down.
func instructions(n [4]uint16) []byte {
	loop := func(times uint16, body ...byte) []byte {
		code := binary.LittleEndian.AppendUint16([]byte{0xbe}, times) // mov si, times
		code = append(code, body...)
		return append(code, 0x4e, 0x75, byte(-(len(body) + 3))) // dec si; jnz
	}
	return slices.Concat(
		loop(n[0], 0x0f, 0xa2),               // cpuid
		loop(n[1], 0xe6, 0x10),               // out 0x10, al
		[]byte{0xb8, 0x00, 0x80, 0x8e, 0xd8}, // mov ax, 0x8000; mov ds, ax: no memory is there
		loop(n[2], 0xa2, 0, 0),               // mov [0], al
		loop(n[3], 0xf4),                     // hlt
		[]byte{0xe6, endPort},
	)
}

func runTiny(n [4]uint16) (seen map[uint32]int, err error) {
	dev, err := unix.Open("/dev/kvm", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening /dev/kvm: %w", err)
	}
	call := func(fd int, request, arg uintptr) int {
		r, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, arg)
		if e != 0 && err == nil {
			err = fmt.Errorf("request %#x: %w", request, e)
		}
		return int(r)
	}
	vm := call(dev, kvmCreateVM, 0)
	memory, mapErr := unix.Mmap(-1, 0, guestMemory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if mapErr != nil {
		return nil, mapErr
	}
	copy(memory[guestCode:], instructions(n))
	region := struct{ slotFlags, guest, size, user uint64 }{0, 0, guestMemory, uint64(uintptr(unsafe.Pointer(&memory[0])))}
	call(vm, kvmSetMemory, uintptr(unsafe.Pointer(&region)))
	vcpu := call(vm, kvmCreateVCPU, 0)
	size := call(dev, kvmMmapSize, 0)
	if err != nil {
		return nil, err
	}
	state, err := unix.Mmap(vcpu, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	var special [312]byte
	call(vcpu, kvmGetSregs, uintptr(unsafe.Pointer(&special)))
	clear(special[:8])    // the base of CS
	clear(special[12:14]) // its selector
	call(vcpu, kvmSetSregs, uintptr(unsafe.Pointer(&special)))
	regs := [18]uint64{16: guestCode, 17: 2}
	call(vcpu, kvmSetRegs, uintptr(unsafe.Pointer(&regs)))
	seen = map[uint32]int{}
	for err == nil {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(vcpu), kvmRun, 0)
		if errors.Is(e, unix.EINTR) || errors.Is(e, unix.EAGAIN) {
			continue
		}
		if e != 0 {
			return nil, e
		}
		reason := binary.LittleEndian.Uint32(state[reasonAt:])
		seen[reason]++
		switch reason {
		case exitIO:
			if binary.LittleEndian.Uint16(state[portAt:]) == endPort {
				return seen, nil
			}
			if seen[reason] <= slowExits {
				time.Sleep(slowExit)
			}
		case exitHLT, exitMMIO, exitIntr:
		default:
			return nil, fmt.Errorf("the virtual machine left with reason %d", reason)
		}
	}
	return nil, err
}

// virtualize loads KVM, if the test on the host has put it there, and then runs two virtual machines at once.
func (a *agent) virtualize() error {
	modules, err := filepath.Glob("/kvm/*.ko")
	if err != nil || len(modules) == 0 {
		return err
	}
	began := time.Now()
	if err := loadModules(modules); err != nil {
		return err
	}
	if err := a.waitFor(`probe="vm_userspace_exit"`); err != nil {
		return err
	}
	var stop []func() error
	var out []*bufio.Reader
	for _, vm := range []string{
		"/qemu-tiny -name guest=one,debug-threads=on 1000 300 200 50", "/firecracker-tiny --id two 77 500 33 11",
	} {
		words := strings.Fields(vm)
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		from, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		out = append(out, bufio.NewReader(from))
		stop = append(stop, func() error { return errors.Join(in.Close(), cmd.Wait()) })
	}
	for i, r := range out {
		line, err := r.ReadString('\n')
		if err != nil {
			return fmt.Errorf("a virtual machine said %q: %w", line, err)
		}
		section("vm"+strconv.Itoa(i), line)
	}
	if err := a.waitFor(`vm="two"`, `vm="one"`); err != nil {
		return err
	}
	if err := a.metrics("virtual", "teescope_vm_", "teescope_probe_attached", "teescope_bpf_program_missed_runs_total"); err != nil {
		return err
	}
	for _, end := range stop {
		if err := end(); err != nil {
			return err
		}
	}
	section("took", time.Since(began).String())
	return nil
}

// waitFor waits until the exposition contains all texts.
func (a *agent) waitFor(texts ...string) error {
	err := eventually(fmt.Sprintf("the exposition contains %q", texts), func() bool {
		got, err := get("/metrics")
		return err == nil && !slices.ContainsFunc(texts, func(t string) bool { return !strings.Contains(got, t) })
	})
	if err != nil {
		a.log()
	}
	return err
}

// loadModules loads modules in this order.
func loadModules(files []string) error {
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("loading %s: %w", file, err)
		}
	}
	return nil
}
