// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/compare"
)

// HistoryFormats lists the formats of histories.
func HistoryFormats() []string { return []string{"text", "json", "html"} }

// WriteHistory writes a history in a format.
func WriteHistory(w io.Writer, h *compare.History, format string) error {
	var b strings.Builder
	var err error
	switch format {
	case "json":
		err = historyJSON(&b, h)
	case "html":
		historyHTML(&b, h)
	default:
		err = historyText(&b, h)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// span returns the smallest and the largest median of a history.
func span(h *compare.History) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, p := range h.Points {
		if len(p.Values) > 0 {
			low, high = math.Min(low, p.Median.Value), math.Max(high, p.Median.Value)
		}
	}
	return low, high
}

func historyText(b *strings.Builder, h *compare.History) error {
	low, high := span(h)
	by, unit := scaled(high, h.Metric.Unit)
	fmt.Fprintf(b, "%s (%s), phase %s, %s by %s\n\n", text.Terminal(h.Metric.ID()), text.Terminal(unit), text.Terminal(h.Phase), text.Plural(len(h.Points), "point", "points"), text.Terminal(h.Label))
	const width = 40
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for i, p := range h.Points {
		for _, c := range h.Changes {
			if c.At == i {
				fmt.Fprintf(w, "--\t\t\t%s: %s\n", text.Terminal(string(c.Verdict)), compare.Percent(c.Ratio.Value))
			}
		}
		bar := "not measured"
		if len(p.Values) > 0 {
			bar = strings.Repeat("#", max(1, int(width*p.Median.Value/math.Max(high, math.SmallestNonzeroFloat64))))
			if low < 0 {
				bar = ""
			}
		}
		fmt.Fprintf(w, "%s\t%s\tn=%d\t%s\n", text.Terminal(p.Name), figure(p.Median, by), len(p.Values), bar)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	b.WriteByte('\n')
	for _, s := range changeSentences(h) {
		fmt.Fprintf(b, "%s\n", text.Terminal(s))
	}
	for _, n := range h.Notes {
		fmt.Fprintf(b, "note: %s\n", text.Terminal(n))
	}
	return nil
}

// changeSentences describes the changes of a history.
func changeSentences(h *compare.History) []string {
	if len(h.Changes) == 0 {
		return []string{fmt.Sprintf("No change of %s or more was found.", compare.Percent(h.Ratio))}
	}
	var all []string
	for _, c := range h.Changes {
		by, unit := scaled(math.Max(c.Before.Value, c.After.Value), h.Metric.Unit)
		one := fmt.Sprintf("%s begins at %s: %s from %s to %s %s, p=%s.", map[compare.Verdict]string{compare.Better: "An improvement", compare.Worse: "A regression", compare.Changed: "A change"}[c.Verdict],
			h.Points[c.At].Name, compare.Percent(c.Ratio.Value), figure(c.Before, by), figure(c.After, by), unit, pText(compare.Change{Corrected: c.P}))
		if c.Ratio.Bounded() {
			one += fmt.Sprintf(" The change is between %s and %s (95 %%).", compare.Percent(c.Ratio.Low), compare.Percent(c.Ratio.High))
		}
		all = append(all, one+fmt.Sprintf(" The last point before it is %s; what is between them is not in the history.", h.Points[c.Last].Name))
	}
	return all
}

func historyJSON(w io.Writer, h *compare.History) error {
	type point struct {
		Name    string    `json:"name"`
		Started string    `json:"started"`
		Order   string    `json:"order,omitempty"`
		Files   []string  `json:"files"`
		N       int       `json:"n"`
		Median  interval  `json:"median"`
		Values  []float64 `json:"values"`
	}
	type change struct {
		Culprit string   `json:"culprit"`
		Last    string   `json:"last_before"`
		At      int      `json:"index"`
		Ratio   interval `json:"ratio"`
		Before  interval `json:"before"`
		After   interval `json:"after"`
		P       number   `json:"p_corrected"`
		Verdict string   `json:"verdict"`
	}
	out := struct {
		Metric   string   `json:"metric"`
		Unit     string   `json:"unit"`
		Phase    string   `json:"phase"`
		Label    string   `json:"label"`
		MinRatio float64  `json:"smallest_ratio"`
		Points   []point  `json:"points"`
		Changes  []change `json:"changes"`
		Notes    []string `json:"notes"`
	}{Metric: h.Metric.ID(), Unit: h.Metric.Unit, Phase: h.Phase, Label: h.Label, MinRatio: h.Ratio, Changes: []change{}, Notes: append([]string{}, h.Notes...)}
	for _, p := range h.Points {
		out.Points = append(out.Points, point{p.Name, p.Started.UTC().Format("2006-01-02T15:04:05.000Z"), p.Order, p.Files, len(p.Values), intervalOf(p.Median), append([]float64{}, p.Values...)})
	}
	for _, c := range h.Changes {
		out.Changes = append(out.Changes, change{h.Points[c.At].Name, h.Points[c.Last].Name, c.At, intervalOf(c.Ratio), intervalOf(c.Before), intervalOf(c.After), number(c.P), string(c.Verdict)})
	}
	return jsonapi.Print(w, out)
}
