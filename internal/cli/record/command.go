// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/run/outcome"
)

// Exit statuses, as those of env(1) and timeout(1).
const (
	StatusFailed      = 125 // the recording failed
	statusNotRunnable = 126 // the command cannot be executed
	statusNotFound    = 127 // there is no such command
	signalled         = 128 // plus the number of the signal that ended it
)

// stopLimit is the time that a command has to end after it was interrupted. Then it is killed.
const stopLimit = 10 * time.Second

// stops receives the signals that end a recording.
type stops struct {
	signals chan os.Signal
	first   chan struct{} // closed at the first signal
	second  chan struct{} // closed at the second signal
	signal  syscall.Signal
}

// listen begins to listen to signals. The caller calls close.
func listen() *stops {
	s := &stops{signals: make(chan os.Signal, 4), first: make(chan struct{}), second: make(chan struct{})}
	signal.Notify(s.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		ends := []chan struct{}{s.first, s.second}
		for got := range s.signals {
			if len(ends) == 0 {
				continue
			}
			if sig, ok := got.(syscall.Signal); ok && len(ends) == 2 {
				s.signal = sig
			}
			close(ends[0])
			ends = ends[1:]
		}
	}()
	return s
}

func (s *stops) close() {
	signal.Stop(s.signals)
	close(s.signals)
}

// stopped reports whether the recording must end.
func (s *stops) stopped() bool { return isClosed(s.first) }

// isClosed reports whether a channel without values is closed. nil never is.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// status is the exit status of an interrupted recording.
func (s *stops) status() int { return signalled + int(s.signal) }

// outputLimit is how long the output of a command is read after its end. A server that it has left behind may keep it open.
const outputLimit = time.Second

// A child is a command that runs.
type child struct {
	cmd     *exec.Cmd
	began   time.Time
	done    chan struct{}
	wall    time.Duration // valid once done is closed, as the next one
	cut     bool          // something still had its output open
	out     *outcome.Capture
	errs    *outcome.Capture
	stopped bool // it was interrupted
}

// launch starts a command in a process group of its own. What it prints is passed on and kept.
func launch(args []string, in *os.File, out, errs io.Writer) (*child, error) {
	c := &child{cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{}), out: &outcome.Capture{}, errs: &outcome.Capture{}}
	c.cmd.Stdin = in
	copied := make(chan struct{}, 2)
	var pipes []*os.File
	defer func() {
		for _, p := range pipes {
			_ = p.Close() // the command has its own
		}
	}()
	var reads []*os.File
	for _, to := range []struct {
		into *io.Writer
		all  io.Writer
	}{{&c.cmd.Stdout, io.MultiWriter(out, c.out)}, {&c.cmd.Stderr, io.MultiWriter(errs, c.errs)}} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("running %s: %w", args[0], err)
		}
		pipes, reads, *to.into = append(pipes, w), append(reads, r), w
		go func() {
			_, _ = io.Copy(to.all, r) // until nothing has it open, or until it is closed below
			copied <- struct{}{}
		}()
	}
	return c, c.start(func() {
		limit := time.After(outputLimit)
		for left := len(reads); left > 0 && !c.cut; left-- {
			select {
			case <-copied:
			case <-limit: // for both outputs together
				c.cut = true
			}
		}
		for _, r := range reads {
			_ = r.Close() // nothing was written
		}
	})
}

// launchShell starts a shell command. Its output is passed on, and programs that it leaves behind keep it.
func launchShell(command string, out *os.File) (*child, error) {
	c := &child{cmd: exec.Command("sh", "-c", command), done: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = out, out
	return c, c.start(func() {})
}

// start starts the command. After its end it calls a function, and then closes done.
func (c *child) start(ended func()) error {
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that a signal of the terminal reaches it once
	c.began = time.Now()
	if err := c.cmd.Start(); err != nil {
		return explainStart(c.cmd.Args[0], err)
	}
	go func() {
		_ = c.cmd.Wait() // its state says how it ended
		c.wall = time.Since(c.began)
		ended()
		close(c.done)
	}()
	return nil
}

// find returns why there is no such command, or nil.
func find(name string) error {
	if _, err := exec.LookPath(name); err != nil {
		return explainStart(name, err)
	}
	return nil
}

// explainStart returns an error with the exit status that a shell would have.
func explainStart(name string, err error) error {
	status := StatusFailed
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		status, err = statusNotFound, errors.New("there is no such command: check its name and PATH")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOEXEC), errors.Is(err, unix.EISDIR):
		status, err = statusNotRunnable, fmt.Errorf("it cannot be executed: %w", err)
	}
	return &statusError{Status: status, Err: fmt.Errorf("running %s: %w", name, err)}
}

// statusError is an error with an exit status.
type statusError struct {
	Status int
	Err    error
}

// Error implements error.
func (e *statusError) Error() string { return e.Err.Error() }

// Unwrap implements the interface of package errors.
func (e *statusError) Unwrap() error { return e.Err }

// wait waits for the end of the command. The first signal is passed on to it. At the second one, or when the time is
// over, it is killed.
func (c *child) wait(s *stops) {
	select {
	case <-c.done:
		return
	case <-s.first:
	}
	c.stopped = true
	c.signal(s.signal)
	select {
	case <-c.done:
		return
	case <-s.second:
	case <-time.After(stopLimit):
	}
	c.signal(syscall.SIGKILL)
	<-c.done
}

// signal sends a signal to the process group of the command. It fails if none is left.
func (c *child) signal(s syscall.Signal) { _ = syscall.Kill(-c.cmd.Process.Pid, s) }

// status returns the exit status of a command that has ended.
func (c *child) status() int {
	state := c.cmd.ProcessState
	if state == nil {
		return StatusFailed
	}
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return signalled + int(w.Signal())
	}
	return state.ExitCode()
}

// cpu returns the CPU time of the command, and of the children that it has waited for.
func (c *child) cpu() time.Duration {
	if s := c.cmd.ProcessState; s != nil {
		return s.UserTime() + s.SystemTime()
	}
	return 0
}
