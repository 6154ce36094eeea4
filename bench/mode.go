// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

//go:embed empty.bpf.o
var emptyObject []byte

// A mode is a way of being watched.
type mode struct {
	name  string
	is    string // description for the report
	start func(ctx context.Context, o options, on target) (*watcher, error)
	warm  time.Duration // time from start until its cost is stable
	whole bool          // it counts the calls of the whole machine, not by process
	needs []string      // required programs; tracefs is a file system
}

// target is what a tracer of single processes follows, and a directory for a mode's files.
type target struct {
	pids []int // empty for the machine at rest
	dir  string
}

// modes lists all modes, the cheapest first.
func modes() []mode {
	return []mode{
		{name: "off", is: "nothing is attached", start: startOff},
		{name: "empty", is: "a typed program on the entry of system calls that does nothing: the minimum cost", start: startEmpty},
		{name: "exact", is: "`teescope agent --overhead.budget=100%`: every event is counted", start: agentWith("--overhead.budget=100%")},
		{name: "exact-time", is: "the same, and the time of system calls", start: agentWith("--overhead.budget=100%", "--syscalls.time")},
		{name: "profiles", is: "the same as exact, and 19 samples of stacks per second and CPU (`--profiles.enabled`)",
			start: agentWith("--overhead.budget=100%", "--profiles.enabled")},
		{name: "budget", is: "`teescope agent` with its defaults: a budget of 1 %", start: agentWith(), warm: budgetWarm},
		{name: "up", is: "`teescope up` with its defaults: agent, database and page", start: startUp, warm: budgetWarm},
		{name: "lean", is: "a reference program, the minimum that ebpf_exporter does: a typed program, one LRU hash by process and call", start: reference("lean")},
		{name: "teemon-way", is: "a reference program that counts as TEEMon does: classic tracepoints on both ends, hashes with atomics by thread, call and name", start: reference("teemon"), needs: []string{tracefs}},
		{name: "teemon-full", is: "the same after its hashes have filled up", start: reference("teemon", "-fill"), needs: []string{tracefs}},
		{name: "stack", is: "teemon-way, Debian's node_exporter and Prometheus, and cAdvisor where it was built", start: startStack, warm: stackWarm,
			needs: []string{tracefs, "prometheus-node-exporter", "prometheus"}},
		{name: "perf-stat", is: "`perf stat -a -e raw_syscalls:sys_enter`", start: withTool(perfStat), whole: true, needs: []string{"perf", tracefs}},
		{name: "bpftrace", is: "`bpftrace -e 'tracepoint:raw_syscalls:sys_enter { @[pid, args->id] = count(); }'`", start: withTool(bpftrace), needs: []string{"bpftrace", tracefs}},
		{name: "bpftrace-probe", is: "`bpftrace -e 'tracepoint:syscalls:sys_enter_* { @[probe] = count(); }'`", start: withTool(bpftraceProbes), whole: true,
			needs: []string{"bpftrace", tracefs}},
		{name: "perf-trace", is: "`perf trace -s -a`", start: withTool(perfTrace), needs: []string{"perf", tracefs}},
		{name: "strace", is: "`strace -c -f -p` of the server", start: withTool(strace), needs: []string{"strace"}},
	}
}

// defaultModes answers a user's question within minutes.
const defaultModes = "off,empty,exact,budget"

func modeNames() []string {
	var names []string
	for _, m := range modes() {
		names = append(names, m.name)
	}
	return names
}

func modeNamed(name string) mode {
	for _, m := range modes() {
		if m.name == name {
			return m
		}
	}
	return mode{}
}

// budgetWarm is how long an agent needs to find out what it may watch. It decides by the rates of 5 s.
const budgetWarm = 7 * time.Second

// stackWarm is how long a Prometheus server needs to load its targets, which it does every 5 s, and to scrape each.
const stackWarm = 10 * time.Second

func startOff(context.Context, options, target) (*watcher, error) { return none(func() {}), nil }

// startEmpty attaches the empty program.
func startEmpty(context.Context, options, target) (*watcher, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(emptyObject))
	if err != nil {
		return nil, fmt.Errorf("reading the empty program: %w", err)
	}
	programs, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, fmt.Errorf("loading the empty program: %w", err)
	}
	attached, err := link.AttachTracing(link.TracingOptions{Program: programs.Programs["empty"]})
	if err != nil {
		programs.Close()
		return nil, fmt.Errorf("attaching the empty program: %w", err)
	}
	return none(func() {
		_ = attached.Close() // closing the program detaches it too
		programs.Close()
	}), nil
}

// agentWith runs teescope agent and scrapes it, as a Prometheus server does.
func agentWith(args ...string) func(context.Context, options, target) (*watcher, error) {
	return func(ctx context.Context, o options, _ target) (*watcher, error) {
		w, err := teescope(ctx, o, "agent", args...)
		if err != nil {
			return nil, err
		}
		return w.scraped(ctx, o.scrapeEach), nil
	}
}

// startUp runs all of teescope, which scrapes itself.
func startUp(ctx context.Context, o options, on target) (*watcher, error) {
	return teescope(ctx, o, "up", "--interval", o.scrapeEach.String(), "--data-dir", filepath.Join(on.dir, "up"))
}

func teescope(ctx context.Context, o options, command string, args ...string) (*watcher, error) {
	t, err := startTeescope(ctx, o.teescope, append([]string{command}, args...)...)
	if err != nil {
		return nil, err
	}
	metrics := t.url + "/metrics"
	return &watcher{
		parts: []part{{name: "teescope " + command, child: t.child, url: metrics}},
		stop:  t.stop,
		counted: func(ctx context.Context, of subject) (float64, string, error) {
			body, err := fetch(ctx, metrics)
			if err != nil {
				return 0, "", err
			}
			n, err := sumOf(workloadPattern(of.name), body)
			return n, level(body), err
		},
	}, nil
}

// workloadPattern matches the getppid calls of a workload in teescope's metrics. The order of labels is not guaranteed.
func workloadPattern(name string) string {
	const metric, call = `(?m)^teescope_syscalls_total\{`, `syscall="getppid"`
	owner := `workload="` + regexp.QuoteMeta(name) + `"`
	return metric + `(?:[^\n]*,)?(?:` + call + `,(?:[^\n]*,)?` + owner + `|` + owner + `,(?:[^\n]*,)?` + call + `)[^\n]*\} (\S+)$`
}

// level returns how much the agent watches now, by its own statement (teescope_self_level).
func level(body []byte) string {
	m := regexp.MustCompile(`(?m)^teescope_self_level\{level="(\w+)"\} 1$`).FindSubmatch(body)
	if m == nil {
		return ""
	}
	return "level " + string(m[1])
}
