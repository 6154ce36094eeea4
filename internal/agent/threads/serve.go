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
		http.Error(w, "listing threads: the parameter workload is missing: use ?workload=NAME", http.StatusBadRequest)
		return
	}
	list, known, err := r.Read(req.Context(), name)
	switch {
	case err != nil: // the client has disconnected
		http.Error(w, fmt.Sprintf("listing threads: %v", err), http.StatusServiceUnavailable)
		return
	case !known:
		http.Error(w, fmt.Sprintf("no workload has the name %q now", name), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	// An error means that the client has disconnected.
	_ = json.NewEncoder(w).Encode(list)
}
