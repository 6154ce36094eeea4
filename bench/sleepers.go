// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/hostfs"

	"github.com/teescope/teescope/internal/lib/clock"
)

//go:embed progs/sleepers.c
var sleepersSource []byte

// sleepers are processes that do almost nothing. They show how the cost of watching grows with their number.
type sleepers struct {
	binaries                   []string
	processes, programs, wakes int
	warm, window               time.Duration
	rounds                     int
}

func parseSleepers(args []string, stderr io.Writer) (sleepers, error) {
	var o sleepers
	var binaries string
	set := flag.NewFlagSet("bench sleepers", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&binaries, "teescope", "bin/teescope", "binaries that run at the same time, with commas; their order changes in each round")
	set.IntVar(&o.processes, "processes", 5000, "number of processes; 0 for a machine at rest")
	set.IntVar(&o.programs, "programs", 200, "number of different programs")
	set.IntVar(&o.wakes, "wakes", 5, "wakeups of each process per second")
	set.DurationVar(&o.warm, "warm", time.Minute, "time between the start of teescope and the measurement")
	set.DurationVar(&o.window, "window", 90*time.Second, "measured time")
	set.IntVar(&o.rounds, "rounds", 3, "number of measurements")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	o.binaries = strings.Split(binaries, ",")
	if o.programs < 1 || o.wakes < 1 || o.window <= 0 || o.processes > 0 && o.processes < o.programs {
		return o, fmt.Errorf("%d processes of %d programs that wake up %d times a second, for %v", o.processes, o.programs, o.wakes, o.window)
	}
	return o, nil
}

// runSleepers measures the CPU time of each part of `teescope up` beside such processes.
func runSleepers(ctx context.Context, stdout, stderr io.Writer, args []string) error {
	o, err := parseSleepers(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "teescope-sleepers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.processes > 0 {
		load, err := o.start(ctx, dir)
		if err != nil {
			return err
		}
		defer load.stop()
	}
	fmt.Fprintf(stdout, "%d processes of %d programs, %d wakeups per second each; %v from %v after the start\n\n", o.processes, o.programs, o.wakes, o.window, o.warm)
	fmt.Fprintf(stdout, "| round | binary | part | CPU of one core | resident | load |\n|--:|---|---|--:|--:|--:|\n")
	for round := range o.rounds {
		if err := o.round(ctx, stdout, round, filepath.Join(dir, strconv.Itoa(round))); err != nil {
			return err
		}
	}
	return nil
}

// start starts the processes.
func (o sleepers) start(ctx context.Context, dir string) (*child, error) {
	program := filepath.Join(dir, "sleepers")
	if err := compile(program, sleepersSource); err != nil {
		return nil, err
	}
	load, err := startOn(ctx, anyCore, program, dir, strconv.Itoa(o.programs), strconv.Itoa(o.processes), strconv.Itoa(o.wakes))
	if err != nil {
		return nil, err
	}
	for !strings.Contains(load.output(), "started\n") {
		select {
		case <-load.done:
			return nil, fmt.Errorf("starting %d processes: %s has ended\n%s", o.processes, program, load.output())
		default:
		}
		if err := clock.Sleep(ctx, 10*time.Millisecond); err != nil {
			load.stop()
			return nil, err
		}
	}
	return load, nil
}

// round runs all binaries at the same time, so that the load of the machine is the same for each.
func (o sleepers) round(ctx context.Context, stdout io.Writer, round int, dir string) error {
	running := make([]*running, len(o.binaries))
	before := make([]map[string]float64, len(o.binaries))
	for i := range o.binaries {
		at := (i + round) % len(o.binaries)
		t, err := startTeescope(ctx, o.binaries[at], "up", "--data-dir", filepath.Join(dir, strconv.Itoa(at)))
		if err != nil {
			return err
		}
		defer t.stop()
		running[at] = t
	}
	if err := clock.Sleep(ctx, o.warm); err != nil {
		return err
	}
	begin := time.Now()
	for i, t := range running {
		var err error
		if before[i], err = cpuOfParts(t.child); err != nil {
			return err
		}
	}
	if err := clock.Sleep(ctx, o.window); err != nil {
		return err
	}
	passed, load := time.Since(begin).Seconds(), machine().Load
	for i, t := range running {
		after, err := cpuOfParts(t.child)
		if err != nil {
			return err
		}
		for _, pid := range t.pids() {
			name := partName(pid)
			resident, err := residentOf(pid)
			if err != nil {
				return err
			}
			fmt.Fprintf(stdout, "| %d | %s | %s | %.2f %% | %.0f MB | %s |\n", round+1, o.binaries[i], name, 100*(after[name]-before[i][name])/passed, resident/mega, load)
		}
	}
	return nil
}

// cpuOfParts returns the CPU time, in seconds, of each part of `teescope up`.
func cpuOfParts(c *child) (map[string]float64, error) {
	all := map[string]float64{}
	for _, pid := range c.pids() {
		seconds, err := processTime(pid)
		if err != nil {
			return nil, err
		}
		all[partName(pid)] += seconds
	}
	return all, nil
}

// partName returns the subcommand of a process.
func partName(pid int) string {
	args, err := hostfs.At("/proc").Process(pid).Args(2)
	if err != nil || len(args) < 2 {
		return "unknown"
	}
	return args[1]
}
