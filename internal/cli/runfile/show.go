// SPDX-License-Identifier: Apache-2.0

// Package runfile implements teescope run: it shows run files, exports them to other formats and imports these.
//
// internal/cli/compare compares runs. This package does not parse flags.
package runfile

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/compare"
)

// Open reads a run file that the user named.
func Open(file string) (*run.Run, error) {
	r, err := run.Open(file)
	return r, text.Remedy(err, "name a file that teescope record wrote")
}

// Show writes what a run file has, for people. all also lists each series, and not only the metrics that comparisons use.
func Show(w io.Writer, r *run.Run, file string, all bool) error {
	var b strings.Builder
	head(&b, r, file)
	phases(&b, r)
	outcomes(&b, r)
	x := compare.Extract(r, file, nil)
	startups(&b, x)
	totals(&b, x)
	if all {
		series(&b, r)
	}
	var noted []string
	for _, n := range r.Notes {
		noted = append(noted, "note: "+text.Terminal(n))
	}
	for _, line := range bounded(noted) {
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table writes lines of cells that are separated by tabs, below a heading.
func table(b *strings.Builder, heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", heading)
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		fmt.Fprintf(w, "  %s\n", l)
	}
	w.Flush() //nolint:errcheck // a strings.Builder cannot fail
}

func head(b *strings.Builder, r *run.Run, file string) {
	m := r.Meta
	lines := []string{"started\t" + m.Started.UTC().Format(time.RFC3339), "ended\t" + text.Terminal(ending(r))}
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, name+"\t"+text.Terminal(value))
		}
	}
	add("command", strings.Join(m.Command, " "))
	add("watched", strings.Join(m.Watch, ", "))
	add("host", m.Host)
	add("teescope", m.Teescope)
	for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
		add("label "+text.Terminal(name), m.Labels[name])
	}
	samples := fmt.Sprintf("%d of %d series", len(r.Times), len(r.Series))
	if m.Interval > 0 { // an import has none
		samples += fmt.Sprintf(", every %g s", m.Interval)
	}
	add("samples", samples)
	if len(r.Profiles) > 0 {
		add("profiles", fmt.Sprint(len(r.Profiles)))
	}
	table(b, text.Terminal(file), lines)
	lines = nil
	for _, c := range m.Conditions {
		lines = append(lines, text.Terminal(c.Name)+"\t"+text.Terminal(c.Value)+"\t"+text.Terminal(c.Kind))
	}
	table(b, "conditions", lines)
}

// ending says how the recording ended.
func ending(r *run.Run) string {
	switch {
	case errors.Is(r.Damaged, io.ErrUnexpectedEOF), r.Damaged == nil && r.End == nil:
		return "cut off: the recorder was stopped, and what is below is until its last sample"
	case r.Damaged != nil:
		return fmt.Sprintf("the file is damaged, and what is below is before that place: %v", r.Damaged)
	}
	s := r.End.Reason
	if !r.End.Time.IsZero() {
		s = r.End.Time.UTC().Format(time.RFC3339) + ", " + s
	}
	if slices.ContainsFunc(r.End.Status, func(v int) bool { return v != 0 }) {
		s += fmt.Sprintf(", exit status by repetition: %v", r.End.Status)
	}
	return s
}

func phases(b *strings.Builder, r *run.Run) {
	var lines []string
	for _, p := range r.Phases {
		if p.From.IsZero() {
			lines = append(lines, fmt.Sprintf("%d\t%s\ttime not known", p.Repetition, text.Terminal(p.Name)))
			continue
		}
		lines = append(lines, fmt.Sprintf("%d\t%s\t%s\t%.3f s", p.Repetition, text.Terminal(p.Name), p.From.UTC().Format("15:04:05.000"), p.To.Sub(p.From).Seconds()))
	}
	table(b, "phases by repetition", bounded(lines))
}

func outcomes(b *strings.Builder, r *run.Run) {
	var lines []string
	for _, o := range r.Outcomes {
		l := fmt.Sprintf("%d\t%s\t%s\t%s", o.Repetition, text.Terminal(o.Name), analysis.Figure(o.Value), text.Terminal(o.Unit))
		if o.From != "" {
			l += "\tfrom " + text.Terminal(o.From)
		}
		if o.Note != "" {
			l += "; " + text.Terminal(o.Note)
		}
		lines = append(lines, l)
	}
	table(b, "outcomes by repetition", bounded(lines))
}

// most is the number of lines of a table.
const most = 200

func bounded(lines []string) []string {
	if len(lines) > most {
		return append(lines[:most:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	return lines
}

// startups writes the times of the events of the start, by repetition.
func startups(b *strings.Builder, x *compare.Record) {
	var lines []string
	for _, s := range x.Startups {
		for _, m := range s.Milestones {
			lines = append(lines, fmt.Sprintf("%d\t%s\t%s", s.Repetition, m.What, m.Text()))
		}
	}
	table(b, "start-up by repetition, from the execution of the command", bounded(lines))
}

// totals writes the metrics of comparisons by repetition, for each phase.
func totals(b *strings.Builder, x *compare.Record) {
	for _, phase := range []string{run.Whole, run.Start, run.Steady} {
		observed := x.Phases[phase]
		if len(observed) == 0 {
			continue
		}
		var lines []string
		for _, id := range slices.Sorted(maps.Keys(x.Metrics)) {
			m := x.Metrics[id]
			l, something := text.Terminal(id)+"\t"+text.Terminal(m.Unit), false
			for _, o := range observed[:min(len(observed), 8)] {
				v, there := o.Totals[id]
				something = something || there && v != 0
				if l += "\t-"; there {
					l = strings.TrimSuffix(l, "-") + analysis.Figure(v)
				}
			}
			if m.How != "" {
				l += "\t" + text.Terminal(m.How)
			}
			if something {
				lines = append(lines, l)
			}
		}
		table(b, fmt.Sprintf("totals in the phase %s, by repetition (means of gauges)", phase), bounded(lines))
	}
}

// series lists every series with its last value.
func series(b *strings.Builder, r *run.Run) {
	var lines []string
	for _, s := range r.Series {
		last, n := math.NaN(), 0
		for _, v := range s.Values {
			if !math.IsNaN(v) {
				last, n = v, n+1
			}
		}
		lines = append(lines, fmt.Sprintf("%s\t%s\tn=%d\t%s", text.Terminal(s.ID()), s.Kind, n, analysis.Figure(last)))
	}
	table(b, "series with their last value", lines)
}
