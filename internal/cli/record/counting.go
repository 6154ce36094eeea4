// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/cli/record/hardware"
	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
)

const (
	// maxCounted bounds the threads of servers with counters of their own. Each takes eight files.
	maxCounted = 256
	// countedPrefix and countedSuffix are around the name of an event in the name of a series.
	countedPrefix, countedSuffix = "teescope_", "_total"
	// runningRatio is the series of the share of the time in which an event was counted.
	runningRatio = "teescope_counter_running_ratio"
	// enclavesOf is a series that a workload with an enclave has.
	enclavesOf = "sgx_workload_enclaves"
)

// counting counts events of the processor for the command and for the watched servers. Its methods may be called at the
// same time. The zero value counts nothing.
type counting struct {
	pairs [][]hardware.Event

	mu       sync.Mutex
	workload string        // of the command
	command  *hardware.Set // of the repetition that runs
	before   map[string]tally
	servers  map[int]counted // by process
	threads  int             // with counters of their own
	full     bool            // there were more than maxCounted
	launched time.Duration   // when the command was launched, after the start of the machine
	began    time.Duration   // when the first server got counters; 0 without one
	later    bool            // a server started when others were counted
	failure  error           // of the last server whose threads could not be counted
	series   map[string]*run.Series
	last     map[string]tally
	shares   map[string]float64 // lowest share of the time in which a workload's events were counted
}

// counted is the counters of a process.
type counted struct {
	*hardware.Set
	workload string
}

// tally is the sum of readings.
type tally struct{ count, enabled, running float64 }

func (t *tally) add(r hardware.Reading) {
	t.count += r.Count
	t.enabled += float64(r.Enabled)
	t.running += float64(r.Running)
}

// newCounting returns the counters, and the condition that says whether the events can be counted.
func newCounting(pairs [][]hardware.Event, workload string) (*counting, run.Condition) {
	c := &counting{workload: workload, before: map[string]tally{}, servers: map[int]counted{}, series: map[string]*run.Series{}, last: map[string]tally{}, shares: map[string]float64{}}
	told := run.Condition{Name: "counters", Kind: "note"}
	if len(pairs) == 0 {
		told.Value = "switched off"
		return c, told
	}
	const thisThread = 0
	set, err := hardware.Threads(pairs, []int{thisThread})
	if err != nil {
		told.Value = "none: " + err.Error()
		return c, told
	}
	set.Close()
	c.pairs, told.Value = pairs, "user and system mode"
	if set.UserOnly {
		told.Value = "user mode only: perf_event_paranoid forbids the other one"
	}
	return c, told
}

// launch starts the command with its counters.
func (c *counting) launch(start func() (*child, error)) (*child, error) {
	if len(c.pairs) == 0 {
		return start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.mu.Lock()
	c.fold()
	c.launched = clock.SinceBoot()
	set, err := hardware.OnExec(c.pairs)
	if err != nil {
		c.failure = err
	}
	c.command = set
	c.mu.Unlock()
	return start()
}

// fold keeps the counts of a command that has ended, and closes its counters.
func (c *counting) fold() {
	if c.command == nil {
		return
	}
	for _, r := range c.command.Read() {
		sum := c.before[key(c.workload, r.Event, r.Mode)]
		sum.add(r)
		c.before[key(c.workload, r.Event, r.Mode)] = sum
	}
	c.command.Close()
	c.command = nil
}

// inherits reports whether a process that started then may have the counters of one that was counted before. A parent that
// has ended leaves no trace, so that nothing is known of any later process.
func (c *counting) inherits(started time.Duration) bool {
	const tick = 10 * time.Millisecond // the unit of a start in the kernel, rounded down
	return c.command != nil && started+tick > c.launched || c.began > 0 && started+tick > c.began
}

// serve opens the counters of a server process that has none yet. started is the start of the process as time since the
// start of the machine. A process that may have inherited counters gets none, because it would be counted twice.
func (c *counting) serve(pid int, started time.Duration, workload string, threads []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.servers[pid]; known || len(c.pairs) == 0 {
		return
	}
	if c.inherits(started) {
		c.later = true
		return
	}
	if c.threads+len(threads) > maxCounted {
		c.full = true
		return
	}
	set, err := hardware.Threads(c.pairs, threads)
	if err != nil { // counts of a part of the threads would look complete, and the recorder needs descriptors too
		c.failure = err
		set.Close()
	}
	c.servers[pid] = counted{set, workload}
	c.threads += len(threads)
}

// served records that a search for servers, which began then, has ended. Those that started later may have inherited
// counters.
func (c *counting) served(began time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began == 0 && c.threads > 0 {
		c.began = began
	}
}

// counts reports whether a process has counters.
func (c *counting) counts(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.servers[pid]
	return known || len(c.pairs) == 0
}

func key(workload, event, mode string) string { return event + "\x00" + mode + "\x00" + workload }

// values returns the counts since the start of the recording, and the share of the time since the last call in which
// each event was counted.
func (c *counting) values() []run.Value {
	c.mu.Lock()
	defer c.mu.Unlock()
	sums := maps.Clone(c.before)
	add := func(workload string, set *hardware.Set) {
		for _, r := range set.Read() {
			sum := sums[key(workload, r.Event, r.Mode)]
			sum.add(r)
			sums[key(workload, r.Event, r.Mode)] = sum
		}
	}
	if c.command != nil {
		add(c.workload, c.command)
	}
	for _, s := range c.servers {
		add(s.workload, s.Set)
	}
	var all []run.Value
	for _, k := range slices.Sorted(maps.Keys(sums)) {
		parts, sum, last := strings.Split(k, "\x00"), sums[k], c.last[k]
		c.last[k] = sum
		event, mode, workload := parts[0], parts[1], parts[2]
		all = append(all, run.Value{Series: c.known(countedPrefix+event+countedSuffix, run.Counter, event, workloadLabel, workload, "mode", mode), Value: sum.count})
		if ran := sum.enabled - last.enabled; ran > 0 {
			share := (sum.running - last.running) / ran
			all = append(all, run.Value{Series: c.known(runningRatio, run.Gauge, "ratio", workloadLabel, workload, "counter", event+":"+mode), Value: share})
			if low, known := c.shares[workload]; !known || share < low {
				c.shares[workload] = share
			}
		}
	}
	return all
}

// known returns the series with these labels, the same for each of its samples. A counter was zero before it was opened.
func (c *counting) known(name string, kind run.Kind, unit string, labels ...string) *run.Series {
	s := &run.Series{Name: name, Kind: kind, Unit: unit, Labels: map[string]string{}}
	for i := 0; i < len(labels); i += 2 {
		s.Labels[labels[i]] = labels[i+1]
	}
	if kind == run.Counter {
		zero := 0.0
		s.Before = &zero
	}
	if old := c.series[s.ID()]; old != nil {
		return old
	}
	c.series[s.ID()] = s
	return s
}

// notes says what limits the counts. Enclaves are the workloads that have one.
func (c *counting) notes(enclaves map[string]bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var notes []string
	if c.failure != nil {
		notes = append(notes, fmt.Sprintf("the command or a server has no counters of cycles and instructions: %v", c.failure))
	}
	if c.later {
		notes = append(notes, "servers that started while others were counted: their cycles and instructions are only in the counts of those that started them")
	}
	if c.full {
		notes = append(notes, fmt.Sprintf("the servers have more than %d threads: cycles and instructions of others are not counted", maxCounted))
	}
	for _, workload := range slices.Sorted(maps.Keys(c.shares)) {
		name := text.Terminal(workload)
		if share := c.shares[workload]; share < 1 {
			notes = append(notes, fmt.Sprintf("cycles, instructions and branches of %s were counted for a part of its time, at least %s %%, and scaled up: the processor has fewer counters", name, figure(100*share)))
		}
		if enclaves[workload] {
			notes = append(notes, fmt.Sprintf("the processor does not count inside production enclaves: cycles, instructions and branches of %s are of what ran outside, and of debug enclaves", name))
		}
	}
	return notes
}

// close ends the counting.
func (c *counting) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.command != nil {
		c.command.Close()
	}
	for _, s := range c.servers {
		s.Close()
	}
	c.command, c.servers = nil, nil
}
