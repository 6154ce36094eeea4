// SPDX-License-Identifier: Apache-2.0

// Package child runs the command whose processes are recorded or timed.
package child

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stopLimit is the time that a command has to end after it was interrupted. Then it is killed.
const stopLimit = 10 * time.Second

// signalled is added to the number of the signal that ended a command, for the exit status.
const signalled = 128

// Files are the standard files of a command.
type Files struct{ In, Out, Err *os.File }

// Command is a command that runs. A nil one never ends.
type Command struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// Check returns an error if a command cannot be found.
func Check(args []string) error {
	if _, err := exec.LookPath(args[0]); err != nil {
		return fmt.Errorf("running %s: %w: check its name and PATH", args[0], err)
	}
	return nil
}

// Adopt makes orphans of later commands children of this process, so that all descendants of a command can be found by
// their parents.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("preparing to follow the command: %w", err)
	}
	return nil
}

// Start starts a command in a process group of its own, so that a signal of the terminal reaches it once.
func Start(args []string, files Files) (*Command, error) {
	c := &Command{cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{})}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = files.In, files.Out, files.Err
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("running %s: %w", args[0], err)
	}
	go func() {
		_ = c.cmd.Wait() // its state says how it ended
		close(c.done)
	}()
	return c, nil
}

// Ended returns a channel that is closed when the command has ended.
func (c *Command) Ended() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.done
}

// Signal sends a signal to the process group of the command. It fails if none is left.
func (c *Command) Signal(s os.Signal) {
	if number, ok := s.(syscall.Signal); ok && c != nil {
		_ = syscall.Kill(-c.cmd.Process.Pid, number)
	}
}

// Wait waits for the end of the command and returns its exit status. A signal is passed on to it. A second one, or an
// interrupted command that does not end, kills it.
func (c *Command) Wait(stops <-chan os.Signal, interrupted bool) int {
	if c == nil {
		return 0
	}
	var limit <-chan time.Time
	for {
		if interrupted && limit == nil {
			limit = time.After(stopLimit)
		}
		select {
		case <-c.done:
			return c.status()
		case s := <-stops:
			if interrupted {
				s = syscall.SIGKILL
			}
			c.Signal(s)
			interrupted = true
		case <-limit:
			c.Signal(syscall.SIGKILL)
			limit = make(chan time.Time)
		}
	}
}

func (c *Command) status() int {
	if w, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return signalled + int(w.Signal())
	}
	return c.cmd.ProcessState.ExitCode()
}

// End kills the command if it has not ended, as after an error.
func (c *Command) End() {
	select {
	case <-c.done:
	default:
		c.Signal(syscall.SIGKILL)
		<-c.done
	}
}
