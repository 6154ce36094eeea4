// SPDX-License-Identifier: Apache-2.0

// Package supervisor runs the parts of a program as processes, and restarts a part that ends.
//
// The parts communicate over unnamed sockets, which the supervisor creates and passes on. It does not depend on the purpose
// of a part, and does not read the messages between parts.
package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Part is one process.
type Part struct {
	Name string
	Args []string // without the name of the program
	// Listens is true for the part that accepts the connections of the others.
	Listens bool
	// Listener is a socket for [InheritedListener], or nil.
	Listener *os.File
}

// Options configure a [Supervisor].
type Options struct {
	Parts []Part
	// Started is called once, when all parts have started for the first time.
	Started func() error
	// Capabilities returns the capabilities that parts get besides those of the user, as numbers.
	Capabilities func() []uintptr
	// Stop is the time that a part has to end after SIGTERM. Then it is killed.
	Stop time.Duration
	Log  *slog.Logger
}

// Bounds of the time between the end of a part and its next start. It doubles with each end, and falls back to the first
// when a part has run for a while.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 30 * time.Second
	longRun    = time.Minute
)

// endedError reports that a part has ended.
type endedError struct {
	Part   string
	Reason string // what the part said, or empty
	Err    error  // of Wait
}

// Error implements error. It is the part's own reason.
func (e *endedError) Error() string {
	switch {
	case e.Reason != "":
		return e.Reason
	case e.Err == nil:
		return "the " + e.Part + " has ended"
	}
	return fmt.Sprintf("the %s has ended: %v", e.Part, e.Err)
}

// Unwrap returns the cause.
func (e *endedError) Unwrap() error { return e.Err }

// Supervisor runs the parts.
type Supervisor struct {
	opts Options

	mu       sync.Mutex
	running  map[string]*process
	started  map[string]bool
	complete chan struct{} // closed when all parts have started once
}

// New returns a supervisor.
func New(opts Options) *Supervisor {
	return &Supervisor{opts: opts, running: map[string]*process{}, started: map[string]bool{}, complete: make(chan struct{})}
}

// Run runs the parts until ctx ends. It returns an error when a part ends before it has started for the first time.
func (s *Supervisor) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var parts sync.WaitGroup
	var first firstError
	for _, p := range s.opts.Parts {
		parts.Go(func() {
			// The kernel kills the children of a thread that ends. Without UnlockOSThread this thread ends after its child.
			runtime.LockOSThread()
			first.set(s.keep(ctx, p))
			cancel()
		})
	}
	if s.opts.Started != nil {
		parts.Go(func() {
			select {
			case <-s.complete:
				if err := s.opts.Started(); err != nil {
					first.set(err)
					cancel()
				}
			case <-ctx.Done():
			}
		})
	}
	parts.Wait()
	return first.err
}

// firstError keeps the first of several errors: the others follow from it.
type firstError struct {
	once sync.Once
	err  error
}

func (f *firstError) set(err error) {
	if err != nil {
		f.once.Do(func() { f.err = err })
	}
}

// Signal sends a signal to a part, if it runs.
func (s *Supervisor) Signal(part string, signal os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.running[part]; p != nil {
		_ = p.cmd.Process.Signal(signal) // fails only when the process has ended
	}
}

// keep runs one part again and again.
func (s *Supervisor) keep(ctx context.Context, part Part) error {
	pause := firstPause
	for {
		began := time.Now()
		asked, err := s.once(ctx, part)
		if asked {
			return err
		}
		if err == nil {
			err = &endedError{Part: part.Name}
		}
		if !s.hasStarted(part.Name) {
			return err
		}
		if time.Since(began) > longRun {
			pause = firstPause
		}
		if ctx.Err() != nil {
			return nil // the whole program ends
		}
		s.opts.Log.Error("a process has ended and is started again", "process", part.Name, "err", err, "in", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
		pause = min(2*pause, lastPause)
	}
}

// once runs a part to its end. When ctx ends, it asks the part to end, and reports that.
func (s *Supervisor) once(ctx context.Context, part Part) (asked bool, err error) {
	p, err := s.start(part)
	if err != nil {
		return false, fmt.Errorf("starting the %s: %w", part.Name, err)
	}
	s.set(part.Name, p)
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		asked = p.cmd.Process.Signal(syscall.SIGTERM) == nil // otherwise it has ended
		select {
		case err = <-ended:
		case <-time.After(s.opts.Stop):
			_ = p.cmd.Process.Kill()
			err = fmt.Errorf("killed because it did not end within %s: %w", s.opts.Stop, <-ended)
		}
	}
	s.set(part.Name, nil)
	reason := p.control.finish()
	interrupted := asked && !p.control.started.Load() && leftAtOnce(p.cmd)
	if interrupted || reason == "" && err == nil {
		return asked, nil
	}
	return asked, &endedError{Part: part.Name, Reason: reason, Err: err}
}

// leftAtOnce reports whether a part ended because of SIGTERM: it had not got to handling it, or its start was interrupted.
// What it says of an interrupted start, such as a cancelled context, is not a failure.
func leftAtOnce(cmd *exec.Cmd) bool {
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && (status.Exited() || status.Signaled() && status.Signal() == syscall.SIGTERM)
}

// process is a running part.
type process struct {
	cmd     *exec.Cmd
	control *control
}

// start starts a part. It must be called on a thread that lives as long as the part.
func (s *Supervisor) start(part Part) (*process, error) {
	ours, theirs, err := pair(syscall.SOCK_SEQPACKET)
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	path, err := executable()
	if err != nil {
		_ = ours.Close() // nothing was written
		return nil, err
	}
	cmd := exec.Command(path, part.Args...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{theirs}
	if part.Listener != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, part.Listener)
	}
	// A group of its own keeps Ctrl-C from the part: the supervisor ends it in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, AmbientCaps: s.opts.Capabilities()}
	control, err := newControl(ours, part, s)
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		_ = control.conn.Close() // nothing was written
		return nil, err
	}
	return &process{cmd: cmd, control: control}, nil
}

// executable returns the path of this program. Under its own name a process is named like this one. If another program
// has this name now, which happens in upgrades, the kernel's link to the running one is used.
func executable() (string, error) {
	const running = "/proc/self/exe"
	path, err := filepath.EvalSymlinks(running)
	if err != nil {
		return running, nil //nolint:nilerr // the file was removed or replaced, and the link still works
	}
	named, err := os.Stat(path)
	if err != nil {
		return running, nil //nolint:nilerr // the same
	}
	own, err := os.Stat(running)
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	if os.SameFile(named, own) {
		return path, nil
	}
	return running, nil
}

func (s *Supervisor) set(name string, p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[name] = p
}

func (s *Supervisor) hasStarted(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started[name]
}

// markStarted records that a part has started.
func (s *Supervisor) markStarted(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started[name] {
		return
	}
	s.started[name] = true
	if len(s.started) == len(s.opts.Parts) {
		close(s.complete)
	}
}

// listener returns the running part that accepts connections, or nil.
func (s *Supervisor) listener() *control {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range s.opts.Parts {
		if p := s.running[part.Name]; part.Listens && p != nil {
			return p.control
		}
	}
	return nil
}
