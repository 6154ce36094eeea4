// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// threaded runs a program in a threaded cgroup, which only version 2 has, and moves one of its threads to another one.
func threaded() error {
	const slice = "/sys/fs/cgroup/threaded.slice"
	groups := map[string]string{}
	for _, name := range []string{"first", "second"} {
		groups[name] = filepath.Join(slice, name+".service")
		if err := os.MkdirAll(groups[name], 0o755); err != nil {
			return err
		}
		if err := write(groups[name], "cgroup.type", "threaded"); err != nil {
			return err
		}
	}
	cmd := exec.Command("/threads")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	var thread int
	if _, err := fmt.Fscan(out, &thread); err != nil {
		return err
	}
	if err := write(groups["first"], "cgroup.procs", fmt.Sprint(cmd.Process.Pid)); err != nil {
		return err
	}
	if err := write(groups["second"], "cgroup.threads", fmt.Sprint(thread)); err != nil {
		return err
	}
	if _, err := io.WriteString(in, "\n"); err != nil {
		return err
	}
	return cmd.Wait()
}

// threads writes the ID of a second thread. After a line of input that one makes 70 calls and forks a child, which makes 30. Then
// the first thread makes 200.
func threads() error {
	for runtime.LockOSThread(); unix.Gettid() != os.Getpid(); runtime.LockOSThread() { // the first thread
		runtime.UnlockOSThread()
		time.Sleep(time.Millisecond)
	}
	ended := make(chan error)
	go func() {
		runtime.LockOSThread()
		fmt.Println(unix.Gettid())
		_, _ = fmt.Scanln()
		calls(70)
		ended <- forkCalls(30)
	}()
	if err := <-ended; err != nil {
		return err
	}
	calls(200)
	return nil
}

// forkCalls forks a child that makes calls without running another program, and waits for its end. The child has this thread
// only, so it makes calls that the runtime does not see.
func forkCalls(n int) error {
	child, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if child == 0 {
		calls(n)
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
	_, err := syscall.Wait4(int(child), nil, 0, nil)
	return err
}
