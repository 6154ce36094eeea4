// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/compare"
)

// number is a figure in JSON, which has neither NaN nor infinity: both are null.
type number float64

// MarshalJSON writes null for what is unknown or unbounded.
func (n number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

type interval struct {
	Value number  `json:"value"`
	Low   number  `json:"low"`
	High  number  `json:"high"`
	Level float64 `json:"level"`
	N     int     `json:"n"`
}

func intervalOf(i stat.Interval) interval {
	return interval{number(i.Value), number(i.Low), number(i.High), i.Level, i.N}
}

type jsonChange struct {
	Ratio      interval `json:"ratio"`
	P          number   `json:"p"`
	Exact      bool     `json:"exact"`
	Corrected  number   `json:"p_corrected"`
	Detectable number   `json:"detectable_ratio"`
	Verdict    string   `json:"verdict"`
	Explains   []string `json:"explained_by,omitempty"`
}

type jsonCell struct {
	Group  string      `json:"group"`
	N      int         `json:"n"`
	Median interval    `json:"median"`
	Values []float64   `json:"values"`
	Change *jsonChange `json:"change,omitempty"`
}

type jsonRow struct {
	Metric string     `json:"metric"`
	Area   string     `json:"area"`
	Unit   string     `json:"unit"`
	Series string     `json:"series,omitempty"`
	How    string     `json:"how,omitempty"`
	Better string     `json:"better,omitempty"`
	Groups []jsonCell `json:"groups"`
}

type jsonComponent struct {
	Name       string   `json:"name"`
	Source     string   `json:"source"`
	Before     number   `json:"before"`
	After      number   `json:"after"`
	Difference interval `json:"difference"`
	Share      number   `json:"share"`
	P          number   `json:"p_corrected"`
	Sure       bool     `json:"sure"`
}

type jsonView struct {
	Name       string          `json:"name"`
	Whole      jsonComponent   `json:"whole"`
	Components []jsonComponent `json:"shares"`
	Rest       *jsonComponent  `json:"rest,omitempty"`
}

type jsonBlame struct {
	From   string         `json:"from"`
	To     string         `json:"to"`
	Unit   string         `json:"unit"`
	Whole  *jsonComponent `json:"whole,omitempty"`
	Views  []jsonView     `json:"views"`
	Notes  []string       `json:"notes,omitempty"`
	Reason string         `json:"unknown_because,omitempty"`
}

type jsonGroup struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Files       []string          `json:"files"`
	Repetitions int               `json:"repetitions"`
	Operations  string            `json:"operations_from,omitempty"`
	Workloads   []string          `json:"workloads,omitempty"`
}

type jsonTable struct {
	Point         map[string]string    `json:"point,omitempty"`
	Phase         string               `json:"phase"`
	PerOperations float64              `json:"per_operations,omitempty"`
	Baseline      string               `json:"baseline"`
	Tests         int                  `json:"tests"`
	Groups        []jsonGroup          `json:"groups"`
	Differences   []compare.Difference `json:"differences"`
	Forced        bool                 `json:"forced"`
	Metrics       []jsonRow            `json:"metrics"`
	Blame         []jsonBlame          `json:"blame"`
	Notes         []string             `json:"notes"`
}

type jsonFailure struct {
	Condition string   `json:"condition"`
	Metric    string   `json:"metric"`
	Group     string   `json:"group"`
	Ratio     interval `json:"ratio"`
	Reason    string   `json:"reason"`
}

func (r *Report) json(w io.Writer) error {
	out := struct {
		Tables   []jsonTable   `json:"tables"`
		Failures []jsonFailure `json:"failures"`
	}{Failures: []jsonFailure{}}
	for _, t := range r.Tables {
		out.Tables = append(out.Tables, tableJSON(t))
	}
	for _, f := range r.Failures {
		out.Failures = append(out.Failures, jsonFailure{f.Condition, f.Metric, f.Group, intervalOf(f.Change), f.Reason})
	}
	return jsonapi.Print(w, out)
}

func tableJSON(t *compare.Table) jsonTable {
	out := jsonTable{
		Point: t.Point, Phase: t.Phase, PerOperations: t.Per, Baseline: t.Groups[t.Baseline].Name, Tests: t.Tests, Forced: t.Forced,
		Differences: append([]compare.Difference{}, t.Differences...), Notes: append([]string{}, t.Notes...),
	}
	for _, g := range t.Groups {
		out.Groups = append(out.Groups, jsonGroup(g))
	}
	for _, row := range t.Rows {
		m := row.Metric
		one := jsonRow{Metric: m.ID(), Area: string(m.Area), Unit: m.Unit, Series: m.Series, How: m.How, Better: m.Better}
		for j, c := range row.Cells {
			cell := jsonCell{Group: t.Groups[j].Name, N: len(c.Values), Median: intervalOf(c.Median), Values: append([]float64{}, c.Values...)}
			if d := c.Change; d != nil {
				cell.Change = &jsonChange{intervalOf(d.Ratio), number(d.P), d.Exact, number(d.Corrected), number(d.Detectable), string(d.Verdict), d.Explains}
			}
			one.Groups = append(one.Groups, cell)
		}
		out.Metrics = append(out.Metrics, one)
	}
	for _, b := range t.Blames {
		out.Blame = append(out.Blame, blameJSON(b))
	}
	return out
}

func blameJSON(b compare.Blame) jsonBlame {
	component := func(s compare.Component) jsonComponent {
		return jsonComponent{s.Name, s.Source, number(s.Before), number(s.After), intervalOf(s.Difference), number(s.Share), number(s.P), s.Sure}
	}
	out := jsonBlame{From: b.From, To: b.To, Unit: b.Unit, Views: []jsonView{}, Notes: b.Notes, Reason: b.Reason}
	if b.Reason == "" {
		whole := component(b.Whole)
		out.Whole = &whole
	}
	for _, v := range b.Views {
		one := jsonView{Name: v.Name, Whole: component(v.Whole)}
		if v.Rest.Name != "" {
			rest := component(v.Rest)
			one.Rest = &rest
		}
		for _, s := range v.Components {
			one.Components = append(one.Components, component(s))
		}
		out.Views = append(out.Views, one)
	}
	return out
}

// csv writes a line for each metric and group.
func (r *Report) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	lines := [][]string{{
		"point", "group", "metric", "area", "unit", "n", "median", "low", "high", "change_percent", "change_low", "change_high", "p", "p_corrected", "detectable_percent", "verdict",
	}}
	for _, t := range r.Tables {
		for _, row := range t.Rows {
			for j, c := range row.Cells {
				m := row.Metric
				line := []string{t.Title, t.Groups[j].Name, m.ID(), string(m.Area), m.Unit, strconv.Itoa(len(c.Values)), cell(c.Median.Value), cell(c.Median.Low), cell(c.Median.High)}
				if d := c.Change; d == nil {
					line = append(line, "", "", "", "", "", "", "baseline")
				} else {
					line = append(line, percentCell(d.Ratio.Value), percentCell(d.Ratio.Low), percentCell(d.Ratio.High), cell(d.P), cell(d.Corrected),
						percentCell(d.Detectable), string(d.Verdict))
				}
				lines = append(lines, line)
			}
		}
	}
	for i, line := range lines {
		for k := range line {
			lines[i][k] = spreadsheet(line[k])
		}
	}
	return out.WriteAll(lines)
}

// spreadsheet keeps spreadsheets from reading a name as a formula, and terminals from obeying it.
func spreadsheet(s string) string {
	s = text.Terminal(s)
	if _, err := strconv.ParseFloat(s, 64); err == nil || s == "" || !strings.ContainsAny(s[:1], "=+-@\t\r") {
		return s
	}
	return "'" + s
}

// cell formats a number for CSV; unknown and unbounded ones are empty.
func cell(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func percentCell(factor float64) string { return cell((factor - 1) * 100) }
