// SPDX-License-Identifier: Apache-2.0

// Package dashboards renders the panels of the page for Grafana.
//
// The panels are defined once, in web/src/panels/dashboards; panels.json is generated from them (`make
// generate-dashboards`). The package does not define its own panels or depend on who serves or stores the data of the
// panels.
package dashboards

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
)

//go:embed panels.json
var panels []byte

// A Dashboard is sections of panels that answer one question.
type Dashboard struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	Question string    `json:"question"`
	Sections []Section `json:"sections"`
	Single   bool      `json:"single"` // about one workload, which the user chooses
}

// A Section is panels under one heading.
type Section struct {
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	Panels []Panel `json:"panels"`
}

// A Panel is one chart or table. Its fields depend on its kind (web/src/panels/types.ts documents them).
type Panel struct {
	ID         string      `json:"id"`
	Kind       string      `json:"kind"` // one of web/src/panels/types.ts, or "samples": a table of a query's series
	Title      string      `json:"title"`
	Question   string      `json:"question"`
	Unit       string      `json:"unit"`
	Help       string      `json:"help"`
	Empty      Empty       `json:"empty"`
	Queries    []Query     `json:"queries"`
	Error      string      `json:"error"`      // half of the interval of the first query; Grafana has no bands for many series
	ErrorOfSum string      `json:"errorOfSum"` // half of the interval of the sum of all series
	Query      *Query      `json:"query"`      // of a figure
	Top        int         `json:"top"`
	Ordered    bool        `json:"ordered"`
	Thresholds []Threshold `json:"thresholds"`
	Keys       []Key       `json:"keys"` // from here on: of a table, a box plot or an icicle
	Name       string      `json:"name"`
	Info       *Info       `json:"info"`
	Columns    []Column    `json:"columns"`
	SortBy     int         `json:"sortBy"`
	Filters    bool        `json:"filters"`
	First      string      `json:"first"` // of a box plot: what is shown first
	// Written marks a panel that a user has made. Its query has no placeholders, and may be of any metric.
	Written bool `json:"-"`
}

// Empty is the text of a panel without data.
type Empty struct {
	Text  string `json:"text"`
	Flag  string `json:"flag"`
	Probe string `json:"probe"`
	// Switch is what an agent can switch on for a while to get the data; Grafana has no such button.
	Switch string `json:"switch"`
}

// Query is PromQL with placeholders (internal/server/pagequery), and how its series are named.
type Query struct {
	Expr   string `json:"expr"`
	Legend string `json:"legend"`
}

// Key is a label that defines a row.
type Key struct {
	Label   string `json:"label"`
	Title   string `json:"title"`
	Several bool   `json:"several"` // the page shows it only when there are several machines
}

// Label is a label and its title.
type Label struct {
	Label string `json:"label"`
	Title string `json:"title"`
}

// Info is a query whose labels describe a table's rows.
type Info struct {
	Expr   string  `json:"expr"`
	Labels []Label `json:"labels"`
}

// Column is a column of numbers.
type Column struct {
	Title string `json:"title"`
	Unit  string `json:"unit"`
	Expr  string `json:"expr"`
	Spark bool   `json:"spark"`
	Stat  string `json:"stat"` // the statistic of a box plot
}

// All returns every dashboard, in the order of the page.
func All() ([]Dashboard, error) {
	var all []Dashboard
	d := json.NewDecoder(bytes.NewReader(panels))
	d.DisallowUnknownFields() // rendering would silently drop unknown fields
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("reading the panel definitions: %w", err)
	}
	return all, nil
}

// AllQueries returns the queries of a panel with their placeholders, without the query of its errors.
func (p Panel) AllQueries() []Query {
	all := slices.Clone(p.Queries)
	if p.Query != nil {
		all = append(all, *p.Query)
	}
	if p.Info != nil {
		all = append(all, Query{Expr: p.Info.Expr})
	}
	for _, c := range p.Columns {
		all = append(all, Query{Expr: c.Expr})
	}
	return all
}
