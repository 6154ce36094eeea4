// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// misses runs a program whose threads preempt each other in the kernel until the agent has missed one of its events, and prints
// what it says then.
func misses() error {
	a, err := startAgent("agent")
	if err != nil {
		return err
	}
	program := exec.Command("/preempted")
	if err := program.Start(); err != nil {
		return err
	}
	defer func() {
		_ = program.Process.Kill()
		_ = program.Wait()
	}()
	for range 600 { // a miss is a matter of a second
		text, err := get("/metrics")
		if err != nil {
			return err
		}
		if missed(text) {
			section("exposition", text)
			return a.stop()
		}
		time.Sleep(200 * time.Millisecond)
	}
	a.log()
	return errors.New("no run of a program was missed")
}

// missed reports whether an exposition has missed runs.
func missed(text string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "teescope_bpf_program_missed_runs_total{") && !strings.HasSuffix(line, "} 0\n") {
			return true
		}
	}
	return false
}

// preempted makes system calls in one thread of one CPU. A thread of a higher priority wakes up in between, also while the eBPF
// program runs for the first one, and makes its own.
func preempted() error {
	var one unix.CPUSet
	one.Set(0)
	ready := make(chan error, 2)
	go func() {
		runtime.LockOSThread()
		ready <- errors.Join(unix.SchedSetaffinity(0, &one), unix.SchedSetAttr(0, &unix.SchedAttr{
			Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 10,
		}, 0))
		pause := unix.NsecToTimespec(50_000)
		for {
			_ = unix.Nanosleep(&pause, nil)
		}
	}()
	go func() {
		runtime.LockOSThread()
		ready <- unix.SchedSetaffinity(0, &one)
		for {
			calls(1000)
		}
	}()
	for range 2 {
		if err := <-ready; err != nil {
			return fmt.Errorf("preparing a thread: %w", err)
		}
	}
	select {}
}
