// SPDX-License-Identifier: Apache-2.0

// Package own keeps the dashboards that users make of their own queries: in a file, and behind an API.
//
// It does not evaluate a query or depend on a metric.
package own

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/promql"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/server/dashboards"
)

// Bounds of a dashboard. Lengths are in bytes.
const (
	maxPanels = 24
	maxTitle  = 100
	maxExpr   = 4000 // as in the page's Explore
	maxID     = 23   // Grafana's limit of 40 for the whole identifier leaves room for a prefix and a number
)

// What a panel shows of its query.
const (
	chart = "chart" // values over the time range
	table = "table" // values at its end
)

// A Panel shows one query.
type Panel struct {
	Title string `json:"title"`
	Expr  string `json:"expr"`           // PromQL
	Show  string `json:"show"`           // chart or table
	Unit  string `json:"unit,omitempty"` // a unit of the page; empty for a plain number
}

// A Dashboard is panels that a user keeps under a title.
type Dashboard struct {
	ID string `json:"id"` // made from the title; part of addresses
	// Version grows with each change. A change must name the version that it is of.
	Version int     `json:"version"`
	Title   string  `json:"title"`
	Panels  []Panel `json:"panels"`
	// ChangedBy is the user whose password or certificate was checked, or empty.
	ChangedBy string    `json:"changedBy,omitempty"`
	ChangedAt time.Time `json:"changedAt"`
}

// check returns what is wrong with the title and the panels.
func (d Dashboard) check() error {
	if err := checkTitle(d.Title); err != nil {
		return fmt.Errorf("the dashboard: %w", err)
	}
	if len(d.Panels) == 0 || len(d.Panels) > maxPanels {
		return fmt.Errorf("a dashboard has 1 to %d panels, not %d", maxPanels, len(d.Panels))
	}
	for i, p := range d.Panels {
		if err := p.check(); err != nil {
			return fmt.Errorf("panel %d: %w", i+1, err)
		}
	}
	return nil
}

func checkTitle(title string) error {
	switch {
	case strings.TrimSpace(title) == "":
		return errors.New("it needs a title")
	case len(title) > maxTitle:
		return fmt.Errorf("the title has %d bytes; the maximum is %d", len(title), maxTitle)
	case !text.IsLabel(title):
		return errors.New("the title contains a control character or is not UTF-8: write one line")
	}
	return nil
}

func (p Panel) check() error {
	if err := checkTitle(p.Title); err != nil {
		return err
	}
	if len(p.Expr) > maxExpr {
		return fmt.Errorf("the query has %d bytes; the maximum is %d", len(p.Expr), maxExpr)
	}
	if err := promql.Check(p.Expr); err != nil {
		return err
	}
	if p.Show != chart && p.Show != table {
		return fmt.Errorf("show %q: use %s or %s", text.Short(p.Show, maxTitle), chart, table)
	}
	if p.Unit != "" && !slices.Contains(dashboards.Units(), p.Unit) {
		return fmt.Errorf("unit %q: use one of %s", text.Short(p.Unit, maxTitle), strings.Join(dashboards.Units(), ", "))
	}
	return nil
}

// slug returns the start of an ID: lower-case letters and digits of the title, with a hyphen for anything else.
func slug(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
		if b.Len() == maxID {
			break
		}
	}
	if s := strings.Trim(b.String(), "-"); s != "" {
		return s
	}
	return "dashboard"
}

// Grafana renders a dashboard as JSON for Grafana.
func (d Dashboard) Grafana() ([]byte, error) {
	section := dashboards.Section{Title: d.Title}
	for i, p := range d.Panels {
		kind, unit := "lines", p.Unit
		if p.Show == table {
			kind = "samples"
		}
		if unit == "" {
			unit = "count"
		}
		section.Panels = append(section.Panels, dashboards.Panel{
			ID: fmt.Sprintf("own-%d", i+1), Kind: kind, Title: p.Title, Unit: unit, Written: true,
			Queries: []dashboards.Query{{Expr: p.Expr}},
		})
	}
	return dashboards.Grafana(dashboards.Dashboard{ID: "own-" + d.ID, Title: d.Title, Sections: []dashboards.Section{section}})
}
