// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// ServeHTTP answers ?workload=NAME with a [List] as JSON.
func (r *Reader) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name := req.URL.Query().Get("workload")
	if name == "" {
		http.Error(w, "whose threads? Ask with ?workload=NAME", http.StatusBadRequest)
		return
	}
	list, known, err := r.Read(req.Context(), name)
	switch {
	case err != nil: // whoever asked has gone
		http.Error(w, fmt.Sprintf("listing threads: %v", err), http.StatusServiceUnavailable)
		return
	case !known:
		http.Error(w, fmt.Sprintf("no workload has the name %q now", name), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	// An error is that the client has gone.
	_ = json.NewEncoder(w).Encode(list)
}
