// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/outcome"
)

// Limits of a comparison.
const (
	MaxRecords      = 10_000 // run files
	maxObservations = 400    // repetitions of a group
	maxParts        = 500    // of a metric in a run file; further ones are the part other
	maxSeriesNames  = 1000   // in the area other
	rest            = "other"
)

// Record is the part of a run file that a comparison needs.
type Record struct {
	File       string
	Labels     map[string]string
	Conditions []run.Condition
	Started    time.Time
	ended      time.Time                // of the last sample; zero without one, as of imports
	Phases     map[string][]Observation // by the name of the phase, in the order of repetitions
	Metrics    map[string]Metric        // of the series, by ID, without what they are divided by
	outcomes   map[string]Metric        // by name: an outcome may have the name of a metric
	Workloads  []string                 // whose series are summed; empty for all
	Notes      []string                 // problems of the recording
	Startups   []Startup                // of the repetitions that have one
	named      bool                     // whether the user named Workloads
	origin     origin                   // how figures were obtained
	parts      map[string]int           // their number, by the name of the metric
}

// Observation is one repetition.
type Observation struct {
	Repetition int
	Seconds    float64 // between the first and the last sample of the phase
	Share      float64 // of the phase in the time of the whole repetition
	Outcomes   map[string]float64
	Totals     map[string]float64 // by the ID of the metric: the increase of counters, and the mean of gauges
}

// Extract reads the observations of a run. Series with the label workload count if their workload is among workloads. If
// that is empty, the watched workloads count. If there are none, all workloads of the file count.
func Extract(r *run.Run, file string, workloads []string) *Record {
	x := &Record{
		File: file, Labels: r.Meta.Labels, Conditions: r.Meta.Conditions, Started: r.Meta.Started, Phases: map[string][]Observation{},
		Metrics: map[string]Metric{}, outcomes: map[string]Metric{}, Workloads: workloads, named: len(workloads) > 0, Notes: slices.Clone(r.Notes), parts: map[string]int{},
	}
	if len(workloads) == 0 {
		x.Workloads = watched(r)
	}
	x.origin = originOf(r)
	if n := len(r.Times); n > 0 {
		x.ended = r.Times[n-1]
	}
	x.state(r)
	chosen, samples := x.choose(r), 0
	phases := x.phases(r)
	starts := startSeries(r)
	drifts := map[string][]drift{}
	for _, name := range []string{run.Whole, run.Start, run.Steady} {
		for _, p := range phases[name] {
			from, to := bounds(r.Times, p)
			if samples += to - from; samples > overlap*len(r.Times)+overlap {
				x.Notes = append(x.Notes, "its phases overlap too often, and some are left out")
				return x
			}
			if name == run.Whole {
				x.starts(r, starts, p, phases[run.Steady])
			}
			x.Phases[name] = append(x.Phases[name], x.observe(r, chosen, p, from, to))
			if d, ok := driftOf(chosen, from, to); ok {
				drifts[name] = append(drifts[name], d)
			}
		}
	}
	judged := run.Whole
	if len(x.Phases[run.Steady]) > 0 {
		judged = run.Steady
	}
	x.noteDrift(judged, drifts[judged])
	return x
}

// overlap is how often phases may have the same sample: the run, its start and its steady state do.
const overlap = 4

// A candidate is a series that is compared.
type candidate struct {
	*run.Series
	family
}

// choose returns the series that are compared.
func (x *Record) choose(r *run.Run) []candidate {
	var all []candidate
	for _, s := range r.Series {
		f, ok := familyOf(s.Name)
		if workload, labelled := s.Labels["workload"]; ok && (!labelled || len(x.Workloads) == 0 || slices.Contains(x.Workloads, workload)) {
			all = append(all, candidate{s, f})
		}
	}
	return all
}

// bounds returns the samples of a phase.
func bounds(times []time.Time, p phase) (from, to int) {
	from = sort.Search(len(times), func(i int) bool { return !times[i].Before(p.From) })
	to = sort.Search(len(times), func(i int) bool { return times[i].After(p.To) })
	return from, max(from, to)
}

// state notes how the recording ended.
func (x *Record) state(r *run.Run) {
	switch {
	case errors.Is(r.Damaged, io.ErrUnexpectedEOF), r.Damaged == nil && r.End == nil:
		x.Notes = append(x.Notes, "the recording was cut off")
	case r.Damaged != nil:
		x.Notes = append(x.Notes, fmt.Sprintf("the file is damaged: %v", r.Damaged))
	case r.End.Reason != "done":
		x.Notes = append(x.Notes, "the recording ended early: "+r.End.Reason)
	}
}

// A phase has its share in the time of its repetition.
type phase struct {
	run.Phase
	share float64
}

// phases returns the phases of the repetitions that count, by name. A run without phases is one repetition.
func (x *Record) phases(r *run.Run) map[string][]phase {
	found := map[string]map[int]run.Phase{run.Whole: {}, run.Steady: {}, run.Start: {}}
	for _, p := range r.Phases {
		if _, twice := found[p.Name][p.Repetition]; found[p.Name] != nil && !twice {
			found[p.Name][p.Repetition] = p
		}
	}
	if len(r.Phases) == 0 && (len(r.Times) > 1 || len(r.Outcomes) > 0) {
		p := run.Phase{Name: run.Whole, Repetition: 1}
		if len(r.Times) > 0 {
			p.From, p.To = r.Times[0], r.Times[len(r.Times)-1]
		}
		found[run.Whole][1] = p
	}
	all := map[string][]phase{}
	for _, repetition := range slices.Sorted(maps.Keys(found[run.Whole])) {
		if x.failed(r, repetition) {
			continue
		}
		if len(all[run.Whole]) == maxObservations {
			x.Notes = append(x.Notes, fmt.Sprintf("it has more than %d repetitions, and the others are left out", maxObservations))
			break
		}
		whole := found[run.Whole][repetition]
		for name, phases := range found {
			if p, ok := phases[repetition]; ok {
				one := phase{p, 1}
				if whole.To.After(whole.From) {
					one.share = p.To.Sub(p.From).Seconds() / whole.To.Sub(whole.From).Seconds()
				}
				all[name] = append(all[name], one)
			}
		}
	}
	return all
}

// failed reports whether a repetition does not count because its command failed, and notes it.
func (x *Record) failed(r *run.Run, repetition int) bool {
	if r.End == nil || repetition < 1 || repetition > len(r.End.Status) || r.End.Status[repetition-1] == 0 {
		return false
	}
	what, out := "counts", r.End.Reason == "failed"
	if out {
		what = "is left out"
	}
	x.Notes = append(x.Notes, fmt.Sprintf("repetition %d ended with status %d and %s", repetition, r.End.Status[repetition-1], what))
	return out
}

// watched returns the workloads that the rules of the run name. Without such rules, it returns those that have metrics of
// single processes, because only watched processes have them.
func watched(r *run.Run) []string {
	there, single := map[string]bool{}, map[string]bool{}
	for _, s := range r.Series {
		if name := s.Labels["workload"]; name != "" {
			there[name] = true
			if strings.HasPrefix(s.Name, perProcess) {
				single[name] = true
			}
		}
	}
	named := map[string]bool{}
	for _, rule := range r.Meta.Watch {
		kind, value, _ := strings.Cut(rule, "=")
		if name := filepath.Base(value); (kind == "comm" || kind == "exe") && there[name] {
			named[name] = true
		}
	}
	if len(named) > 0 && len(named) == len(r.Meta.Watch) {
		return slices.Sorted(maps.Keys(named))
	}
	return slices.Sorted(maps.Keys(single))
}

const perProcess = "teescope_process_"

func (x *Record) observe(r *run.Run, chosen []candidate, p phase, from, to int) Observation {
	o := Observation{Repetition: p.Repetition, Share: p.share, Outcomes: map[string]float64{}, Totals: map[string]float64{}}
	if to > from {
		o.Seconds = r.Times[to-1].Sub(r.Times[from]).Seconds()
	}
	if o.Seconds == 0 { // without samples, the times of the phase are all that is known
		o.Seconds = p.To.Sub(p.From).Seconds()
	}
	for _, one := range r.Outcomes {
		if one.Repetition == p.Repetition && isNumber(one.Value) {
			o.Outcomes[one.Name] = one.Value
			x.outcomes[one.Name] = Metric{Name: one.Name, Area: Outcome, Unit: one.Unit, How: howOutcome(one), Better: one.Better, Time: one.From != outcome.Callgrind, gauge: true}
		}
	}
	for _, s := range chosen {
		if v := s.Total(from, to); isNumber(v) {
			x.add(o, s.Series, s.family, v)
		}
	}
	x.functions(r, o, p.Name)
	return o
}

func isNumber(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// add adds a series to the metric and its part.
func (x *Record) add(o Observation, s *run.Series, f family, v float64) {
	m := Metric{Name: shortName(s.Name), Area: f.area, Unit: f.unit, Series: s.Name, How: x.how(s), gauge: s.Kind != run.Counter}
	if f.unit == "" {
		m.Unit = s.Unit
	}
	if _, there := x.Metrics[m.Name]; !there && f.area == Other && len(x.Metrics) > maxSeriesNames {
		return
	}
	x.Metrics[m.Name] = m // also of families whose sum has no meaning: it says that the parts were measured
	o.join(m, v)
	if f.split == "" {
		return
	}
	if m.Part = s.Labels[f.split]; m.Part == "" {
		m.Part = "unnamed"
	}
	if _, there := x.Metrics[m.ID()]; !there {
		if x.parts[m.Name] >= maxParts {
			m.Part = rest
		}
		x.parts[m.Name]++
	}
	x.Metrics[m.ID()] = m
	o.join(m, v)
}

// join adds the figure of a series to a total. Ratios do not add up: the busiest thread counts, and of the shares of time
// in which a counter ran the smallest one.
func (o Observation) join(m Metric, v float64) {
	old, there := o.Totals[m.ID()]
	switch {
	case !there:
	case m.Series == runningRatio:
		v = min(v, old)
	case m.Unit == "ratio":
		v = max(v, old)
	default:
		v += old
	}
	o.Totals[m.ID()] = v
}
