// SPDX-License-Identifier: Apache-2.0

// Package profile writes tables of profiles, their differences and breakdowns, as text and as JSON.
//
// It divides figures of internal/run/profile and internal/agent/nested for display. It does not measure, parse flags or
// open files.
package profile

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
)

// longest is the number of bytes of a name in a table. JSON has whole names.
const longest = 70

func name(s string) string { return text.Short(text.Terminal(s), longest) }

// percent formats a share.
func percent(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*v)
}

// between formats the interval of a share.
func between(i stat.Interval) string {
	if i.N == 0 {
		return ""
	}
	return fmt.Sprintf(" [%.2f, %.2f]", 100*i.Low, 100*i.High)
}

// taken says what intervals are computed from.
func taken(n float64) string {
	if n == 0 {
		return "an unknown number of samples, so there are no intervals"
	}
	return text.Plural(int(n+0.5), "sample", "samples")
}

func notes(w io.Writer, list []string) {
	for _, n := range list {
		fmt.Fprintf(w, "note: %s\n", text.Terminal(n))
	}
}

// Table writes a table as text. The first column is what a row is, such as "function".
func Table(w io.Writer, file, column string, t *profile.Table) error {
	fmt.Fprintf(w, "%s: %d %s of %s, %s\n", text.Terminal(file), t.Total, text.Terminal(t.Value.Unit), text.Terminal(t.Value.Type), taken(t.Taken))
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "%s\tself\ttotal\tshare\ttime\n", column)
	for _, r := range t.Rows {
		total := fmt.Sprint(r.Inclusive)
		if r.Inclusive < 0 {
			total = "-"
		}
		fmt.Fprintf(out, "%s\t%d\t%s\t%s%s\t%s\n", name(r.Name), r.Self, total, percent(r.Share), between(r.Interval), t.Whole.Format(r.Absolute))
	}
	fmt.Fprintf(out, "whole\t%d\t%d\t%s\t%s\n", t.Total, t.Total, percent(1), t.Whole.Format(t.Whole.Amount))
	if err := out.Flush(); err != nil {
		return err
	}
	if t.Broken > 0 {
		fmt.Fprintf(w, "note: %s of the whole is in the rest and has a frame without a name further out, which could belong to a group\n", percent(float64(t.Broken)/float64(t.Total)))
	}
	notes(w, t.Notes)
	return nil
}

// Diff writes a difference as text.
func Diff(w io.Writer, column string, d *profile.Diff) error {
	unit := profile.Whole{Amount: max(d.Whole.Before, d.Whole.After), Unit: d.Unit}
	fmt.Fprintf(w, "A: %s. B: %s. ~: the change may be noise.\n", taken(d.Taken[0]), taken(d.Taken[1]))
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "%s\tA\tB\tchange\tinterval\tshare of change\n", column)
	for _, c := range append(append([]profile.Change{}, d.Changes...), d.Whole) {
		interval := ""
		if c.Interval.N > 0 {
			interval = "[" + signed(unit, c.Interval.Low) + ", " + signed(unit, c.Interval.High) + "]"
		}
		mark := ""
		if !c.Sure {
			mark = " ~"
		}
		part := percent(c.Part)
		if d.Whole.Difference == 0 {
			part = "-"
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s%s\t%s\t%s\n", name(c.Name), unit.Format(c.Before), unit.Format(c.After), signed(unit, float64(c.Difference)), mark, interval, part)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	notes(w, d.Notes)
	return nil
}

// signed formats a change with its sign.
func signed(unit profile.Whole, v float64) string {
	s := unit.Format(int64(math.Round(v)))
	if v > 0 {
		return "+" + s
	}
	return s
}

// Breakdown writes a breakdown as text.
func Breakdown(w io.Writer, file string, b *profile.Breakdown) error {
	fmt.Fprintf(w, "%s: %d %s of %s, of which %d within %s, %s there\n", text.Terminal(file), b.Total, text.Terminal(b.Value.Unit), text.Terminal(b.Value.Type),
		b.Parts[0].Inclusive, name(b.Parts[0].Name), taken(b.Taken))
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "function\ttotal\tshare of root\tshare of caller\town\town share\ttime\n")
	for i, q := range b.Parts {
		interval, parent := between(q.Interval), ""
		if i == 0 {
			interval = ""
		}
		if q.Parent != "" {
			parent = percent(q.OfParent) + " of " + name(q.Parent)
		}
		fmt.Fprintf(out, "%s\t%d\t%s%s\t%s\t%d\t%s\t%s\n", name(q.Name), q.Inclusive, percent(q.OfRoot), interval, parent, q.Own,
			percent(float64(q.Own)/float64(b.Parts[0].Inclusive)), b.Whole.Format(q.Absolute))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	notes(w, b.Notes)
	return nil
}
