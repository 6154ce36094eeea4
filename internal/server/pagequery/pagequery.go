// SPDX-License-Identifier: Apache-2.0

// Package pagequery fills the queries of the page in Go: for reports, for Grafana and for benchmarks.
//
// What the page and Go have in common is defined once, in web/src; pagequery.json is generated from it
// (`make generate-dashboards`). The package refuses to know a panel, and to run a query.
package pagequery

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed pagequery.json
var generated []byte

// page is what web/src defines (web/src/report/page-query.ts).
type page struct {
	Placeholders    []string  `json:"placeholders"`
	AnyWorkload     string    `json:"anyWorkload"`     // the matcher without a choice of workloads
	ContainersOf    string    `json:"containersOf"`    // $containers where workloads are chosen
	ScrapesInWindow float64   `json:"scrapesInWindow"` // at least, of a rate
	Steps           []float64 `json:"steps"`           // distances between two points, seconds
	Minute          float64   `json:"minute"`          // step of the queries about one moment, seconds
	Marks           []Mark    `json:"marks"`
}

// A Mark is an event that the page marks on its charts.
type Mark struct {
	ID      string `json:"id"`
	Expr    string `json:"expr"`    // with placeholders
	Moments bool   `json:"moments"` // the values are the moments, as Unix seconds
}

var shared = decode()

func decode() page {
	var p page
	if err := json.Unmarshal(generated, &p); err != nil {
		panic(fmt.Sprintf("decoding the embedded pagequery.json: %v", err)) // a test reads the same bytes
	}
	return p
}

// AnyWorkload is the matcher of all workloads: every one but the idle task.
func AnyWorkload() string { return shared.AnyWorkload }

// Minute is the step of the queries about one moment, seconds.
func Minute() float64 { return shared.Minute }

// Marks lists the events that the page marks on its charts.
func Marks() []Mark { return append([]Mark{}, shared.Marks...) }
