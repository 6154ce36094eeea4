// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"errors"
	"fmt"
	"net/http"
)

// Serve serves the panel {id} of a path as JSON of one Grafana panel, for download.
func Serve() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		rendered, err := newGrafanaPanel(id)
		switch {
		case errors.Is(err, errNoPanel):
			http.Error(w, fmt.Sprintf("There is no panel %.40q.", id), http.StatusNotFound)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Disposition", `attachment; filename="teescope-`+id+`.json"`)
			_, _ = w.Write(rendered) // an error means that the client has disconnected
		}
	})
}
