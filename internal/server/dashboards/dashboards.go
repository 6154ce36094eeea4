// SPDX-License-Identifier: Apache-2.0

// Package dashboards renders the panels of the page for others: Grafana.
//
// The panels are defined once, in web/src/panels/dashboards; panels.json is generated from them (`make generate-dashboards`). It
// refuses to define a panel of its own, and to know who serves or stores what the panels ask for.
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
	Single   bool      `json:"single"` // about one workload, which has to be chosen
}

// A Section is panels under one heading.
type Section struct {
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	Panels []Panel `json:"panels"`
}

// A Panel is one picture; which fields it has depends on its kind (web/src/panels/types.ts says what each means).
type Panel struct {
	ID         string      `json:"id"`
	Kind       string      `json:"kind"` // one of web/src/panels/types.ts
	Title      string      `json:"title"`
	Question   string      `json:"question"`
	Unit       string      `json:"unit"`
	Help       string      `json:"help"`
	Empty      Empty       `json:"empty"`
	Queries    []Query     `json:"queries"`
	Query      *Query      `json:"query"` // of a figure
	Top        int         `json:"top"`
	Ordered    bool        `json:"ordered"`
	Thresholds []Threshold `json:"thresholds"`
	Keys       []Key       `json:"keys"` // of a table, a box plot or an icicle, from here on
	Name       string      `json:"name"`
	Info       *Info       `json:"info"`
	Columns    []Column    `json:"columns"`
	SortBy     int         `json:"sortBy"`
	Filters    bool        `json:"filters"`
	First      string      `json:"first"`   // of a box plot: what is shown at first
	Metrics    []string    `json:"metrics"` // that it asks for, by their names in docs/user/metrics.md
}

// Empty is what to say of a panel that has nothing to show.
type Empty struct {
	Text  string `json:"text"`
	Flag  string `json:"flag"`
	Probe string `json:"probe"`
}

// Query is PromQL with placeholders (internal/server/pagequery), and how its series are named.
type Query struct {
	Expr   string `json:"expr"`
	Legend string `json:"legend"`
}

// Key is a label that makes a row.
type Key struct {
	Label   string `json:"label"`
	Title   string `json:"title"`
	Several bool   `json:"several"` // the page shows it where there are several machines alone
}

// Label is a label that is shown under a title.
type Label struct {
	Label string `json:"label"`
	Title string `json:"title"`
}

// Info is a query whose labels describe a table's rows.
type Info struct {
	Expr   string  `json:"expr"`
	Labels []Label `json:"labels"`
}

// Column is a column of figures.
type Column struct {
	Title string `json:"title"`
	Unit  string `json:"unit"`
	Expr  string `json:"expr"`
	Spark bool   `json:"spark"`
	Stat  string `json:"stat"` // which number of a box plot it is
}

// All returns every dashboard, in the order of the page.
func All() ([]Dashboard, error) {
	var all []Dashboard
	d := json.NewDecoder(bytes.NewReader(panels))
	d.DisallowUnknownFields() // a field that is not known here would be lost in what is rendered
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("reading the panel definitions: %w", err)
	}
	return all, nil
}

// AllQueries lists the queries of a panel, with their placeholders.
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
