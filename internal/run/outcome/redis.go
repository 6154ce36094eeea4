// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"encoding/csv"
	"encoding/json"
	"strings"

	"github.com/teescope/teescope/internal/lib/lazy"
)

// redis reads redis-benchmark (src/redis-benchmark.c, showLatencyReport): one test in the long form, one line of -q, or the
// table of --csv. Before version 7 the long form had only a line with the requests per second.
func redis(lines []string) []section {
	if strings.HasPrefix(lines[0], `"test","rps"`) {
		return redisCSV(lines)
	}
	s := section{tool: redisTool}
	if m := redisQuiet().FindStringSubmatch(lines[0]); m != nil {
		s.test = clean(m[1])
		if v, ok := number(m[2]); ok {
			s.add("throughput", OperationsPerSecond, v)
		}
		if v, ok := number(m[3]); ok {
			s.time("latency_p50", v/1e3)
		}
		return []section{s}
	}
	s.test = clean(redisTitle().FindStringSubmatch(lines[0])[1])
	for i, line := range lines {
		if n, rest, found := strings.Cut(line, " requests completed in "); found && strings.HasSuffix(rest, " seconds") {
			if v, ok := number(n); ok {
				s.add("operations", Operations, v)
			}
		}
		rate, _ := strings.CutPrefix(line, "throughput summary: ")
		if n, found := strings.CutSuffix(rate, " requests per second"); found {
			if v, ok := number(n); ok {
				s.add("throughput", OperationsPerSecond, v)
			}
		}
		if line == "latency summary (msec):" && i+2 < len(lines) {
			redisLatencies(&s, strings.Fields(lines[i+1]), strings.Fields(lines[i+2]))
		}
	}
	return []section{s}
}

// redisLatencies adds latencies in milliseconds under the names of their columns.
func redisLatencies(s *section, columns, values []string) {
	for i, column := range columns {
		name, known := redisColumn(column)
		if !known || i >= len(values) {
			continue
		}
		if v, ok := number(values[i]); ok {
			s.time(name, v/1e3)
		}
	}
}

func redisColumn(column string) (string, bool) {
	switch column {
	case "avg":
		return "latency_mean", true
	case "min", "max":
		return "latency_" + column, true
	}
	if share, found := strings.CutPrefix(column, "p"); found {
		return percentile(share)
	}
	return "", false
}

// redisCSV reads the table of redis-benchmark --csv, version 7: "test","rps","avg_latency_ms" and more.
func redisCSV(lines []string) []section {
	var all []section
	var columns []string
	for i, line := range lines {
		cells, err := csv.NewReader(strings.NewReader(line)).Read()
		if err != nil || i > 0 && len(cells) != len(columns) {
			break // the table has ended
		}
		if i == 0 {
			columns = cells
			continue
		}
		s := section{tool: redisTool, test: clean(cells[0])}
		for j, column := range columns[1:] {
			v, ok := number(cells[j+1])
			if !ok {
				continue
			}
			if column == "rps" {
				s.add("throughput", OperationsPerSecond, v)
			} else if name, found := strings.CutSuffix(column, "_latency_ms"); found {
				redisLatencies(&s, []string{name}, cells[j+1:j+2])
			}
		}
		all = append(all, s)
	}
	return all
}

// memtierColumn finds the columns of memtier_benchmark, which one blank may separate.
var memtierColumn = lazy.Regexp(`Avg\. Latency|p[0-9.]+ Latency|\S+`)

// memtierProgress has the number of operations until then, of a run that ends with a table.
var memtierProgress = lazy.Regexp(`^\[RUN #1 .* conns: +(\d+) ops, `)

// memtier reads one table of memtier_benchmark (run_stats.cpp) and the progress before it. With several runs the table of
// their average counts, and not those of the best and the worst.
func memtier(lines []string) []section {
	if isSingleRun(lines[0]) {
		return nil
	}
	var all []section
	var columns []string
	operations, failed := "", 0
	for _, line := range lines[1:] {
		if m := memtierProgress().FindStringSubmatch(line); m != nil {
			operations = m[1]
		}
		if columns == nil {
			failed += strings.Count(line, "Connection error: ")
		}
		switch cells := strings.Fields(line); {
		case len(cells) > 0 && cells[0] == "Type" && columns == nil:
			columns = memtierColumn().FindAllString(line, -1)
		case columns != nil && len(cells) == len(columns):
			if s := memtierRow(columns, cells); len(s.outcomes) > 0 {
				all = append(all, s)
			}
		}
		if n := len(all); n > 0 && all[n-1].test == "" { // the totals are last
			if v, ok := number(operations); ok && lines[0] == "ALL STATS" {
				all[n-1].add("operations", Operations, v)
			}
			if failed > 0 { // they are in the standard error, which the output may not have: none is not known
				all[n-1].add("connection_errors", Errors, float64(failed))
			}
			break
		}
	}
	return all
}

// isSingleRun reports whether a title is of one of several runs, whose average has a table too.
func isSingleRun(title string) bool {
	return title == "BEST RUN RESULTS" || title == "WORST RUN RESULTS"
}

// memtierRow reads the row of one command. A command that was not sent has no outcomes.
func memtierRow(columns, cells []string) section {
	s := section{tool: memtierTool, test: memtierTest(cells[0])}
	for i, column := range columns {
		v, ok := number(cells[i])
		if !ok { // --- stands for no value
			continue
		}
		if column == "Ops/sec" && v == 0 && s.test != "" {
			return section{}
		}
		memtierValue(&s, column, v)
	}
	return s
}

// memtierTest returns the name of a row. The totals are those of the whole benchmark.
func memtierTest(row string) string {
	if row == "Totals" {
		return ""
	}
	return clean(row)
}

// memtierValue adds a value of a column of the table, or of a field of the JSON file. Latencies are in milliseconds.
func memtierValue(s *section, column string, v float64) {
	switch column {
	case "Ops/sec":
		s.add("throughput", OperationsPerSecond, v)
	case "Hits/sec":
		s.custom("hits_per_second", OperationsPerSecond, v, Neither)
	case "Misses/sec":
		s.custom("misses_per_second", OperationsPerSecond, v, Neither)
	case "Avg. Latency", "Average Latency":
		s.time("latency_mean", v/1e3)
	case "Min Latency":
		s.time("latency_min", v/1e3)
	case "Max Latency":
		s.time("latency_max", v/1e3)
	case "KB/sec":
		s.add("bytes_throughput", BytesPerSecond, v*1024)
	case "Count":
		s.add("operations", Operations, v)
	case "Connection Errors":
		s.add("connection_errors", Errors, v)
	default:
		share, _ := strings.CutSuffix(strings.TrimPrefix(column, "p"), " Latency")
		if name, ok := percentile(share); ok && strings.HasPrefix(column, "p") {
			s.time(name, v/1e3)
		}
	}
}

// memtierFields are the fields of the JSON file in the order of the outcomes.
var memtierFields = []string{
	"Count", "Ops/sec", "Hits/sec", "Misses/sec", "KB/sec", "Average Latency", "Min Latency", "Max Latency", "Connection Errors",
}

// memtierJSON reads the file of memtier_benchmark --json-out-file.
func memtierJSON(data []byte) []section {
	var file map[string]json.RawMessage
	if json.Unmarshal(data, &file) != nil {
		return nil
	}
	stats := file["ALL STATS"]
	for name, part := range file {
		if strings.HasPrefix(name, "AGGREGATED AVERAGE RESULTS (") {
			stats = part
		}
	}
	var rows map[string]json.RawMessage
	if json.Unmarshal(stats, &rows) != nil {
		return nil
	}
	var all []section
	for _, row := range sorted(rows) {
		if s := memtierObject(row, rows[row]); len(s.outcomes) > 0 {
			all = append(all, s)
		}
	}
	return all
}

func memtierObject(row string, data json.RawMessage) section {
	s := section{tool: memtierTool, test: memtierTest(row)}
	fields := numbers(data)
	if _, ok := fields["Ops/sec"]; !ok || fields["Count"] == 0 && s.test != "" {
		return section{}
	}
	for _, name := range memtierFields {
		if v, ok := fields[name]; ok {
			memtierValue(&s, name, v)
		}
	}
	var parts map[string]json.RawMessage
	// After several runs the totals have no histogram, and a percentile of 0.007 ms that is the smallest value of one.
	if fields["Average Latency"] == 0 && fields["Max Latency"] == 0 {
		return s
	}
	if json.Unmarshal(data, &parts) == nil {
		shares := numbers(parts["Percentile Latencies"])
		for _, name := range sorted(shares) {
			memtierValue(&s, name, shares[name])
		}
	}
	return s
}
