// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"strings"
)

// Families answers with the documentation of the metric family {name} as plain text. It is the section of a Markdown
// reference with the name as heading.
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
		writeText(w, http.StatusOK, section)
	})
}
