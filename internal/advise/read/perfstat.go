// SPDX-License-Identifier: Apache-2.0

package read

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/lazy"
)

const (
	// maxCounters bounds the events of perf stat.
	maxCounters = 256
	// maxTime bounds the times that a file sums up to. 30 years are more than a program runs.
	maxTime = 30 * 365 * 24 * time.Hour
)

// Counter is one event of perf stat that the processor counts.
type Counter struct {
	Name  string
	Value float64 // occurrences
	Line  int
}

// PerfStat is what perf stat prints (tools/perf/util/stat-display.c). What it does not print is zero. The times of several
// tables add up, as the SGX stats beside them do.
type PerfStat struct {
	Elapsed  time.Duration
	CPU      time.Duration // user and system time
	Counters []Counter     // events of the processor, such as cycles; those of the kernel are omitted

	table bool // the lines belong to the table
}

var (
	perfTime  = lazy.Regexp(`^\s*(\d{1,9}(?:[.,]\d{1,9})?)\s+seconds (time elapsed|user|sys)\s*$`)
	perfCount = lazy.Regexp(`^\s*(\d{1,3}(?:[.,]\d{3}){1,6}|\d{1,19})\s+([a-zA-Z][\w.:/=,-]{0,63})(?:\s|$)`)
	modifiers = lazy.Regexp(`^[ukhGHpPSDIeWb]+$`)
)

// line reads a line of perf stat. Other lines may be between them.
func (p *PerfStat) line(n int, line string) {
	if strings.Contains(line, "Performance counter stats for ") {
		p.table = true
		return
	}
	if found := perfTime().FindStringSubmatch(line); found != nil {
		seconds, _ := strconv.ParseFloat(strings.Replace(found[1], ",", ".", 1), 64)
		p.table = false
		to := &p.CPU
		if found[2] == "time elapsed" {
			to = &p.Elapsed
		}
		*to = min(*to+time.Duration(seconds*float64(time.Second)), maxTime)
		return
	}
	found := perfCount().FindStringSubmatch(line)
	if !p.table || found == nil || len(p.Counters) == maxCounters || !ofProcessor(found[2]) {
		return
	}
	value, err := strconv.ParseUint(strings.NewReplacer(",", "", ".", "").Replace(found[1]), 10, 64)
	if err == nil {
		p.Counters = append(p.Counters, Counter{found[2], float64(value), n})
	}
}

// ofProcessor reports whether an event is counted by the processor. The kernel counts tracepoints and the events of
// perf_sw_ids (include/uapi/linux/perf_event.h).
func ofProcessor(event string) bool {
	name, after, colon := strings.Cut(event, ":")
	if colon && !modifiers().MatchString(after) {
		return false // a tracepoint
	}
	return !slices.Contains([]string{
		"cpu-clock", "task-clock", "page-faults", "faults", "context-switches", "cs", "cpu-migrations", "migrations", "minor-faults",
		"major-faults", "alignment-faults", "emulation-faults", "bpf-output", "cgroup-switches", "dummy", "duration_time", "user_time", "system_time", "msec",
	}, name)
}
