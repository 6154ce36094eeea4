// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/lib/text"
)

// HistoryOptions say what a history shows.
type HistoryOptions struct {
	Options
	Metric string // ID; empty for that of [Main]
	// Label names the points; empty for commit, which the conditions may have too. Runs are ordered by Order.
	Label string
	// Order is the label that orders the points; empty for the time at which the runs began.
	Order string
	Ratio float64 // changes smaller than this factor are omitted
}

// DefaultRatio is the usual smallest change of a history.
const DefaultRatio = 1.02

// History is a metric over runs.
type History struct {
	Metric  Metric
	Phase   string
	Label   string
	Points  []Point
	Changes []Step
	Ratio   float64
	Notes   []string
}

// Point is the runs of one commit, or of another value of the label.
type Point struct {
	Name    string
	Started time.Time // of the first run
	Order   string    // value of the label that orders the points; empty for the time
	Files   []string
	Values  []float64 // one for each repetition
	Median  stat.Interval
}

// Step is a change of the level between two points.
type Step struct {
	At      int           // index of the first point after the change: the culprit
	Last    int           // index of the last point before it that has the metric
	Ratio   stat.Interval // of the medians of the segments on both sides
	Before  stat.Interval
	After   stat.Interval
	P       float64 // corrected for the number of possible places
	Verdict Verdict
}

// HistoryOf computes the history of a metric.
func HistoryOf(records []*Record, o HistoryOptions) (*History, error) {
	h := &History{Label: cmp.Or(o.Label, "commit"), Ratio: cmp.Or(o.Ratio, DefaultRatio)}
	groups, err := h.points(records, o)
	if err != nil {
		return nil, err
	}
	h.Phase = phaseOf(groups, o.Phase)
	samples := make([]sample, len(groups))
	for i, g := range groups {
		if samples[i], err = gather(g, h.Phase, o.Options); err != nil {
			return nil, err
		}
		for _, r := range g.Records {
			h.Notes = append(h.Notes, notes(r)...)
		}
	}
	if h.Metric, err = pick(metrics(samples), o.Metric); err != nil {
		return nil, err
	}
	for i := range samples {
		p := &h.Points[i]
		for _, r := range samples[i].repeats {
			if v := r.value(h.Metric); isNumber(v) {
				p.Values = append(p.Values, v)
			}
		}
		p.Median = stat.MedianInterval(p.Values, confidenceLevel)
	}
	h.conditions(groups)
	h.find()
	return h, nil
}

// points orders the runs and puts those of a commit together.
func (h *History) points(records []*Record, o HistoryOptions) ([]*Group, error) {
	if len(records) > MaxRecords {
		return nil, fmt.Errorf("%d run files: show the history of at most %d at once", len(records), MaxRecords)
	}
	ordered := slices.Clone(records)
	slices.SortStableFunc(ordered, func(a, b *Record) int {
		if o.Order != "" {
			if c := compareValues(a.Labels[o.Order], b.Labels[o.Order]); c != 0 {
				return c
			}
		}
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.File, b.File))
	})
	var groups []*Group
	for _, r := range ordered {
		if _, there := r.Labels[o.Order]; o.Order != "" && !there {
			return nil, fmt.Errorf("%s has no label %s to order it by", r.File, o.Order)
		}
		name := pointName(r, h.Label)
		i := slices.IndexFunc(groups, func(g *Group) bool { return g.Name == name })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &Group{Name: name})
			h.Points = append(h.Points, Point{Name: name, Started: r.Started, Order: r.Labels[o.Order]})
		}
		groups[i].Records = append(groups[i].Records, r)
		h.Points[i].Files = append(h.Points[i].Files, r.File)
	}
	if len(groups) < 2 {
		return nil, fmt.Errorf("a history needs runs with at least two values of the label %s, or with different times", h.Label)
	}
	return groups, nil
}

// pointName returns the label of a run, or its git commit, or the time at which it began.
func pointName(r *Record, label string) string {
	if v := r.Labels[label]; v != "" {
		return v
	}
	for _, c := range r.Conditions {
		if label == "commit" && (c.Name == "git_commit" || c.Name == "git.commit" || c.Name == "git commit" || c.Name == "commit") && c.Value != "" {
			return c.Value
		}
	}
	return r.Started.UTC().Format("2006-01-02T15:04:05.000Z")
}

// throughput is the name of an outcome, and the end of the names of those of several tests.
const throughput = "throughput"

// IsThroughput reports whether a metric is the throughput of a benchmark or of one of its tests.
func (m Metric) IsThroughput() bool {
	return m.Area == Outcome && (m.Name == throughput || strings.HasSuffix(m.Name, "."+throughput))
}

// Main returns the main metric of a benchmark: the throughput, else that of the first test, else the first time, else the first
// metric with a known direction, else the first one. It returns false if there is none.
func Main(list []Metric) (best Metric, ok bool) {
	rank := func(m Metric) int {
		switch {
		case m.ID() == throughput:
			return 0
		case m.IsThroughput():
			return 1
		case m.Unit == "seconds" && m.Better == "lower":
			return 2
		case m.Better != "":
			return 3
		}
		return 4
	}
	for i, m := range list {
		if i == 0 || rank(m) < rank(best) {
			best = m
		}
	}
	return best, len(list) > 0
}

// pick returns the metric with an ID, or the main one.
func pick(list []Metric, wanted string) (Metric, error) {
	if main, ok := Main(list); ok && wanted == "" {
		return main, nil
	}
	var names []string
	for _, m := range list {
		if m.ID() == wanted {
			return m, nil
		}
		names = append(names, m.ID())
	}
	if near := text.Nearest(wanted, names); near != "" {
		return Metric{}, fmt.Errorf("--metric %s: the runs have no such metric, did you mean %s?", text.Terminal(wanted), text.Terminal(near))
	}
	return Metric{}, fmt.Errorf("--metric %s: the runs have no such metric; \"teescope compare\" lists them", text.Terminal(wanted))
}

// conditions notes conditions of the machine that differ within the history.
func (h *History) conditions(groups []*Group) {
	for _, d := range differences(groups) {
		if !d.Identity || !d.Machine {
			continue
		}
		var values []string
		for _, v := range d.Values {
			if v != "" && !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		if len(values) > 1 {
			h.Notes = append(h.Notes, fmt.Sprintf("%s differs between the runs, which can explain a change: %s", d.Name, strings.Join(values[:min(4, len(values))], ", ")))
		}
	}
}

// find finds the changes in the series of all repetitions. A change begins at a commit: of those around the place in the
// series, the one with the smallest sum of distances from the medians on both sides.
func (h *History) find() {
	var series []float64
	var first []int // index of a point's first repetition
	for _, p := range h.Points {
		first = append(first, len(series))
		series = append(series, p.Values...)
	}
	if len(series) < 16 {
		h.Notes = append(h.Notes, fmt.Sprintf("%s too few to find a change: it needs 8 on each side", text.Plural(len(series), "repetition is", "repetitions are")))
		return
	}
	limits := stat.DefaultThresholds()
	limits.Alpha, limits.Ratio = Alpha, h.Ratio
	for _, c := range stat.Changes(series, limits) {
		at := refine(h.Points, nearest(h.Points, first, c.At), c)
		if at == 0 || len(h.Changes) > 0 && h.Changes[len(h.Changes)-1].At == at {
			continue
		}
		s := Step{At: at, Last: at - 1, Ratio: c.Ratio, Before: c.Before, After: c.After, P: c.P, Verdict: Changed}
		for s.Last > 0 && len(h.Points[s.Last].Values) == 0 {
			s.Last--
		}
		if h.Metric.Better != "" {
			s.Verdict = Worse
			if (c.After.Value > c.Before.Value) == (h.Metric.Better == "higher") {
				s.Verdict = Better
			}
		}
		h.Changes = append(h.Changes, s)
	}
}

// around is the number of points on each side of a change among which its place is searched.
const around = 3

// refine returns the point near another one at which a change begins. The medians of both sides are known.
func refine(points []Point, near int, c stat.Change) int {
	from, to := max(0, near-around), min(len(points), near+around+1)
	best, least := near, math.Inf(1)
	for at := from + 1; at < to; at++ {
		cost := 0.0
		for i, p := range points[from:to] {
			level := c.Before.Value
			if from+i >= at {
				level = c.After.Value
			}
			for _, v := range p.Values {
				cost += math.Abs(v - level)
			}
		}
		if cost < least && len(points[at].Values) > 0 {
			best, least = at, cost
		}
	}
	return best
}

// nearest returns the point that has values and whose first repetition is nearest to an index.
func nearest(points []Point, first []int, at int) int {
	best, distance := 0, math.MaxInt
	for i := range points {
		if d := max(first[i]-at, at-first[i]); len(points[i].Values) > 0 && d < distance {
			best, distance = i, d
		}
	}
	return best
}
