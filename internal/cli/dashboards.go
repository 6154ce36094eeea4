// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/teescope/teescope/internal/lib/atomicfile"
	"github.com/teescope/teescope/internal/server/dashboards"
)

// ExportDashboards writes the page's panels as Grafana dashboards, one file each, into a directory. It creates the
// directory and returns the names of the files.
func ExportDashboards(dir string) ([]string, error) {
	all, err := dashboards.All()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the directory for dashboards: %w", err)
	}
	var names []string
	for _, d := range all {
		rendered, err := dashboards.Grafana(d)
		if err != nil {
			return nil, err
		}
		name := filepath.Join(dir, "teescope-"+d.ID+".json")
		if err := atomicfile.Write(name, rendered, 0o644); err != nil { // others import it
			return nil, fmt.Errorf("writing a dashboard: %w", err)
		}
		names = append(names, name)
	}
	return names, nil
}
