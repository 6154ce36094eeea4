// SPDX-License-Identifier: Apache-2.0

// Command genmetrics writes the metrics of each panel as JSON, for the page. It reads the queries of the panels with
// Prometheus' own parser. "make generate-dashboards" runs it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/teescope/teescope/internal/server/dashboards"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "genmetrics:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: genmetrics FILE")
	}
	all, err := dashboards.All()
	if err != nil {
		return err
	}
	metrics := map[string][]string{}
	for _, d := range all {
		for _, s := range d.Sections {
			for _, p := range s.Panels {
				if metrics[p.ID], err = p.Metrics(); err != nil {
					return fmt.Errorf("reading the queries of the panel %s: %w", p.ID, err)
				}
			}
		}
	}
	text, err := json.MarshalIndent(metrics, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], append(text, '\n'), 0o644)
}
