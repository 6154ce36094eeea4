// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/compare"
)

func (r *Report) text(b *strings.Builder) error {
	if len(r.Tables) > 1 {
		for i, m := range overPoints(r.Tables) {
			if i > 0 {
				b.WriteByte('\n')
			}
			if err := r.headToHead(b, m); err != nil {
				return err
			}
		}
	}
	for i, t := range r.Tables {
		if i > 0 || len(r.Tables) > 1 {
			b.WriteByte('\n')
		}
		if err := tableText(b, t); err != nil {
			return err
		}
	}
	for _, f := range r.Failures {
		fmt.Fprintf(b, "\nfails %s: %s\n", text.Terminal(f.Condition), text.Terminal(f.Reason))
	}
	return nil
}

func tableText(b *strings.Builder, t *compare.Table) error {
	if t.Title != "" {
		fmt.Fprintf(b, "== %s\n\n", text.Terminal(t.Title))
	}
	for _, g := range t.Groups {
		fmt.Fprintf(b, "%s: %s in %s, %s\n", text.Terminal(g.Name), text.Plural(g.Repetitions, "repetition", "repetitions"), text.Terminal(files(g.Files)), text.Terminal(workloads(g)))
	}
	fmt.Fprintf(b, "\nPhase: %s. Counters are %s", text.Terminal(t.Phase), per(t))
	if t.Per > 0 {
		fmt.Fprintf(b, " (operations: %s)", text.Terminal(t.Groups[t.Baseline].Operations))
	}
	fmt.Fprintf(b, ".\n%s\n", strings.ReplaceAll(method(t), ". ", ".\n"))
	conditionsText(b, t)
	for _, j := range others(t) {
		b.WriteByte('\n')
		if err := pairText(b, t, j); err != nil {
			return err
		}
	}
	for _, blame := range t.Blames {
		b.WriteByte('\n')
		if err := blameText(b, blame); err != nil {
			return err
		}
	}
	for _, n := range t.Notes {
		fmt.Fprintf(b, "\nnote: %s", text.Terminal(n))
	}
	if len(t.Notes) > 0 {
		b.WriteByte('\n')
	}
	return nil
}

// workloads names those whose series are summed.
func workloads(g compare.GroupInfo) string {
	if len(g.Workloads) == 0 {
		return "all workloads"
	}
	return "workload " + files(g.Workloads)
}

// files lists the names of files, and not more than a few.
func files(names []string) string {
	const most = 4
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// conditionsText names what differs between the groups.
func conditionsText(b *strings.Builder, t *compare.Table) {
	var machine, program, states []string
	for _, d := range t.Differences {
		one := text.Terminal(d.Name + ": " + strings.Join(known(d.Values), " / "))
		switch {
		case d.Identity && d.Machine:
			machine = append(machine, one)
		case d.Identity:
			program = append(program, one)
		default:
			states = append(states, text.Terminal(d.Name))
		}
	}
	for _, part := range []struct {
		list []string
		what string
	}{
		{machine, "\nThe machine differs. That can explain a change, so there is no verdict on what depends on it:\n  "},
		{program, "\nThe program differs:\n  "},
	} {
		if len(part.list) > 0 {
			what := part.what
			if t.Forced {
				what = strings.Replace(what, "so there is no verdict on what depends on it", "and verdicts are given nevertheless (--force)", 1)
			}
			b.WriteString(what + strings.Join(part.list, "\n  ") + "\n")
		}
	}
	if len(states) > 0 {
		fmt.Fprintf(b, "\nAlso differ: %s\n", strings.Join(states, ", "))
	}
}

// known replaces absent values.
func known(values []string) []string {
	var all []string
	for _, v := range values {
		if v == "" {
			v = "not recorded"
		}
		all = append(all, v)
	}
	return all
}

// pairText writes the table of one group against the baseline.
func pairText(b *strings.Builder, t *compare.Table, j int) error {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	area := compare.Area("")
	fmt.Fprintf(w, "metric\tunit\t%s\t%s\tchange\tp\tn\tfinds\t\n", text.Terminal(t.Groups[t.Baseline].Name), text.Terminal(t.Groups[j].Name))
	for _, row := range t.Rows {
		c := *row.Cells[j].Change
		if row.Metric.Area != area {
			area = row.Metric.Area
			fmt.Fprintf(w, "%s\t\t\t\t\t\t\t\t\n", strings.ToUpper(string(area[:1]))+string(area[1:]))
		}
		by, unit := scaled(math.Max(row.Cells[t.Baseline].Median.Value, row.Cells[j].Median.Value), row.Metric.Unit)
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", text.Terminal(row.Metric.ID()), text.Terminal(unit), figure(row.Cells[t.Baseline].Median, by),
			figure(row.Cells[j].Median, by), changeText(row, t.Baseline, c), pText(c), nText(row, t.Baseline, j), detectText(c), text.Terminal(verdictText(c)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(b, "%s\n", summary(t, j))
	return nil
}

func blameText(b *strings.Builder, blame compare.Blame) error {
	if blame.Reason != "" {
		fmt.Fprintf(b, "What accounts for the time is unknown: %s.\n", blame.Reason)
		return nil
	}
	whole := blame.Whole
	unit := strings.TrimPrefix(blame.Unit, "s/")
	fmt.Fprintf(b, "Time for each %s: %s in %s, %s in %s.\n", map[string]string{"op": "operation"}[unit]+map[string]string{"repetition": unit}[unit],
		seconds(whole.Before, whole.Before), text.Terminal(blame.From), seconds(whole.After, whole.After), text.Terminal(blame.To))
	for _, v := range blame.Views {
		b.WriteByte('\n')
		w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "%s\t%s\t%s\tdifference\tshare\tp\tsource\n", v.Name, text.Terminal(blame.From), text.Terminal(blame.To))
		for _, s := range append(v.Parts(), v.Whole) {
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n", text.Terminal(s.Name), seconds(s.Before, v.Whole.Before), seconds(s.After, v.Whole.Before),
				differenceText(s, v.Whole.Before), shareText(s), pComponent(s), text.Terminal(s.Source))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	for _, n := range blame.Notes {
		fmt.Fprintf(b, "note: %s\n", text.Terminal(n))
	}
	return nil
}

func differenceText(s compare.Component, of float64) string {
	value := seconds(s.Difference.Value, of)
	if s.Difference.Value > 0 {
		value = "+" + value
	}
	if !s.Sure {
		value += " ~"
	}
	return value
}

func shareText(s compare.Component) string {
	if math.IsNaN(s.Share) || math.IsInf(s.Share, 0) {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*s.Share)
}

func pComponent(s compare.Component) string {
	return pText(compare.Change{Corrected: s.P})
}
