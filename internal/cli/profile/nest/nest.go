// SPDX-License-Identifier: Apache-2.0

// Package nest is "teescope profile breakdown" of a process or a command: it times nested functions by probes for some time
// and shows their shares.
//
// The eBPF programs are in internal/agent/nested. The package does not parse flags.
package nest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf/returns"
	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/nested"
	profiled "github.com/teescope/teescope/internal/cli/profile"
	"github.com/teescope/teescope/internal/cli/profile/child"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
)

// every is the time between two updates of the progress line, which shows the number of calls.
const every = 250 * time.Millisecond

// Options configure a measurement.
type Options struct {
	Functions []string // the root first, as for [nested.Find]
	Binary    string   // the file that has them; empty: the program of the process or command
	PID       int      // process to time, with its descendants; 0: the command
	Command   []string
	For       time.Duration // 0: until the command ends
	JSON      bool
	Force     bool // also a program that this can end; see [returns.Risk]
	Files     child.Files
}

// Run times the functions, shows them, and returns the exit status of the command.
func Run(ctx context.Context, o Options) (status int, err error) {
	if all, namespace := hostfs.At("/proc").SeesAllProcesses(); !all {
		return 0, fmt.Errorf("this is the PID namespace %s and not that of the host, where processes have other IDs: run it on the host", namespace)
	}
	if len(o.Command) > 0 {
		if err := child.Check(o.Command); err != nil {
			return 0, err
		}
	}
	stops := make(chan os.Signal, 4)
	signal.Notify(stops, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(stops)
	progress := profiled.NewProgress(o.Files.Err)
	t, costs, err := open(ctx, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	var c *child.Command
	if len(o.Command) > 0 {
		if c, err = child.Start(o.Command, o.Files); err != nil {
			return 0, err
		}
		defer c.End()
	}
	began := time.Now()
	stopped := wait(ctx, o, t, c, stops, progress)
	lasted := time.Since(began)
	progress.Clear()
	if err := t.Stop(); err != nil {
		return 0, err
	}
	if stopped != nil {
		c.Signal(stopped)
	}
	n := profiled.Nested{Times: t.Read(), Costs: costs, Lasted: lasted}
	if n.Functions[0].Total == 0 && n.Functions[0].Calls == 0 {
		// The command has the time to end in order.
		return c.Wait(stops, stopped != nil), fmt.Errorf("no call of %s returned in %v: %s", text.Terminal(n.Functions[0].Name), lasted.Round(time.Millisecond),
			"it is not called, the compiler has inlined it there, or the code runs inside an enclave, where probes are not possible: record a profile and give its file instead")
	}
	write := n.Text
	if o.JSON {
		write = n.JSON
	}
	if err := write(o.Files.Out); err != nil {
		return 0, err
	}
	return c.Wait(stops, stopped != nil), nil
}

// open finds the functions, measures what probes cost and attaches them.
func open(ctx context.Context, o Options) (*nested.Timer, nested.Costs, error) {
	proc := hostfs.At("/proc")
	file, err := binary(proc, o)
	if err != nil {
		return nil, nested.Costs{}, err
	}
	program, err := executable.Open(file)
	if err != nil {
		if errors.Is(err, executable.ErrNotELF) {
			err = fmt.Errorf("%w: name the program or library that has the functions with --binary", err)
		}
		return nil, nested.Costs{}, err
	}
	defer func() { _ = file.Close() }() // the kernel has its own reference
	functions, err := nested.Find(proc, program, o.Functions)
	if err != nil {
		return nil, nested.Costs{}, fmt.Errorf("%s: %w", file.Name(), err)
	}
	if risk, err := returns.Risk(program); err != nil || risk != "" && !o.Force {
		if err == nil {
			err = fmt.Errorf("%s: record a profile, or use --force if that cannot happen", risk)
		}
		return nil, nested.Costs{}, fmt.Errorf("%s: %w", file.Name(), err)
	}
	if err := child.Adopt(); err != nil {
		return nil, nested.Costs{}, err
	}
	costs, err := nested.Measure(ctx)
	if err != nil {
		return nil, nested.Costs{}, err
	}
	timed := nested.Options{File: file, Functions: functions, Costs: costs, Process: o.PID, Ancestor: o.PID}
	if o.PID == 0 {
		timed.Ancestor = os.Getpid()
	}
	t, err := nested.Open(timed)
	return t, costs, err
}

// binary opens the file that has the functions. That of a process is found in its own root directory.
func binary(proc hostfs.Root, o Options) (*os.File, error) {
	if o.PID != 0 {
		p := proc.Process(o.PID)
		if all, err := proc.Processes(); err == nil && p.Exists() && !slices.Contains(all, o.PID) {
			return nil, fmt.Errorf("--pid %d: this is a thread: use the ID of its process, which is Tgid in /proc/%d/status", o.PID, o.PID)
		}
		name := o.Binary
		if name == "" {
			link, err := p.Link("exe")
			if err != nil {
				return nil, noProcess(o.PID, err)
			}
			file, err := inputfile.Open(p.Path("exe"))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", link, err)
			}
			return file, nil
		}
		fd, err := p.Locate(name, 0)
		if err != nil {
			if !p.Exists() {
				err = noProcess(o.PID, err)
			}
			return nil, err
		}
		defer func() { _ = syscall.Close(fd) }() // nothing was written
		return inputfile.Open(hostfs.DescriptorPath(fd))
	}
	name := o.Binary
	if name == "" {
		path, err := exec.LookPath(o.Command[0])
		if err != nil {
			return nil, fmt.Errorf("running %s: %w", o.Command[0], err)
		}
		name = path
	}
	return inputfile.Open(name)
}

func noProcess(pid int, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--pid %d: there is no such process, or it is a thread of the kernel", pid)
	}
	return fmt.Errorf("--pid %d: %w", pid, err)
}

// wait returns when the time is over, the command or the process has ended, or a signal arrives, which it returns.
func wait(ctx context.Context, o Options, t *nested.Timer, c *child.Command, stops <-chan os.Signal, progress *profiled.Progress) os.Signal {
	var over <-chan time.Time
	if o.For > 0 {
		over = time.After(o.For)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			progress.Tick(fmt.Sprintf("timing, %s of %s, Ctrl-C shows them", text.Plural(int(t.Calls()), "call", "calls"), text.Terminal(o.Functions[0])))
			if o.PID != 0 && syscall.Kill(o.PID, 0) == syscall.ESRCH {
				return nil
			}
		case <-ctx.Done():
			return syscall.SIGTERM
		case s := <-stops:
			return s
		case <-over:
			if c != nil {
				return syscall.SIGTERM
			}
			return nil
		case <-c.Ended():
			return nil
		}
	}
}
