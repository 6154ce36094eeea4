// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
)

// Options say how runs are compared.
type Options struct {
	Phase      string  // name of the phase; empty for the steady one where all repetitions have it, else the whole
	PerOp      float64 // counters per so many operations; 0 for per second
	Operations string  // outcome or metric that counts the operations; empty for the usual outcomes
	Baseline   string  // name of a group; empty for the first
	Force      bool    // judge in spite of different conditions
}

// Alpha is the chance of any false result in a table, and Level the level of the intervals.
const (
	Alpha           = 0.05
	confidenceLevel = 1 - Alpha
	power           = 0.8 // of the minimal detectable change
	// mostParts is the number of parts of a metric in a table: those with the highest share over all repetitions.
	mostParts = 10
	// leastShare is the share of a metric that a part has at least. Each part is a further test. The few instructions of
	// ENCLS need none: a start has one ECREATE and thousands of EADD.
	leastShare = 0.005
	// mostNotes is the number of notes of a file in a table.
	mostNotes = 3
)

// Table compares the groups of a set.
type Table struct {
	Title       string // of the point of a sweep
	Point       map[string]string
	Phase       string
	Per         float64 // operations; 0 is per second
	Groups      []GroupInfo
	Baseline    int // index of the group that others are compared with
	Rows        []Row
	Blames      []Blame // one for each other group
	Differences []Difference
	Forced      bool // verdicts were given in spite of Differences
	Tests       int  // that P is corrected for
	Notes       []string
	zeros       []Row // of metrics that are zero in all groups
	sizes       []int
	detectable  map[[3]float64]float64 // by the sizes of the samples and the level
}

// GroupInfo describes a group.
type GroupInfo struct {
	Name        string
	Labels      map[string]string
	Files       []string
	Repetitions int
	Operations  string   // how the operations were found; empty if they are unknown
	Workloads   []string // whose series are summed; empty for all of the files
}

// Row is a metric.
type Row struct {
	Metric Metric
	Cells  []Cell // one for each group
}

// Cell is a metric of a group.
type Cell struct {
	Values []float64     // one for each repetition that has it
	Median stat.Interval // at 95 %; its ends are infinite with fewer than 6 values
	Change *Change       // nil for the baseline
}

// Verdict is the judgement of a change.
type Verdict string

// The verdicts.
const (
	Noise   Verdict = "~"         // no change was found
	Better  Verdict = "better"    // a change, in the better direction
	Worse   Verdict = "worse"     // a change, in the worse direction
	Changed Verdict = "changed"   // a change of a metric that has no better direction
	TooFew  Verdict = "too few"   // so few repetitions cannot show any change
	Refused Verdict = "refused"   // a condition that can explain the change differs
	Missing Verdict = "not there" // one of the groups was not measured
)

// Sure reports whether a change was found.
func (v Verdict) Sure() bool { return v == Better || v == Worse || v == Changed }

// Change is the change of a metric from the baseline.
type Change struct {
	Ratio      stat.Interval // of the medians; unknown from zero
	P          float64       // of the Mann-Whitney test
	Exact      bool          // whether P is exact
	Corrected  float64       // P corrected for all tests of the table
	Detectable float64       // the smallest factor that this test finds in 4 of 5 cases; infinite if there is none
	Verdict    Verdict
	Explains   []string // conditions that can explain it
	rises      bool     // whether values after are mostly greater than those before
	least      float64  // the smallest corrected P that samples of these sizes can have as the first of all tests
}

// Compare compares the groups of a set.
func Compare(s Set, o Options) (*Table, error) {
	base, err := baseline(s.Groups, o.Baseline)
	if err != nil {
		return nil, err
	}
	t := &Table{Title: s.titleText(), Point: s.Point, Per: o.PerOp, Baseline: base, Differences: differences(s.Groups), detectable: map[[3]float64]float64{}}
	t.Phase = phaseOf(s.Groups, o.Phase)
	all := make([]sample, len(s.Groups))
	for i, g := range s.Groups {
		if all[i], err = gather(g, t.Phase, o); err != nil {
			return nil, err
		}
		t.Groups = append(t.Groups, all[i].info)
		t.sizes = append(t.sizes, all[i].info.Repetitions)
		t.note(g)
	}
	if note := inOrder(s.Groups, base); note != "" {
		t.Notes = append(t.Notes, note)
	}
	for _, m := range metrics(all) {
		if row, something := rowOf(m, all); something {
			t.Rows = append(t.Rows, row)
		} else {
			t.zeros = append(t.zeros, row)
		}
	}
	if len(t.Rows) == 0 {
		return nil, errors.New("the runs have no metric and no outcome in common that is compared")
	}
	t.test()
	t.judge(o.Force)
	t.sources()
	for i := range s.Groups {
		if i != base {
			t.Blames = append(t.Blames, blame(all[base], all[i]))
		}
	}
	return t, nil
}

// Cell returns a metric of a group, by their names. A metric that is zero in all groups has no row, and the cell has no change.
func (t *Table) Cell(metric, group string) (Cell, bool) {
	j := slices.IndexFunc(t.Groups, func(g GroupInfo) bool { return g.Name == group })
	if j < 0 {
		return Cell{}, false
	}
	for _, rows := range [][]Row{t.Rows, t.zeros} {
		if i := slices.IndexFunc(rows, func(r Row) bool { return r.Metric.ID() == metric }); i >= 0 {
			return rows[i].Cells[j], true
		}
	}
	return Cell{}, false
}

// phaseOf returns the phase that all repetitions have.
func phaseOf(groups []*Group, wanted string) string {
	if wanted != "" {
		return wanted
	}
	for _, g := range groups {
		for _, r := range g.Records {
			if len(r.Phases[run.Steady]) == 0 || len(r.Phases[run.Steady]) != len(r.Phases[run.Whole]) {
				return run.Whole
			}
		}
	}
	return run.Steady
}

// notes returns the first notes of a recording.
func notes(r *Record) []string {
	var all []string
	for i, n := range r.Notes {
		if i == mostNotes {
			return append(all, fmt.Sprintf("%s: and %s, which \"teescope run show\" has", r.File, text.Plural(len(r.Notes)-i, "more note", "more notes")))
		}
		all = append(all, r.File+": "+n)
	}
	return all
}

// sources notes how the figures were obtained, where there are several ways.
func (t *Table) sources() {
	names := map[string][]string{}
	for _, r := range t.Rows {
		if m := r.Metric; m.How != "" && !slices.Contains(names[m.How], m.Name) {
			names[m.How] = append(names[m.How], m.Name)
		}
	}
	for _, how := range slices.Sorted(maps.Keys(names)) {
		t.Notes = append(t.Notes, "how "+strings.Join(names[how], ", ")+" were obtained: "+how)
	}
}

// note copies the problems of the recordings of a group.
func (t *Table) note(g *Group) {
	for _, r := range g.Records {
		t.Notes = append(t.Notes, notes(r)...)
	}
	workloads := map[string]bool{}
	for _, r := range g.Records {
		workloads[strings.Join(r.Workloads, ", ")] = true
	}
	if len(workloads) > 1 {
		t.Notes = append(t.Notes, g.Name+": its runs watch different workloads: "+strings.Join(slices.Sorted(maps.Keys(workloads)), "; "))
	}
}

// A sample is the observations of a group as values of metrics.
type sample struct {
	info    GroupInfo
	repeats []repeat
	known   map[string]Metric // by ID in Values
}

// A repeat is one observation, with its metrics divided by the time or the operations.
type repeat struct {
	Observation
	operations float64 // NaN if unknown
	values     map[string]float64
}

// gather makes the sample of a group.
func gather(g *Group, phase string, o Options) (sample, error) {
	s := sample{info: GroupInfo{Name: g.Name, Labels: g.Labels}, known: map[string]Metric{}}
	for _, r := range g.Records {
		s.info.Files = append(s.info.Files, r.File)
		s.info.Workloads = r.Workloads
		for _, observed := range r.Phases[phase] {
			one := repeat{Observation: observed, values: map[string]float64{}}
			one.operations, s.info.Operations = operations(observed, r, o.Operations)
			if math.IsInf(observed.Seconds/one.operations, 0) {
				one.operations = math.NaN() // so few that a figure for each is no number
			}
			if o.PerOp > 0 && !(one.operations > 0) {
				return s, noOperations(r, o.Operations)
			}
			for name, v := range observed.Outcomes {
				s.keep(one, r.outcomes[name], v)
			}
			for name, v := range observed.Totals {
				if m, ok := r.Metrics[name]; ok { // others are for what accounts for the time
					m, value := divided(m, v, one, o.PerOp)
					if _, taken := observed.Outcomes[m.ID()]; taken {
						m.Name = m.Series // an outcome has the short name
					}
					s.keep(one, m, value)
				}
			}
			s.ratios(one, r.Metrics)
			s.startupOf(r, observed, phase, one.values)
			s.repeats = append(s.repeats, one)
		}
	}
	s.info.Repetitions = len(s.repeats)
	switch {
	case len(s.repeats) == 0:
		return s, fmt.Errorf("group %s has no finished repetition with the phase %q", g.Name, phase)
	case len(s.repeats) > maxObservations:
		return s, fmt.Errorf("group %s has %d repetitions: compare at most %d", g.Name, len(s.repeats), maxObservations)
	}
	return s, nil
}

// keep keeps the value of a metric in a repetition. How it was obtained is recorded for all repetitions together.
func (s *sample) keep(one repeat, m Metric, v float64) {
	m.How = joinHow(s.known[m.ID()].How, m.How)
	one.values[m.ID()], s.known[m.ID()] = v, m
}

func noOperations(r *Record, name string) error {
	if name != "" {
		return fmt.Errorf("%s: no outcome and no counter %q says how many operations there were; \"teescope run show\" lists them", r.File, name)
	}
	var rates []string
	for _, name := range slices.Sorted(maps.Keys(r.outcomes)) {
		if strings.HasSuffix(name, ".throughput") {
			rates = append(rates, name)
		}
	}
	if len(rates) > 1 {
		return fmt.Errorf("%s: figures per operation need the number of operations: %s do not say how long each test took; run one test at a time, let the benchmark print its operations (redis-benchmark without -q), or name an outcome or a counter with --operations",
			r.File, listOr(rates, "throughputs"))
	}
	for _, name := range []string{"operations", "throughput"} {
		if _, there := r.outcomes[name]; there {
			return fmt.Errorf("%s: figures per operation need the number of operations: the outcome %s is missing, zero or negative in a repetition", r.File, name)
		}
	}
	return fmt.Errorf("%s: figures per operation need the number of operations: no outcome is called operations or throughput; name one with --operations", r.File)
}

// divided returns a metric of a repetition, per second or per operation.
func divided(m Metric, v float64, one repeat, per float64) (Metric, float64) {
	m.Time = m.Unit == "s" || m.Unit == "ratio"
	switch {
	case m.gauge:
		return m, v
	case per > 0:
		m.Name += "_per_op"
		m.Unit += "/op"
		if per != 1 {
			m.Unit = fmt.Sprintf("%s/%g ops", strings.TrimSuffix(m.Unit, "/op"), per)
		}
		return m, v / one.operations * per
	}
	m.Name, m.Unit, m.Time = m.Name+"_per_second", m.Unit+"/s", true
	if one.Seconds <= 0 {
		return m, math.NaN()
	}
	return m, v / one.Seconds
}

// ratios adds the metrics that follow from two others.
func (s *sample) ratios(one repeat, metrics map[string]Metric) {
	for _, r := range ratios {
		over, under := one.Totals[r.over], one.Totals[r.under]
		if _, there := one.Totals[r.over]; there && under > 0 {
			s.keep(one, Metric{Name: r.name, Area: r.area, Unit: "ratio", How: metrics[r.over].How, Time: true, gauge: true}, over/under)
		}
	}
}

// operations returns the number of operations in an observation, and how it was found.
func operations(o Observation, r *Record, name string) (n float64, from string) {
	scaled := func(n float64, from string) (float64, string) {
		if o.Share < 1 {
			return n * o.Share, from + ", as many as the phase's share of the time"
		}
		return n, from
	}
	rate := func(name string) (float64, string) {
		return o.Outcomes[name] * o.Seconds, name + " times the duration"
	}
	if name != "" {
		if v, ok := o.Outcomes[name]; ok {
			if strings.HasSuffix(r.outcomes[name].Unit, "_per_second") {
				return rate(name)
			}
			return scaled(v, name)
		}
		if v, ok := o.Totals[name]; ok && !r.Metrics[name].gauge {
			return v, name
		}
		return math.NaN(), ""
	}
	if _, ok := o.Outcomes["throughput"]; ok && o.Share < 1 {
		return rate("throughput")
	}
	if v, ok := o.Outcomes["operations"]; ok {
		return scaled(v, "operations")
	}
	if _, ok := o.Outcomes["throughput"]; ok {
		return rate("throughput")
	}
	return operationsOfTests(o, scaled, rate)
}

// operationsOfTests adds up the operations of the tests of a benchmark. Their throughputs do not add up.
func operationsOfTests(o Observation, scaled func(float64, string) (float64, string), rate func(string) (float64, string)) (float64, string) {
	sum, counts, rates := 0.0, []string{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(o.Outcomes)) {
		if strings.HasSuffix(name, ".operations") {
			sum += o.Outcomes[name]
			counts = append(counts, name)
		} else if strings.HasSuffix(name, ".throughput") {
			rates = append(rates, name)
		}
	}
	switch {
	case len(counts) > 0:
		return scaled(sum, strings.Join(counts, " + "))
	case len(rates) == 1:
		return rate(rates[0])
	}
	return math.NaN(), ""
}

// metrics lists the metrics of all groups in the order of the table. Which parts are among them does not depend on how the
// repetitions are divided into groups, so the choice favours no change.
func metrics(all []sample) []Metric {
	known := map[string]Metric{}
	for _, s := range all {
		maps.Copy(known, s.known)
	}
	for id, m := range known {
		m.How = howOf(all, id)
		known[id] = m
	}
	share := shares(all, known)
	parts := map[string][]Metric{}
	var list []Metric
	for id, m := range known {
		switch {
		case m.Part == "" && !families[m.Series].parts:
			list = append(list, m)
		case m.Part != "" && (share[id] >= leastShare || m.Series == enclsSeries):
			parts[m.Name] = append(parts[m.Name], m)
		}
	}
	for _, p := range parts {
		slices.SortFunc(p, func(a, b Metric) int {
			return cmp.Or(cmp.Compare(share[b.ID()], share[a.ID()]), cmp.Compare(a.Part, b.Part))
		})
		if len(p) > 1 || families[p[0].Series].parts { // a single part is the sum
			list = append(list, p[:min(mostParts, len(p))]...)
		}
	}
	slices.SortFunc(list, func(a, b Metric) int {
		return cmp.Or(slices.Index(areas(), a.Area)-slices.Index(areas(), b.Area), cmp.Compare(a.Name, b.Name),
			cmp.Compare(min(1, len(a.Part)), min(1, len(b.Part))), cmp.Compare(share[b.ID()], share[a.ID()]), cmp.Compare(a.Part, b.Part))
	})
	return list
}

// shares returns the mean share of each part in the sum of its metric, over all repetitions.
func shares(all []sample, known map[string]Metric) map[string]float64 {
	share, n := map[string]float64{}, 0
	for i := range all {
		for _, r := range all[i].repeats {
			n++
			for id, v := range r.values {
				if sum := r.values[known[id].Name]; known[id].Part != "" && sum > 0 {
					share[id] += v / sum
				}
			}
		}
	}
	for id := range share {
		share[id] /= float64(n)
	}
	return share
}

// value returns a metric of a repetition. A part that did not occur is zero if the metric was measured.
func (r *repeat) value(m Metric) float64 {
	if v, ok := r.values[m.ID()]; ok {
		return v
	}
	if _, measured := r.values[m.Name]; measured && m.Part != "" {
		return 0
	}
	return math.NaN()
}

// rowOf returns the row of a metric, and whether a value is not zero.
func rowOf(m Metric, all []sample) (Row, bool) {
	row, something := Row{Metric: m}, false
	for i := range all {
		c := Cell{}
		for _, r := range all[i].repeats {
			if v := r.value(m); isNumber(v) {
				c.Values = append(c.Values, v)
				something = something || v != 0
			}
		}
		c.Median = stat.MedianInterval(c.Values, confidenceLevel)
		row.Cells = append(row.Cells, c)
	}
	return row, something
}
