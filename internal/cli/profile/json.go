// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"io"
	"math"

	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/run/profile"
)

// number is a figure in JSON: null if it is unknown.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// amount is one in JSON: nanoseconds, billionths of a percent, or null if the unit is unknown.
func amount(w profile.Whole, v int64) *int64 {
	if w.Unit == "" {
		return nil
	}
	return &v
}

// unit names what amounts count.
func unit(w string) string {
	return map[string]string{"ns": "nanoseconds", "%": "billionths of a percent"}[w]
}

type jsonInterval struct {
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	Level float64  `json:"level"`
}

func interval(i stat.Interval) *jsonInterval {
	if i.N == 0 {
		return nil
	}
	return &jsonInterval{number(i.Low), number(i.High), i.Level}
}

type jsonRow struct {
	Name      string        `json:"name"`
	Kind      profile.Kind  `json:"kind"`
	Self      int64         `json:"self"`
	Inclusive *int64        `json:"total"`
	Share     *float64      `json:"share"`
	Interval  *jsonInterval `json:"interval"`
	Absolute  *int64        `json:"absolute"`
}

type jsonTable struct {
	File    string    `json:"file"`
	By      string    `json:"by"`
	Value   string    `json:"value"`
	Unit    string    `json:"unit"`
	Total   int64     `json:"total"`
	Samples *float64  `json:"samples"`
	Of      *int64    `json:"whole"`
	Amounts string    `json:"absolute_unit,omitempty"`
	Rows    []jsonRow `json:"rows"`
	Broken  int64     `json:"rest_with_unresolved_callers"`
	Notes   []string  `json:"notes"`
}

// TableJSON writes a table as JSON.
func TableJSON(w io.Writer, file, column string, t *profile.Table) error {
	out := jsonTable{
		File: file, By: column, Value: t.Value.Type, Unit: t.Value.Unit, Total: t.Total, Samples: samples(t.Taken), Of: amount(t.Whole, t.Whole.Amount),
		Amounts: unit(t.Whole.Unit), Broken: t.Broken, Notes: append([]string{}, t.Notes...),
	}
	for _, r := range t.Rows {
		one := jsonRow{Name: r.Name, Kind: r.Kind, Self: r.Self, Share: number(r.Share), Interval: interval(r.Interval), Absolute: amount(t.Whole, r.Absolute)}
		if r.Inclusive >= 0 {
			one.Inclusive = &r.Inclusive
		}
		out.Rows = append(out.Rows, one)
	}
	return jsonapi.Print(w, out)
}

func samples(n float64) *float64 {
	if n == 0 {
		return nil
	}
	return &n
}

type jsonChange struct {
	Name        string        `json:"name"`
	Kind        profile.Kind  `json:"kind,omitempty"`
	Before      int64         `json:"a"`
	After       int64         `json:"b"`
	ShareBefore *float64      `json:"share_a"`
	ShareAfter  *float64      `json:"share_b"`
	Difference  int64         `json:"change"`
	Interval    *jsonInterval `json:"interval"`
	Part        *float64      `json:"share_of_change"`
	Sure        bool          `json:"sure"`
}

type jsonDiff struct {
	By      string       `json:"by"`
	Unit    string       `json:"unit"`
	Samples [2]*float64  `json:"samples"`
	Whole   jsonChange   `json:"whole"`
	Changes []jsonChange `json:"changes"`
	Notes   []string     `json:"notes"`
}

// DiffJSON writes a difference as JSON.
func DiffJSON(w io.Writer, column string, d *profile.Diff) error {
	change := func(c profile.Change) jsonChange {
		return jsonChange{c.Name, c.Kind, c.Before, c.After, number(c.ShareBefore), number(c.ShareAfter), c.Difference, interval(c.Interval), number(c.Part), c.Sure}
	}
	out := jsonDiff{By: column, Unit: unit(d.Unit), Samples: [2]*float64{samples(d.Taken[0]), samples(d.Taken[1])}, Whole: change(d.Whole), Notes: append([]string{}, d.Notes...)}
	if d.Whole.Difference == 0 {
		out.Whole.Part = nil
	}
	for _, c := range d.Changes {
		out.Changes = append(out.Changes, change(c))
	}
	return jsonapi.Print(w, out)
}

type jsonPart struct {
	Name      string        `json:"name"`
	Inclusive int64         `json:"total"`
	OfRoot    *float64      `json:"share_of_root"`
	Interval  *jsonInterval `json:"interval"`
	Parent    string        `json:"caller,omitempty"`
	OfParent  *float64      `json:"share_of_caller"`
	Own       int64         `json:"own"`
	Absolute  *int64        `json:"absolute"`
}

type jsonBreakdown struct {
	File    string     `json:"file"`
	Value   string     `json:"value"`
	Unit    string     `json:"unit"`
	Total   int64      `json:"total"`
	Samples *float64   `json:"samples_within_root"`
	Amounts string     `json:"absolute_unit,omitempty"`
	Parts   []jsonPart `json:"parts"`
	Notes   []string   `json:"notes"`
}

// BreakdownJSON writes a breakdown as JSON.
func BreakdownJSON(w io.Writer, file string, b *profile.Breakdown) error {
	out := jsonBreakdown{File: file, Value: b.Value.Type, Unit: b.Value.Unit, Total: b.Total, Samples: samples(b.Taken), Amounts: unit(b.Whole.Unit), Notes: append([]string{}, b.Notes...)}
	for _, q := range b.Parts {
		out.Parts = append(out.Parts, jsonPart{q.Name, q.Inclusive, number(q.OfRoot), interval(q.Interval), q.Parent, number(q.OfParent), q.Own, amount(b.Whole, q.Absolute)})
	}
	return jsonapi.Print(w, out)
}
