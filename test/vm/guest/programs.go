// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// program runs the program that the name of this binary selects.
func program(name string, args []string) error {
	switch name {
	case "known": // N system calls
		n, err := strconv.Atoi(args[0])
		calls(n)
		return err
	case "steady": // N system calls every tenth of a second, until it is stopped
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		steady(n)
		return nil
	case "hopper": // N system calls in a thread on each CPU
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		return hop(n)
	case "zeros": // prints N bytes
		n, err := strconv.Atoi(args[0])
		if err == nil {
			_, err = os.Stdout.Write(make([]byte, n))
		}
		return err
	case "spinner": // uses two seconds of CPU time in spin
		return spinFor(2 * time.Second)
	case "reader": // reads a disk
		return readDisk(args)
	case "qemu-tiny", "firecracker-tiny": // a virtual machine with known exits
		return tiny(args)
	case "competes": // threads that wait for one CPU, until the end of input
		return compete()
	case "preempted": // a thread in system calls that another thread interrupts with its own, until it is killed
		return preempted()
	case "threads": // threads in different cgroups, after a line of input
		return threads()
	case "burner": // uses all CPU time that it gets, after a line of input
		return burn()
	}
	return fmt.Errorf("there is no program %q", name)
}

// calls has no check of the stack, after which a function begins again and a probe on it counts twice.
//
//go:noinline
//go:nosplit
func calls(n int) {
	for range n {
		_, _, _ = syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
	}
}

// steady prints the number of its calls when it is stopped. It catches up after delays. Its ticker and time.Since do
// not depend on the wall clock.
func steady(n int) {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	const every = 100 * time.Millisecond
	began, made := time.Now(), 0
	for tick := time.NewTicker(every); ; {
		select {
		case <-stop:
			fmt.Println(made)
			return
		case <-tick.C:
			due := int(time.Since(began)/every) * n
			calls(due - made)
			made = due
		}
	}
}

// hop makes the calls on one CPU after the other, as far as its affinity allows.
func hop(n int) error {
	runtime.LockOSThread()
	for cpu := range runtime.NumCPU() {
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("going to CPU %d: %w", cpu, err)
		}
		calls(n)
	}
	return nil
}

func burn() error {
	var b [1]byte
	if _, err := os.Stdin.Read(b[:]); err != nil {
		return err
	}
	memory := bytes.Repeat([]byte{1}, 8<<20) // counted in its group, because the program waited for the move
	for {
		memory[0]++
	}
}

// spinFor calls spin for so much CPU time, and prints the CPU time that the process used since its start.
func spinFor(d time.Duration) error {
	began, used := time.Duration(0), time.Duration(0)
	for began == 0 || used-began < d {
		var usage unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
			return err
		}
		used = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		if began == 0 {
			began = used
		}
		spin()
	}
	return os.WriteFile("/spun", fmt.Appendln(nil, used.Seconds()), 0o600)
}

// spun keeps the compiler from removing the loop.
var spun atomic.Int64

//go:noinline
func spin() {
	for range 1_000_000 {
		spun.Add(1)
	}
}

// known runs the program with known system calls.
func known(calls string) error {
	if out, err := exec.Command("/known", calls).CombinedOutput(); err != nil {
		return fmt.Errorf("running the known program: %w\n%s", err, out)
	}
	return nil
}

// running is a program that runs until it is stopped.
type running struct {
	cmd *exec.Cmd
	out bytes.Buffer
}

func start(name string, args ...string) (*running, error) {
	r := &running{cmd: exec.Command("/"+name, args...)}
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	return r, r.cmd.Start()
}

// stop ends the program and returns its output.
func (r *running) stop() (string, error) {
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return "", err
	}
	err := r.cmd.Wait()
	return strings.TrimSpace(r.out.String()), err
}
