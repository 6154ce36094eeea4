// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"strings"

	"github.com/teescope/teescope/internal/lib/lazy"
)

// pgbench reads the results of pgbench (src/bin/pgbench/pgbench.c, printResults). Figures of single scripts and statements
// are omitted.
func pgbench(lines []string) section {
	s := section{tool: pgbenchTool}
	for _, line := range lines {
		if rest, ok := after(line, "number of transactions actually processed:"); ok {
			done, _, _ := strings.Cut(rest, "/") // of how many
			if v, ok := number(done); ok {
				s.add("operations", Operations, v)
			}
		} else if rest, ok := after(line, "number of failed transactions:"); ok {
			if v, ok := first(rest); ok {
				s.add("failed_transactions", Errors, v)
			}
		} else if strings.Contains(line, "Run was aborted") {
			s.add("aborted_runs", Errors, 1).Note = "clients were aborted, so the figures are incomplete"
		} else if name, rest, ok := strings.Cut(line, " = "); ok {
			pgbenchValue(&s, name, rest)
		}
	}
	return s
}

// pgbenchValue reads "tps = 85.1 (excluding connections establishing)" and "latency average = 2.886 ms". Versions before 14
// print the rate twice, with and without the time to connect.
func pgbenchValue(s *section, name, rest string) {
	v, ok := first(rest)
	if !ok {
		return
	}
	fields := strings.Fields(rest)
	inMs := len(fields) > 1 && fields[1] == "ms"
	switch {
	case name == "tps" && !strings.Contains(rest, "(including connections"):
		s.add("throughput", OperationsPerSecond, v)
	case name == "latency average" && inMs:
		o := s.time("latency_mean", v/1e3)
		if strings.Contains(rest, "(including failures)") {
			o.Note = "includes failed transactions"
		}
	case name == "latency stddev" && inMs:
		s.time("latency_stdev", v/1e3)
	}
}

var (
	sysbenchTotal  = lazy.Regexp(`^Total operations: (\d+) \(\s*([0-9.]+) per second\)$`)
	sysbenchBytes  = lazy.Regexp(`MiB transferred \(([0-9.]+) MiB/sec\)$`)
	sysbenchPer    = lazy.Regexp(`^(\d+)\s+\(([0-9.]+) per sec\.\)$`)
	sysbenchShare  = lazy.Regexp(`^(\d+)th percentile$`)
	sysbenchNamed  = map[string]string{"min": "latency_min", "avg": "latency_mean", "max": "latency_max"}
	sysbenchErrors = map[string]string{"ignored errors": "ignored_errors", "reconnects": "reconnects"}
)

// sysbench reads sysbench 1.0 (src/sysbench.c, report_cumulative, and the reports of its tests). Latencies are in
// milliseconds with two decimals.
func sysbench(lines []string) section {
	s := section{tool: sysbenchTool}
	part := ""
	for _, line := range lines {
		name, rest, found := strings.Cut(line, ":")
		rest = strings.TrimSpace(rest)
		if found && rest == "" {
			part = name
			continue
		}
		if m := sysbenchTotal().FindStringSubmatch(line); m != nil {
			if v, ok := number(m[2]); ok {
				s.add("throughput", OperationsPerSecond, v)
			}
		} else if m := sysbenchBytes().FindStringSubmatch(line); m != nil {
			if v, ok := number(m[1]); ok {
				s.add("bytes_throughput", BytesPerSecond, v*(1<<20))
			}
		} else if m := sysbenchPer().FindStringSubmatch(rest); m != nil {
			sysbenchCount(&s, name, m[1], m[2])
		} else if v, ok := number(rest); ok {
			sysbenchValue(&s, part, name, v)
		}
	}
	return s
}

// sysbenchCount reads a number with its rate, of the tests of databases.
func sysbenchCount(s *section, name, count, rate string) {
	n, ok1 := number(count)
	r, ok2 := number(rate)
	if !ok1 || !ok2 {
		return
	}
	switch name {
	case "transactions":
		s.add("throughput", OperationsPerSecond, r)
	case "queries":
		s.add("query_throughput", OperationsPerSecond, r)
	}
	if name, ok := sysbenchErrors[name]; ok {
		s.add(name, Errors, n)
	}
}

func sysbenchValue(s *section, part, name string, v float64) {
	switch {
	case name == "events per second", strings.HasPrefix(name, "events/s"):
		s.add("throughput", OperationsPerSecond, v)
	case name == "total number of events":
		s.add("operations", Operations, v)
	case part == "File operations" && strings.HasSuffix(name, "s/s"): // reads/s, writes/s, fsyncs/s
		s.add(strings.TrimSuffix(clean(name), "s/s")+"_throughput", OperationsPerSecond, v)
	case name == "read, MiB/s":
		s.add("read_bytes_throughput", BytesPerSecond, v*(1<<20))
	case name == "written, MiB/s":
		s.add("write_bytes_throughput", BytesPerSecond, v*(1<<20))
	case part == "Latency (ms)":
		known := sysbenchNamed[name]
		if m := sysbenchShare().FindStringSubmatch(name); m != nil {
			known, _ = percentile(m[1])
		}
		if known != "" {
			s.time(known, v/1e3)
		}
	}
}
