// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"io/fs"
	"net/http"
	"path"
)

// runbooksPath is the path of the runbooks, to which alerts link.
const runbooksPath = "/docs/runbooks/"

// runbook answers with the source of one page as plain text.
func runbook(pages fs.FS) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		if path.Ext(name) != ".md" {
			http.NotFound(w, r)
			return
		}
		data, err := fs.ReadFile(pages, name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		writeText(w, http.StatusOK, string(data))
	}
}
