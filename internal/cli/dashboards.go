// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/teescope/teescope/internal/lib/atomicfile"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/server/dashboards"
	"github.com/teescope/teescope/internal/server/dashboards/own"
)

// maxKept is the maximum size of an answer with the dashboards that a server keeps, in bytes.
const maxKept = 4 << 20

// ExportDashboards writes the page's panels as Grafana dashboards, one file each, into a directory. It creates the
// directory and returns the names of the files.
func ExportDashboards(dir string) ([]string, error) {
	all, err := dashboards.All()
	if err != nil {
		return nil, err
	}
	rendered := map[string][]byte{}
	var names []string
	for _, d := range all {
		if rendered[d.ID], err = dashboards.Grafana(d); err != nil {
			return nil, err
		}
		names = append(names, d.ID)
	}
	return writeDashboards(dir, names, rendered)
}

// ExportKept does the same with the dashboards that users of a server keep.
func ExportKept(ctx context.Context, dir, server string, access remote.Access) ([]string, error) {
	answer, target, err := askAPI(ctx, server, access, http.MethodGet, own.Path[1:], nil, nil, maxKept)
	if errors.Is(err, errNoSuchAPI) {
		return nil, fmt.Errorf("%s keeps no dashboards: name a \"teescope up\" or \"teescope server\"", target)
	}
	if err != nil {
		return nil, err
	}
	var all []own.Dashboard
	if err := decoded(answer, target, &all); err != nil {
		return nil, err
	}
	if err := own.Check(all); err != nil {
		return nil, fmt.Errorf("the answer of %s: %w", target, err)
	}
	rendered := map[string][]byte{}
	var names []string
	for _, d := range all {
		if rendered["own-"+d.ID], err = d.Grafana(); err != nil {
			return nil, err
		}
		names = append(names, "own-"+d.ID)
	}
	return writeDashboards(dir, names, rendered)
}

// writeDashboards writes each dashboard to a file, and returns the names of the files.
func writeDashboards(dir string, ids []string, rendered map[string][]byte) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the directory for dashboards: %w", err)
	}
	var names []string
	for _, id := range ids {
		name := filepath.Join(dir, "teescope-"+id+".json")
		if err := atomicfile.Write(name, rendered[id], 0o644); err != nil { // others import it
			return nil, fmt.Errorf("writing a dashboard: %w", err)
		}
		names = append(names, name)
	}
	return names, nil
}
