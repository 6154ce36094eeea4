// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// anyCore leaves the choice of the core to the scheduler.
const anyCore = -1

// child is a program that bench started. Cancelling its context kills it.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	log  bytes.Buffer
}

// outputMax is the maximum size of a child's output. A tracer's table of every thread fits, and so do three hours of a
// client that reports every second.
const outputMax = 1 << 20

// Write keeps the child's output up to a limit.
func (c *child) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.log.Len() > outputMax {
		c.log.Reset()
	}
	return c.log.Write(p)
}

func (c *child) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.String()
}

// startOn starts a program bound to one core. A child inherits the affinity of the thread that forks it, so that its
// first instruction already runs there.
func startOn(ctx context.Context, core int, name string, args ...string) (*child, error) {
	c := &child{cmd: exec.CommandContext(ctx, name, args...), done: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = c, c
	c.cmd.WaitDelay = time.Second
	if err := startBound(c.cmd, core); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		// The code that waits for the child's result handles how it ended.
		_ = c.cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

func startBound(cmd *exec.Cmd, core int) error {
	if core == anyCore {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, bound unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	bound.Set(core)
	if err := unix.SchedSetaffinity(0, &bound); err != nil {
		return fmt.Errorf("binding to core %d: %w", core, err)
	}
	err := cmd.Start()
	if back := unix.SchedSetaffinity(0, &before); err == nil && back != nil {
		err = back
	}
	return err
}

// stop terminates the child and kills it when it does not end.
func (c *child) stop() { c.end(syscall.SIGTERM, 5*time.Second) }

// end is like stop with another signal and timeout. A tracer prints its table when it is interrupted. The result
// reports whether the child ended by itself.
func (c *child) end(signal os.Signal, patience time.Duration) bool {
	_ = c.cmd.Process.Signal(signal)
	select {
	case <-c.done:
		return true
	case <-time.After(patience):
		_ = c.cmd.Process.Kill()
		<-c.done
		return false
	}
}

// cpu returns the CPU time, in seconds, of the child and its living children, including ended threads.
func (c *child) cpu() (float64, error) {
	var total float64
	for _, pid := range c.pids() {
		seconds, err := processTime(pid)
		if err != nil {
			return 0, err
		}
		total += seconds
	}
	return total, nil
}

// pids returns the child and its living children.
func (c *child) pids() []int {
	return append([]int{c.cmd.Process.Pid}, childrenOf(c.cmd.Process.Pid)...)
}

// processTime reads a process' CPU-time clock, which the kernel keeps in nanoseconds. The clock ID is derived from the
// process ID as in clock_getcpuclockid(3).
func processTime(pid int) (float64, error) {
	const scheduled = 2 // CPUCLOCK_SCHED, include/linux/posix-timers.h
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	return float64(t.Nano()) / 1e9, nil
}

func childrenOf(pid int) []int {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var pids []int
	for _, file := range files {
		data, _ := os.ReadFile(file)
		for field := range strings.FieldsSeq(string(data)) {
			if n, err := strconv.Atoi(field); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// resident returns the resident memory, in bytes, of the child and its living children (VmRSS). Shared pages count for
// each of them.
func (c *child) resident() (float64, error) {
	var total float64
	for _, pid := range c.pids() {
		bytes, err := residentOf(pid)
		if err != nil {
			return 0, err
		}
		total += bytes
	}
	return total, nil
}

func residentOf(pid int) (float64, error) {
	memory, ok := hostfs.At("/proc").Process(pid).Memory()
	if !ok {
		return 0, fmt.Errorf("process %d has no resident memory", pid)
	}
	return float64(memory.Resident), nil
}
