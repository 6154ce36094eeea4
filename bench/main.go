// SPDX-License-Identifier: Apache-2.0

// Command bench measures the cost of being watched. It measures the throughput and the server's CPU time per operation
// of Redis, nginx, PostgreSQL and two loops. It compares runs without a watcher, with an empty BPF program on sys_enter
// (the minimum for every tracer), with teescope, and with others. The others are two reference programs that count as
// TEEMon and as the leanest ebpf_exporter do, tracers from packages, and a whole monitoring stack. The report also
// shows whether each has counted correctly, and what it uses itself.
//
// The modes are interleaved in random order within each round and compared within their round, so that a slow drift of
// the machine cancels out. bench prints ratios with an interval and n, and no verdict. It is a benchmark, never a test
// that fails because of timing.
//
// "bench sleepers" measures the CPU time of each part of "teescope up" beside thousands of processes that sleep.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Stderr, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options is the command line.
type options struct {
	teescope   string        // the binary under test
	cadvisor   string        // a binary of bench/peers; may be missing
	rounds     int           // of each load; each round runs each mode once
	window     time.Duration // time of one measurement of a mode
	settle     time.Duration // before each window, after the mode has started
	idle       time.Duration // time for measuring each mode's own use at rest
	calls      int           // known number of calls of the check of counts; 0 skips the check
	loads      []string
	modes      []string
	markdown   string // file to write; empty for none
	json       string
	picture    string
	from       string // an earlier report to write again; nothing is measured
	scrapeEach time.Duration
	quick      bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var loads, modes string
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&o.teescope, "teescope", "bin/teescope", "the teescope binary")
	set.StringVar(&o.cadvisor, "cadvisor", "bin/cadvisor", "the cAdvisor binary; the stack goes without when there is none")
	set.IntVar(&o.rounds, "rounds", 10, "rounds of each load")
	set.DurationVar(&o.window, "window", 5*time.Second, "measured time of one mode in one round")
	set.DurationVar(&o.settle, "settle", time.Second, "time between switching a mode on and measuring")
	set.DurationVar(&o.idle, "idle", 60*time.Second, "time to measure each mode at rest")
	set.IntVar(&o.calls, "calls", 1_000_000, "known calls to compare the modes' counts with; 0 for none")
	set.StringVar(&loads, "loads", defaultLoads, "loads to run, or all ("+strings.Join(loadNames(), ", ")+")")
	set.StringVar(&modes, "modes", defaultModes, "modes to compare, or all; the first is the base ("+strings.Join(modeNames(), ", ")+")")
	set.StringVar(&o.markdown, "md", "", "write the report as Markdown to this file as well")
	set.StringVar(&o.json, "json", "", "write the report as JSON to this file as well")
	set.StringVar(&o.picture, "svg", "", "draw the report to this file")
	set.StringVar(&o.from, "from", "", "write the report of this JSON file again instead of measuring")
	set.DurationVar(&o.scrapeEach, "scrape", 5*time.Second, "time between two scrapes")
	set.BoolVar(&o.quick, "quick", false, "one short round: shows that it runs, measures nothing worth quoting")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if o.quick {
		o.rounds, o.window, o.settle, o.idle, o.scrapeEach = 1, 500*time.Millisecond, 300*time.Millisecond, time.Second, 500*time.Millisecond
		o.calls = min(o.calls, 10_000)
	}
	o.loads, o.modes = listed(loads, loadNames()), listed(modes, modeNames())
	return o, o.validate()
}

// listed splits a list of names. "all" is every name.
func listed(names string, every []string) []string {
	if names == "all" {
		return every
	}
	return strings.Split(names, ",")
}

func (o options) validate() error {
	var problems []error
	for _, name := range o.loads {
		if !slices.Contains(loadNames(), name) {
			problems = append(problems, fmt.Errorf("-loads: no load is named %q", name))
		}
	}
	for _, name := range o.modes {
		if !slices.Contains(modeNames(), name) {
			problems = append(problems, fmt.Errorf("-modes: no mode is named %q", name))
		}
	}
	if o.rounds < 1 || o.window <= 0 {
		problems = append(problems, errors.New("-rounds and -window must be positive"))
	}
	if o.calls%truthBurst != 0 {
		problems = append(problems, fmt.Errorf("-calls must be a multiple of %d", truthBurst))
	}
	return errors.Join(problems...)
}

func run(ctx context.Context, stdout, stderr io.Writer, args []string) error {
	if len(args) > 0 && args[0] == "serve" {
		return serve(ctx, args[1:], stderr)
	}
	if len(args) > 0 && args[0] == "sleepers" {
		return runSleepers(ctx, stdout, stderr, args[1:])
	}
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	var report Report
	if o.from != "" {
		report, err = readReport(o.from)
	} else {
		report, err = measure(ctx, stderr, o)
	}
	if err != nil {
		return err
	}
	return report.write(stdout, o)
}

func measure(ctx context.Context, progress io.Writer, o options) (Report, error) {
	if err := ready(o.modes, exec.LookPath, mountTracefs); err != nil {
		return Report{}, err
	}
	report := Report{Machine: machine(), Rounds: o.rounds, Window: o.window.Seconds(), Idle: o.idle.Seconds(), Base: o.modes[0]}
	dir, err := os.MkdirTemp("", "teescope-bench-")
	if err != nil {
		return report, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // servers drop root
		return report, err
	}
	for _, name := range o.loads {
		samples, err := compare(ctx, progress, o, name, filepath.Join(dir, name))
		if err != nil {
			return report, fmt.Errorf("measuring %s: %w", name, err)
		}
		report.Rows = append(report.Rows, rowsOf(name, o.modes, samples)...)
		report.Watching = append(report.Watching, watchingOf(name, o.modes, samples)...)
	}
	samples, err := measureIdle(ctx, progress, o, filepath.Join(dir, "rest"))
	if err != nil {
		return report, err
	}
	report.Watching = append(report.Watching, watchingOf(idleMode, o.modes, samples)...)
	if o.calls > 0 {
		if report.Truths, err = truths(ctx, progress, o, filepath.Join(dir, "counts")); err != nil {
			return report, fmt.Errorf("comparing counts: %w", err)
		}
	}
	report.Own, err = ownCost(ctx, progress, o, dir)
	if err != nil {
		return report, fmt.Errorf("measuring teescope itself: %w", err)
	}
	return report, nil
}
