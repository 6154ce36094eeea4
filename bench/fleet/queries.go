// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/teescope/teescope/internal/server/dashboards"
	"github.com/teescope/teescope/internal/server/pagequery"
)

// readQueries returns the queries of all panels, filled for all workloads and the last minutes.
func readQueries() ([]string, error) {
	all, err := dashboards.All()
	if err != nil {
		return nil, err
	}
	values := map[string]string{
		"workloads": pagequery.AnyWorkload(), "candidates": pagequery.AnyWorkload(), "nodes": "", "containers": "",
		"rate": "rate", "window": "20s", "interval": "5s",
	}
	var queries []string
	for _, d := range all {
		for _, s := range d.Sections {
			for _, p := range s.Panels {
				for _, q := range p.AllQueries() {
					queries = append(queries, pagequery.Replace(q.Expr, values))
				}
			}
		}
	}
	slices.Sort(queries)
	return slices.Compact(queries), nil
}
