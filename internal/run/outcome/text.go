// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"github.com/teescope/teescope/internal/lib/lazy"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
)

// The benchmarks that print text.
const (
	redisTool     = "redis-benchmark"
	memtierTool   = "memtier_benchmark"
	wrkTool       = "wrk"
	abTool        = "ab"
	heyTool       = "hey"
	pgbenchTool   = "pgbench"
	sysbenchTool  = "sysbench"
	hyperfineTool = "hyperfine"
	goTool        = "go test"
	googleTool    = "Google benchmark"
)

// block is the part of an output from the line that begins a test's figures to the next such line.
type block struct {
	tool  string
	lines []string // without blanks around; the first is the line that begins the block
}

// maxLine bounds a line in bytes. No benchmark prints a longer one with figures, except for the names of its tests.
const maxLine = 4 << 10

// lines splits an output. Progress is shown with carriage returns, which end a line too.
func lines(output []byte) []string {
	all := strings.FieldsFunc(string(output), func(r rune) bool { return r == '\n' || r == '\r' })
	for i, line := range all {
		all[i] = strings.TrimSpace(text.Cut(text.UTF8(line[:min(len(line), maxLine)]), maxLine))
	}
	return all
}

// readText reads the outputs of all benchmarks that print text.
func readText(output []byte) []section {
	all := lines(output)
	sections := append(goSections(all), callgrind(all)...)
	for _, b := range blocks(all) {
		switch b.tool {
		case redisTool:
			sections = append(sections, redis(b.lines)...)
		case memtierTool:
			sections = append(sections, memtier(b.lines)...)
		case wrkTool:
			sections = append(sections, wrk(b.lines))
		case abTool:
			sections = append(sections, ab(b.lines))
		case heyTool:
			sections = append(sections, hey(b.lines))
		case pgbenchTool:
			sections = append(sections, pgbench(b.lines))
		case sysbenchTool:
			sections = append(sections, sysbench(b.lines))
		case hyperfineTool:
			sections = append(sections, hyperfine(b.lines))
		}
	}
	return sections
}

// blocks finds the benchmarks in an output. Lines before the first one belong to none, and so do lines after a cut.
func blocks(all []string) []block {
	var found []block
	var progress []string // of memtier_benchmark, before its tables
	for i, line := range all {
		next := ""
		for _, l := range all[i+1 : min(i+3, len(all))] {
			if next == "" {
				next = l
			}
		}
		switch tool := begins(line, next); {
		case strings.HasPrefix(line, cutMark):
			found, progress = append(found, block{}), nil
		case tool == memtierTool:
			found = append(found, block{tool: tool, lines: append([]string{line}, progress...)})
			if !isSingleRun(line) {
				progress = nil
			}
		case tool != "":
			found = append(found, block{tool: tool, lines: []string{line}})
		case strings.HasPrefix(line, "[RUN #"), strings.HasPrefix(line, "Connection error: "):
			progress = append(progress, line)
		case len(found) > 0:
			last := &found[len(found)-1]
			last.lines = append(last.lines, line)
		}
	}
	return found
}

var (
	redisTitle     = lazy.Regexp(`^====== (.+) ======$`)
	redisQuiet     = lazy.Regexp(`^(.+): ([0-9.]+) requests per second(?:, p50=([0-9.]+) msec)?$`)
	hyperfineTitle = lazy.Regexp(`^Benchmark #?[0-9]+: (.+)$`)
)

// begins returns the benchmark whose figures begin with a line.
func begins(line, next string) string {
	switch {
	case strings.HasPrefix(line, "Running ") && strings.Contains(line, " test @ "):
		return wrkTool
	case strings.HasPrefix(line, "This is ApacheBench"):
		return abTool
	case line == "Summary:" && strings.HasPrefix(next, "Total:"):
		return heyTool
	case strings.HasPrefix(line, "transaction type: "):
		return pgbenchTool
	case strings.HasPrefix(line, "sysbench ") && strings.Contains(line, "(using "):
		return sysbenchTool
	case line == "ALL STATS", line == "BEST RUN RESULTS", line == "WORST RUN RESULTS", strings.HasPrefix(line, "AGGREGATED AVERAGE RESULTS ("):
		return memtierTool
	case strings.HasPrefix(line, `"test","rps"`), redisTitle().MatchString(line),
		strings.Contains(line, " requests per second") && redisQuiet().MatchString(line) && !strings.HasPrefix(line, "throughput summary:"):
		return redisTool
	case strings.HasPrefix(line, "Benchmark ") && hyperfineTitle().MatchString(line):
		return hyperfineTool
	}
	return ""
}

// after returns what follows a prefix.
func after(line, prefix string) (string, bool) {
	rest, found := strings.CutPrefix(line, prefix)
	return strings.TrimSpace(rest), found
}

// first returns the number that a text begins with, such as 202.82 of "202.82 per sec.)".
func first(s string) (float64, bool) {
	word, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	return number(strings.TrimRight(word, ",)"))
}
