// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// stopLimit is the time that a command has to end after it was interrupted. Then it is killed.
const stopLimit = 10 * time.Second

// command is a command that runs. A nil one never ends.
type command struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// start starts the command in a process group of its own, so that a signal of the terminal reaches it once.
func start(o Options) (*command, error) {
	c := &command{cmd: exec.Command(o.Command[0], o.Command[1:]...), done: make(chan struct{})}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = o.In, o.Out, o.Err
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("running %s: %w", o.Command[0], err)
	}
	go func() {
		_ = c.cmd.Wait() // its state says how it ended
		close(c.done)
	}()
	return c, nil
}

// ended returns a channel that is closed when the command has ended.
func (c *command) ended() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.done
}

// signal sends a signal to the process group of the command. It fails if none is left.
func (c *command) signal(s os.Signal) {
	if number, ok := s.(syscall.Signal); ok && c != nil {
		_ = syscall.Kill(-c.cmd.Process.Pid, number)
	}
}

// wait waits for the end of the command and returns its exit status. A signal is passed on to it. A second one, or an
// interrupted command that does not end, kills it.
func (c *command) wait(stops <-chan os.Signal, interrupted bool) int {
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
			c.signal(s)
			interrupted = true
		case <-limit:
			c.signal(syscall.SIGKILL)
			limit = make(chan time.Time)
		}
	}
}

func (c *command) status() int {
	if w, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return signalled + int(w.Signal())
	}
	return c.cmd.ProcessState.ExitCode()
}

// end kills the command if the recording failed before it ended.
func (c *command) end() {
	select {
	case <-c.done:
	default:
		c.signal(syscall.SIGKILL)
		<-c.done
	}
}
