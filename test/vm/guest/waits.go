// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// compete is a program whose threads compute and sleep in turn. It prints what schedstat says at its start, and again when
// the threads are done. It ends with its input.
func compete() error {
	if err := printSchedstat(os.Getpid()); err != nil {
		return err
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			runtime.LockOSThread() // the thread ends with the goroutine if it is not unlocked
			defer runtime.UnlockOSThread()
			for range 100 {
				for end := time.Now().Add(200 * time.Microsecond); time.Now().Before(end); {
				}
				_, _ = unix.Select(0, nil, nil, nil, &unix.Timeval{Usec: 100})
			}
		})
	}
	all.Wait()
	if err := printSchedstat(os.Getpid()); err != nil {
		return err
	}
	_, _ = fmt.Scanln()
	return nil
}

// schedstat adds up how long the threads of a process waited for a CPU, in nanoseconds, and how often they got one.
func schedstat(pid int) (waited, slices uint64, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, 0, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, 0, err
		}
		var ran, delay, n uint64
		if _, err := fmt.Sscan(string(text), &ran, &delay, &n); err != nil {
			return 0, 0, err
		}
		waited, slices = waited+delay, slices+n
	}
	return waited, slices, nil
}

func printSchedstat(pid int) error {
	waited, slices, err := schedstat(pid)
	fmt.Println(waited, slices)
	return err
}

// waits runs a program on one CPU until it sleeps. The caller prints the metrics and ends the program afterwards. Then it prints
// what schedstat says of the program: at its start, when it slept, and after the metrics. A thread of Go's runtime may run in between.
func waits() (end func() error, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, first unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, err
	}
	first.Set(0)
	if err := unix.SchedSetaffinity(0, &first); err != nil {
		return nil, err
	}
	defer func() { _ = unix.SchedSetaffinity(0, &all) }()
	cmd := exec.Command("/competes")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var from, to [2]uint64
	if _, err := fmt.Fscan(out, &from[0], &from[1], &to[0], &to[1]); err != nil {
		return nil, err
	}
	for before := uint64(0); before != to[1]; time.Sleep(100 * time.Millisecond) {
		before = to[1]
		if to[0], to[1], err = schedstat(cmd.Process.Pid); err != nil {
			return nil, err
		}
	}
	return func() error {
		waited, slices, err := schedstat(cmd.Process.Pid)
		section("schedstat", fmt.Sprintln(from[0], from[1], to[0], to[1], waited, slices))
		_ = in.Close()
		return errors.Join(err, cmd.Wait())
	}, nil
}
