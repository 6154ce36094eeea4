// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"strings"
)

// Families answers with what a reference of metrics, in Markdown, says of the family {name} of a path: the section that
// has its name as heading, as plain text.
func Families(reference string) http.Handler {
	sections := map[string]string{}
	for i, section := range strings.Split(reference, "\n## ") {
		if name, _, ok := strings.Cut(section, "\n"); ok && i > 0 {
			sections[name] = "# " + strings.TrimSpace(section) + "\n"
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		section, known := sections[r.PathValue("name")]
		if !known {
			http.NotFound(w, r)
			return
		}
		text(w, http.StatusOK, section)
	})
}
