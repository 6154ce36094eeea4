// SPDX-License-Identifier: Apache-2.0

package runfile

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	compared "github.com/teescope/teescope/internal/cli/compare"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/run"
)

// Formats lists the formats of exports.
func Formats() []string { return []string{"openmetrics", "csv", "json", "benchfmt"} }

// Export writes a run in a format of other programs.
func Export(w io.Writer, r *run.Run, format string) error {
	out := bufio.NewWriter(w)
	var err error
	switch format {
	case "openmetrics":
		err = openMetrics(out, r)
	case "csv":
		err = samples(out, r)
	case "json":
		err = whole(out, r)
	case "benchfmt":
		err = benchmarks(out, r)
	default:
		return fmt.Errorf("the format %q is unknown: use one of %s", format, strings.Join(Formats(), ", "))
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// openMetrics writes the samples as OpenMetrics text with timestamps, which teescope analyze and promtool read. Families
// are in the order of their names.
func openMetrics(w *bufio.Writer, r *run.Run) error {
	sorted := slices.Clone(r.Series)
	slices.SortStableFunc(sorted, func(a, b *run.Series) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID(), b.ID())) })
	last := ""
	for _, s := range sorted {
		if !validName(s.Name) || !slices.ContainsFunc(s.Values, func(v float64) bool { return !math.IsNaN(v) }) {
			continue
		}
		family, kind := s.Name, "gauge"
		if cut, ok := strings.CutSuffix(s.Name, "_total"); ok && s.Kind == run.Counter {
			family, kind = cut, "counter"
		} else if s.Kind == run.Counter {
			kind = "unknown" // such as the sum of a histogram
		}
		if family != last {
			fmt.Fprintf(w, "# TYPE %s %s\n", family, kind)
			if kind == "unknown" {
				fmt.Fprintf(w, "# HELP %s %s\n", family, counterHelp) // importing needs it
			}
			last = family
		}
		id := s.ID()
		for i, v := range s.Values {
			if !math.IsNaN(v) {
				fmt.Fprintf(w, "%s %s %s\n", id, number(v), strconv.FormatFloat(float64(r.Times[i].UnixMilli())/1e3, 'f', 3, 64))
			}
		}
	}
	_, err := w.WriteString("# EOF\n")
	return err
}

func validName(s string) bool {
	for i, c := range s {
		if c != '_' && c != ':' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// samples writes a line for each sample and series that has a value, in the order of time and ID, and one for each outcome.
func samples(w io.Writer, r *run.Run) error {
	out := csv.NewWriter(w)
	if err := out.Write(columns()); err != nil {
		return err
	}
	write := func(cells ...string) error {
		for i, c := range cells {
			if _, err := strconv.ParseFloat(c, 64); err != nil && c != "" && strings.ContainsAny(c[:1], "=+-@\t\r'") {
				cells[i] = "'" + c // no formula of a spreadsheet
			}
		}
		return out.Write(cells)
	}
	sorted := slices.SortedStableFunc(slices.Values(r.Series), func(a, b *run.Series) int { return cmp.Compare(a.ID(), b.ID()) })
	for i, at := range r.Times {
		repetition := ""
		for _, p := range r.Phases {
			if p.Name == run.Whole && !at.Before(p.From) && !at.After(p.To) {
				repetition = strconv.Itoa(p.Repetition)
			}
		}
		for _, s := range sorted {
			if math.IsNaN(s.Values[i]) {
				continue
			}
			if err := write(at.UTC().Format("2006-01-02T15:04:05.000Z"), repetition, s.ID(), string(s.Kind), s.Unit, number(s.Values[i])); err != nil {
				return err
			}
		}
	}
	for _, o := range r.Outcomes {
		if err := write("", strconv.Itoa(o.Repetition), o.Name, "outcome", o.Unit, number(o.Value)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// document is a whole run as JSON.
type document struct {
	Meta     run.Meta         `json:"meta"`
	Times    []time.Time      `json:"times"`
	Series   []documentSeries `json:"series"`
	Phases   []run.Phase      `json:"phases"`
	Outcomes []run.Outcome    `json:"outcomes"`
	Notes    []string         `json:"notes"`
	Profiles []run.Profile    `json:"profiles,omitempty"`
	End      *run.End         `json:"end"`
	Damaged  string           `json:"damaged,omitempty"`
}

type documentSeries struct {
	*run.Series
	Values []value `json:"values"` // one for each time
}

// whole writes everything as one JSON object. Absent values are null.
func whole(w io.Writer, r *run.Run) error {
	out := document{
		Meta: r.Meta, Times: append([]time.Time{}, r.Times...), Series: []documentSeries{}, Phases: append([]run.Phase{}, r.Phases...),
		Outcomes: append([]run.Outcome{}, r.Outcomes...), Notes: append([]string{}, r.Notes...), Profiles: r.Profiles, End: r.End,
	}
	if r.Damaged != nil {
		out.Damaged = r.Damaged.Error()
	}
	for _, s := range r.Series {
		one := documentSeries{Series: s, Values: make([]value, len(s.Values))}
		for i, v := range s.Values {
			one.Values[i] = value(v)
		}
		out.Series = append(out.Series, one)
	}
	return jsonapi.Print(w, out)
}

// benchmarks writes the outcomes of each repetition in Go's benchmark format.
func benchmarks(w io.Writer, r *run.Run) error {
	byRepetition := map[int][]compared.Value{}
	var order []int
	for _, o := range r.Outcomes {
		if byRepetition[o.Repetition] == nil {
			order = append(order, o.Repetition)
		}
		if !math.IsNaN(o.Value) && !math.IsInf(o.Value, 0) {
			byRepetition[o.Repetition] = append(byRepetition[o.Repetition], compared.Value{Name: o.Name, Unit: o.Unit, Value: o.Value})
		}
	}
	slices.Sort(order)
	var lines [][]compared.Value
	for _, n := range order {
		lines = append(lines, byRepetition[n])
	}
	return compared.Benchmarks(w, r.Meta.Labels, lines)
}
