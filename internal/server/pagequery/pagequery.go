// SPDX-License-Identifier: Apache-2.0

// Package pagequery fills the page's queries in Go, for reports, Grafana and benchmarks.
//
// What the page and Go both use is defined once, in web/src; pagequery.json is generated from it (`make
// generate-dashboards`). Only how values are put into a query is written twice, because a report is made where no browser
// runs. The page's code writes the cases that hold this package to the same results (testdata/fill.json). The package does
// not depend on a panel or run a query.
package pagequery

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed pagequery.json
var generated []byte

// page holds the definitions of web/src/report/page-query.ts.
type page struct {
	Placeholders    []string  `json:"placeholders"`
	AnyWorkload     string    `json:"anyWorkload"`     // the matcher when no workload is selected
	ContainersOf    string    `json:"containersOf"`    // $containers when workloads are selected
	ScrapesInWindow float64   `json:"scrapesInWindow"` // minimum number of scrapes in a rate's window
	Steps           []float64 `json:"steps"`           // distances between two points, seconds
	Minute          float64   `json:"minute"`          // step of the queries about one time, seconds
	Marks           []Mark    `json:"marks"`
}

// A Mark is an event that the page marks on its charts.
type Mark struct {
	ID      string `json:"id"`
	Expr    string `json:"expr"`    // with placeholders
	Moments bool   `json:"moments"` // the values are times, in Unix seconds
}

var common = decode()

func decode() page {
	var p page
	if err := json.Unmarshal(generated, &p); err != nil {
		panic(fmt.Sprintf("decoding the embedded pagequery.json: %v", err)) // a test reads the same bytes
	}
	return p
}

// AnyWorkload returns the matcher of all workloads except the idle task.
func AnyWorkload() string { return common.AnyWorkload }

// Minute returns the step of the queries about one time, in seconds.
func Minute() float64 { return common.Minute }

// Marks returns the events that the page marks on its charts.
func Marks() []Mark { return append([]Mark{}, common.Marks...) }
