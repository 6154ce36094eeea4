// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/outcome"
)

const (
	// fewSamples is the number of samples of a run below which its course is not known.
	fewSamples = 5
	// minSteady is the number of intervals below which no change of the rate is looked for: stat.changePoints needs 8 for
	// each level, and two levels and a change within the steady part are three.
	minSteady = 24
	// wide is the half width of the interval of a sampled count, relative to it, from which it is noted.
	wide = 0.1
	// quiet is the share of the usual activity below which a load is not running, and quietFor the share of the run from
	// which that is noted.
	quiet, quietFor = 0.05, 0.1
	// late is the time of an answer from which it is noted. Without a limit an agent answers within 50 ms.
	late = time.Second
)

// judge notes what limits the figures of a repetition.
func (r *recording) judge(p run.Phase, state observed) {
	r.epc.add(state.machine)
	if state.missed > 0 {
		r.note("the agent did not answer %d of %d samples: %s", state.missed, state.missed+state.samples, text.Terminal(state.failure.Error()))
	}
	for _, name := range slices.Sorted(maps.Keys(state.failed)) {
		r.note("%s", state.failed[name].note(name, state.samples))
	}
	if state.slowest > late {
		r.note("the agent answered a sample after %s: the machine is busy, or the agent limits how often it is asked. Start it with --overhead.budget 100%%, or let record start its own", state.slowest.Round(100*time.Millisecond))
	}
	if state.samples < fewSamples {
		r.note("only %s in %s, so the course is not known: use a longer load or a shorter --interval",
			text.Plural(state.samples, "sample", "samples"), p.To.Sub(p.From).Round(time.Millisecond))
	}
	if state.dropped > 0 {
		r.note("a run file has at most %d series: values of others are missing", run.MaxSeries)
	}
	if before, after := outlasts(state.activity); before > 0 {
		r.note("the load began %s after the recording: totals of the whole run include this time", before.Round(time.Millisecond))
	} else if after > 0 {
		r.note("the recording outlasted the load by %s: totals of the whole run include this time", after.Round(time.Millisecond))
	}
	for _, note := range sampledNotes(state) {
		r.note("%s", note)
	}
	for _, w := range state.machine.Warnings() {
		r.note("unsteady: %s", w.Text)
	}
	for _, note := range r.counting.notes(state.enclaves) {
		r.note("%s", note)
	}
	r.judgeWorkloads(state)
}

// judgeWorkloads notes which workloads were not found, and which have more than the command.
func (r *recording) judgeWorkloads(state observed) {
	c := r.chooser
	c.mu.Lock()
	mine, others, chosen, full := maps.Clone(c.mine), maps.Clone(c.others), maps.Clone(c.chosen), c.full
	c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(others)) {
		r.note("%s of the workload %s too: its figures include them", text.Plural(others[name], "other process of the machine is", "other processes of the machine are"), text.Terminal(name))
	}
	for _, name := range lateCounted(state, mine) {
		if n := state.crossed[name]; n.last > n.first {
			r.note("ECALLs, OCALLs and transitions of %s count from when the agent has found its enclave, mostly within 2 s: totals of the whole run lack those before, and those of a short run are far too low. Compare the steady state", text.Terminal(name))
		} else {
			r.note("%s had an enclave, and none of its ECALLs, OCALLs and transitions was counted: the agent finds an enclave mostly within 2 s. Use a longer load", text.Terminal(name))
		}
	}
	if full {
		r.note("the command has more than %d workloads: others are not recorded", maxChosen)
	}
	found := func(name string) bool { return state.present[name] }
	if len(r.Command) > 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(mine)), found) {
		r.note("the agent has no workload %s: the command was too short for it, or is not on its machine", text.Terminal(strings.Join(slices.Sorted(maps.Keys(mine)), ", ")))
	}
	for _, name := range r.Workloads {
		if chosen[name] && !found(name) {
			r.note("the agent has no workload %s", text.Terminal(name))
		}
	}
	if silent, err := c.watched(); err == nil {
		for _, rule := range silent {
			r.note("no process matches --watch %s at the end: a pattern must match the whole name", rule)
		}
	}
}

// lateCounted returns the workloads of the command that have an enclave: their crossings are not counted from the
// start.
func lateCounted(state observed, mine map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(state.enclaves)), func(name string) bool { return !mine[name] })
}

// sampledNotes says which counts are estimates.
func sampledNotes(state observed) []string {
	var notes []string
	if state.off {
		notes = append(notes, "frequent events were not counted for a part of the time, because watching reached its budget: their totals are too low. Use --overhead.budget 100% to count all")
	}
	lowest := 1.0
	var probes []string
	for _, probe := range slices.Sorted(maps.Keys(state.sampled)) {
		if share := state.sampled[probe]; share < 1 {
			lowest, probes = min(lowest, share), append(probes, text.Terminal(probe))
		}
	}
	if len(probes) > 0 {
		notes = append(notes, fmt.Sprintf("some events were counted for a part of the time, at least %s %%, and scaled up: %s", figure(100*lowest), strings.Join(probes, ", ")))
	}
	for _, name := range slices.Sorted(maps.Keys(state.calls)) {
		calls, variance := state.calls[name], state.variance[name]
		half := stat.NormalQuantile(0.975) * math.Sqrt(max(0, variance.last-variance.first))
		if n := calls.last - calls.first; n > 0 && half > wide*n {
			notes = append(notes, fmt.Sprintf("the number of system calls of %s is an estimate: %s ± %s (95 %%)", text.Terminal(name), figure(n), figure(half)))
		}
	}
	return notes
}

// rates returns what was done per second between samples: system calls, or CPU time if none were counted.
func rates(all []activity) []float64 {
	if len(all) < 2 {
		return nil
	}
	byCalls := all[len(all)-1].calls > all[0].calls
	var rates []float64
	for i, a := range all[1:] {
		did := a.cpu - all[i].cpu
		if byCalls {
			did = a.calls - all[i].calls
		}
		rates = append(rates, max(0, did)/a.at.Sub(all[i].at).Seconds()) // below zero, the agent began again
	}
	return rates
}

// outlasts returns for how long there was no load at the start and at the end of a run, or 0 if that is short.
func outlasts(all []activity) (before, after time.Duration) {
	rates := rates(all)
	if len(rates) < 2*fewSamples {
		return 0, 0
	}
	busy := stat.Sorted(rates)
	usual := stat.Quantile(busy, 0.9) // at least a tenth of the time has a load
	first, last := 0, len(rates)
	for first < last && rates[first] < quiet*usual {
		first++
	}
	for last > first && rates[last-1] < quiet*usual {
		last--
	}
	whole := all[len(all)-1].at.Sub(all[0].at)
	if t := all[first].at.Sub(all[0].at); t.Seconds() > quietFor*whole.Seconds() {
		before = t
	}
	if t := all[len(all)-1].at.Sub(all[last].at); t.Seconds() > quietFor*whole.Seconds() {
		after = t
	}
	return before, after
}

// steady writes the phases of the start and of the steady state. The start ends at a given time, or at the last change
// of the rate in the first half.
func (r *recording) steady(p run.Phase, state observed, at time.Time) error {
	switch {
	case r.SteadyAfter > 0 && at.IsZero():
		r.note("the command ended within --steady-after %s: there is no steady state", r.SteadyAfter)
		return nil
	case r.SteadyAfter > 0:
	default:
		all := rates(state.activity)
		if len(all) < minSteady {
			if state.samples < fewSamples {
				return nil // judge says so
			}
			r.note("there were fewer than %d intervals: start and steady state are not separated. Use a longer load, a shorter --interval or --steady-after", minSteady)
			return nil
		}
		begin, later := steadyFrom(all)
		at = state.activity[begin].at
		if later > 0 {
			r.note("the rate changed %s in the second half: there is no steady state", text.Plural(later, "time", "times"))
			return nil
		}
	}
	start, steady := p, p
	start.Name, start.To, steady.Name, steady.From = run.Start, at, run.Steady, at
	if start.To.After(start.From) {
		if err := r.out.Phase(start); err != nil {
			return err
		}
	}
	return r.out.Phase(steady)
}

// steadyFrom returns the index at which the last level of the first half begins, and the number of changes after it.
func steadyFrom(rates []float64) (begin, later int) {
	for _, c := range stat.Changes(rates, stat.DefaultThresholds()) {
		if c.At <= len(rates)/2 {
			begin = c.At
		} else {
			later++
		}
	}
	return begin, later
}

// outcomes returns what the command and the benchmark say of a repetition.
func (r *recording) outcomes(c *child) []run.Outcome {
	all := []run.Outcome{
		{Name: "wall_time", Unit: outcome.Seconds, Value: c.wall.Seconds(), Better: string(outcome.Lower), From: "teescope"},
		{Name: "cpu_time", Unit: outcome.Seconds, Value: c.cpu().Seconds(), Better: string(outcome.Lower), From: "teescope", Note: "of the command and the children that it waited for"},
	}
	add := func(found []outcome.Outcome) { // what the user asked for replaces what was recognised
		for _, o := range found {
			all = slices.DeleteFunc(all, func(old run.Outcome) bool { return old.Name == o.Name })
			all = append(all, run.Outcome{Name: o.Name, Unit: o.Unit, Value: o.Value, Better: string(o.Better), From: o.From, Note: o.Note})
		}
	}
	out, errs := c.out.Bytes(), c.errs.Bytes()
	printed, beside := outcome.Read(out), outcome.Read(errs)
	if len(printed) > 0 { // callgrind counts on the standard error what a benchmark does
		beside = slices.DeleteFunc(beside, func(o outcome.Outcome) bool { return o.From != outcome.Callgrind })
	}
	add(beside)
	add(printed)
	for _, p := range r.Outcomes {
		found, err := p.Find(out)
		if errors.Is(err, outcome.ErrNoMatch) {
			if other, second := p.Find(errs); second == nil {
				found, err = other, nil
			}
		}
		if err != nil {
			r.note("%s", text.Terminal(err.Error()))
		}
		add(found)
	}
	if r.OutcomeFile != "" {
		found, err := readNew(r.OutcomeFile, c.began)
		if err != nil {
			r.note("%s", text.Terminal(err.Error()))
		}
		add(found)
	}
	if c.cut {
		r.note("a program that the command left behind has its output open: what it prints later is lost")
	}
	if dropped := c.out.Dropped(); dropped > 0 {
		r.note("%d bytes of the output were not kept for outcomes", dropped)
	}
	return all
}

// readNew reads the outcomes of a file that was written since a time.
func readNew(name string, since time.Time) ([]outcome.Outcome, error) {
	if s, err := os.Stat(name); err == nil && s.ModTime().Before(since.Add(-10*time.Millisecond)) { // of the file system's clock
		return nil, fmt.Errorf("the command did not write --outcome-file %s: it is older", name)
	}
	return outcome.ReadFile(name)
}
