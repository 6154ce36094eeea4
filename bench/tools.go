// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/lib/clock"
)

// A tool is a tracer from a package. It prints its counts when it is interrupted. A tool without arguments has nothing
// to follow and is not started.
type tool struct {
	args    []string
	ready   string        // its output when it watches; empty when it prints nothing
	quiet   time.Duration // from that output until it actually watches
	counted func(output []byte, of subject) (float64, error)
}

// Time limits for a tool. bpftrace attaches to hundreds of tracepoints, and detaches from them, one by one.
const (
	readyWithin  = time.Minute
	printsWithin = time.Minute
)

// withTool returns the start function of a mode that is a tool.
func withTool(t func(target) tool) func(context.Context, options, target) (*watcher, error) {
	return func(ctx context.Context, _ options, on target) (*watcher, error) { return t(on).start(ctx) }
}

func (t tool) start(ctx context.Context) (*watcher, error) {
	if len(t.args) == 0 {
		return none(func() {}), nil
	}
	if _, err := exec.LookPath(t.args[0]); err != nil {
		return nil, fmt.Errorf("%w: install it, or leave the mode out of -modes", err)
	}
	c, err := startOn(ctx, anyCore, t.args[0], t.args[1:]...)
	if err != nil {
		return nil, err
	}
	w := &watcher{parts: []part{{name: t.args[0], child: c}}, stop: c.stop}
	if err := errors.Join(c.prints(ctx, t.ready), clock.Sleep(ctx, t.quiet)); err != nil {
		c.stop()
		return nil, fmt.Errorf("starting %s: %w\n%s", t.args[0], err, c.output())
	}
	w.counted = func(_ context.Context, of subject) (float64, string, error) {
		if !c.end(os.Interrupt, printsWithin) {
			return 0, "", fmt.Errorf("%s did not end within %s", t.args[0], printsWithin)
		}
		n, err := t.counted([]byte(c.output()), of)
		return n, "", err
	}
	return w, nil
}

// prints waits until the child's output matches a pattern.
func (c *child) prints(ctx context.Context, pattern string) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for !regexp.MustCompile(pattern).MatchString(c.output()) {
		select {
		case <-c.done:
			return errors.New("it has ended")
		case <-ctx.Done():
			return fmt.Errorf("waiting for %q: %w", pattern, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

func perfStat(target) tool {
	return tool{
		args:  []string{"perf", "stat", "-x", ",", "-a", "-e", "raw_syscalls:sys_enter"},
		quiet: 500 * time.Millisecond,
		counted: func(output []byte, _ subject) (float64, error) {
			return number(`(?m)^(\d+),.*raw_syscalls:sys_enter`, output)
		},
	}
}

func perfTrace(target) tool {
	return tool{
		args:  []string{"perf", "trace", "-s", "-a"},
		quiet: time.Second,
		counted: func(output []byte, of subject) (float64, error) {
			// There is a table for each thread, under a line with its name and ID.
			return number(fmt.Sprintf(`\(%d\), \d+ events(?:.|\n)*?\n\s+getppid\s+(\d+) `, of.pid), output)
		},
	}
}

func bpftrace(target) tool {
	return tool{
		args:  []string{"bpftrace", "-e", "tracepoint:raw_syscalls:sys_enter { @[pid, args->id] = count(); }"},
		ready: "Attaching",
		quiet: 500 * time.Millisecond,
		counted: func(output []byte, of subject) (float64, error) {
			return sumOf(fmt.Sprintf(`(?m)^@\[%d, 110\]: (\d+)$`, of.pid), output)
		},
	}
}

func bpftraceProbes(target) tool {
	return tool{
		args:  []string{"bpftrace", "-e", "tracepoint:syscalls:sys_enter_* { @[probe] = count(); }"},
		ready: "Attaching",
		quiet: 5 * time.Second,
		counted: func(output []byte, _ subject) (float64, error) {
			return sumOf(`(?m)^@\[tracepoint:syscalls:sys_enter_getppid\]: (\d+)$`, output)
		},
	}
}

// strace follows the processes of the server only, because it cannot follow a whole machine.
func strace(on target) tool {
	if len(on.pids) == 0 {
		return tool{}
	}
	args := []string{"strace", "-c", "-f"}
	for _, pid := range on.pids {
		args = append(args, "-p", strconv.Itoa(pid))
	}
	return tool{
		args:  args,
		ready: "attached",
		quiet: 100 * time.Millisecond,
		counted: func(output []byte, _ subject) (float64, error) {
			return number(`(?m)^\s*\S+\s+\S+\s+\S+\s+(\d+)\s+(?:\d+\s+)?getppid$`, output)
		},
	}
}
