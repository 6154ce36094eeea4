// SPDX-License-Identifier: Apache-2.0

// Command fleet measures the resources that a server needs for many agents. It simulates agents, starts a teescope server
// that scrapes them, runs the page's queries, and reports memory, CPU, latencies and disk.
//
// It draws no conclusions. The results apply to one machine, and the report shows how busy that machine was.
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
	"strings"
	"time"
)

type options struct {
	teescope, limit, listen, clients string
	series, rounds, concurrent       int
	interval, settle, hold           time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	var o options
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.StringVar(&o.teescope, "teescope", "bin/teescope", "binary to measure")
	flags.StringVar(&o.limit, "limit", "0", "memory.limit of the server")
	flags.IntVar(&o.series, "series", 100_000, "series of all agents together")
	flags.IntVar(&o.rounds, "rounds", 5, "number of runs of each query")
	flags.IntVar(&o.concurrent, "crowd", 40, "number of concurrent runs of the most expensive query")
	flags.DurationVar(&o.interval, "interval", 5*time.Second, "time between two scrapes")
	flags.DurationVar(&o.settle, "settle", time.Minute, "time of scraping before the queries")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "address of the server; an address beyond this machine is used without authentication")
	flags.StringVar(&o.clients, "clients", "", "local addresses that queries come from, separated by commas; all loopback addresses are one client")
	flags.DurationVar(&o.hold, "hold", 0, "time of each part of the measurement of concurrent connections and queries; 0 leaves it out")
	if err := flags.Parse(args); err != nil {
		return err
	}
	queries, err := readQueries()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return measure(ctx, out, o, queries, dir)
}

// measure runs the server and reports.
func measure(ctx context.Context, out io.Writer, o options, queries []string, dir string) (err error) {
	agents := (o.series + seriesPerAgent - 1) / seriesPerAgent
	addresses := make([]string, agents)
	for i := range addresses {
		if addresses[i], err = newAgent(i).listen(); err != nil {
			return err
		}
	}
	s, err := startServer(ctx, o, addresses, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	fmt.Fprintf(out, "%d agents with %d series, every %v, memory.limit %s, load of the machine %s\n",
		agents, agents*seriesPerAgent, o.interval, o.limit, load())
	if err := sleep(ctx, o.settle); err != nil {
		return err
	}
	if err := s.reportIngest(ctx, out, 6*o.interval); err != nil {
		return err
	}
	if o.hold > 0 {
		if err := s.reportHeld(ctx, out, o); err != nil {
			return err
		}
	}
	if err := s.reportQueries(ctx, out, queries, o); err != nil {
		return err
	}
	return s.report(out, "after the queries")
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// load is the load average of the last minute.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(data), " ")
	return one
}

// startServer starts the binary on a free port and waits until it answers.
func startServer(ctx context.Context, o options, targets []string, dir string) (*server, error) {
	cmd := exec.Command(o.teescope, "server", "--listen", o.listen, "--web.insecure", "--data-dir", dir, //nolint:gosec // the user names it
		"--interval", o.interval.String(), "--targets", strings.Join(targets, ","), "--memory.limit", o.limit)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	s := &server{cmd: cmd, dir: dir}
	var line string
	if _, err := fmt.Fscanf(stdout, "teescope is up: open %s", &line); err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for the server: %w", err), s.stop())
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	s.url = strings.TrimSuffix(line, "/")
	return s, ctx.Err()
}
