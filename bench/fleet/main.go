// SPDX-License-Identifier: Apache-2.0

// Command fleet measures the resources that a server needs for many agents. It simulates agents, starts a teescope server
// that scrapes them, runs the page's queries, and reports memory, CPU, latencies and disk.
//
// It draws no conclusions. The results apply to one machine, and the report shows how busy that machine was.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/clock"
)

type options struct {
	teescope, limit, listen, clients, database, cluster string
	write, query, access, protocol                      string
	series, nodes, rounds, concurrent, replicas         int
	interval, settle, hold, kill                        time.Duration
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
	flags.IntVar(&o.nodes, "nodes", 0, "number of small agents, with six enclaves and about 300 series each; they replace those of -series")
	flags.StringVar(&o.database, "database", "", "path of a single-node victoria-metrics, which gets all samples and is then queried and analysed too")
	flags.StringVar(&o.cluster, "cluster", "", "directory with the vmstorage, vminsert and vmselect of VictoriaMetrics' cluster: two storage nodes, two inserts and a select get all samples and are then queried and analysed too")
	flags.StringVar(&o.write, "write", "", "address of a receiver of remote write that runs already. It gets all samples, and -query names where they can be queried")
	flags.StringVar(&o.query, "query", "", "address of the queries of -write, which is queried and analysed too")
	flags.StringVar(&o.access, "access", "", "file with the HTTP client configuration for -write and -query, such as the header with a tenant")
	flags.StringVar(&o.protocol, "protocol", "1.0", "version of remote write")
	flags.IntVar(&o.replicas, "replicas", 1, "number of storage nodes of the cluster that store each sample, 1 or 2")
	flags.DurationVar(&o.kill, "kill", 0, "time for which a storage node and an insert of the cluster are killed, one after the other, instead of the queries of the server's own database; 0 leaves it out")
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
	handlers, err := o.agents()
	if err != nil {
		return err
	}
	agents, err := writeTargets(handlers, filepath.Join(dir, "agents.json"))
	if err != nil {
		return err
	}
	args := []string{"--data-dir", filepath.Join(dir, "data"), "--interval", o.interval.String(), "--discovery", "file=" + filepath.Join(dir, "agents.json"), "--memory.limit", o.limit}
	e, err := o.startEngine(ctx, filepath.Join(dir, "engine"))
	if err != nil {
		return err
	}
	if e != nil {
		defer func() { err = errors.Join(err, e.stop()) }()
		args = append(args, "--remote-write.urls", e.write, "--remote-write.config-file", o.access, "--remote-write.protocol", o.protocol)
	}
	s, err := startServer(ctx, o, filepath.Join(dir, "data"), args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	fmt.Fprintf(out, "%d agents, every %v, memory.limit %s, load of the machine %s\n", agents, o.interval, o.limit, load())
	if err := s.reportDiscovery(ctx, out, agents, o.interval); err != nil {
		return err
	}
	if err := clock.Sleep(ctx, o.settle); err != nil {
		return err
	}
	measured := []*server{s}
	if e != nil {
		measured = append(measured, e.parts...)
	}
	if err := s.reportIngest(ctx, out, 6*o.interval, measured...); err != nil {
		return err
	}
	if err := s.reportScrapes(ctx, out, 6*o.interval, o.interval); err != nil {
		return err
	}
	if o.hold > 0 {
		if err := s.reportHeld(ctx, out, o); err != nil {
			return err
		}
	}
	if o.kill == 0 {
		if err := errors.Join(s.reportQueries(ctx, out, queries, o), s.reportAnalysis(ctx, out), s.report(out, "after the queries")); err != nil {
			return err
		}
	}
	if e == nil {
		return nil
	}
	if err := o.reportElsewhere(ctx, out, e, s, queries, dir); err != nil || o.kill == 0 || o.cluster == "" {
		return err
	}
	return e.reportKill(ctx, out, s, o)
}

// agents returns the handlers of all simulated agents.
func (o options) agents() (all []http.Handler, err error) {
	if o.nodes == 0 {
		for i := range (o.series + seriesPerAgent - 1) / seriesPerAgent {
			all = append(all, newAgent(i))
		}
		return all, nil
	}
	families, err := familiesOf()
	for i := 0; i < o.nodes && err == nil; i++ {
		all = append(all, newNode(families))
	}
	return all, err
}

// writeTargets serves each agent on a port of its own, and writes their addresses for the discovery in files.
func writeTargets(agents []http.Handler, file string) (int, error) {
	var groups []map[string]any
	for i, a := range agents {
		address, err := listen(a)
		if err != nil {
			return 0, err
		}
		groups = append(groups, map[string]any{"targets": []string{address}, "labels": map[string]string{"instance": fmt.Sprintf("node%04d:9750", i)}})
	}
	text, err := json.Marshal(groups)
	if err != nil {
		return 0, err
	}
	return len(agents), os.WriteFile(file, text, 0o644) //nolint:gosec // addresses of this process
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
func startServer(ctx context.Context, o options, dir string, args ...string) (*server, error) {
	cmd := exec.Command(o.teescope, append([]string{"server", "--listen", o.listen, "--web.insecure"}, args...)...) //nolint:gosec // the user names it
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
