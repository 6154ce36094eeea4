// SPDX-License-Identifier: Apache-2.0

package elsewhere

import (
	"io"
	"net/http"
	"testing"
)

// Google's managed Prometheus refuses the parameters that request complete answers.
func TestADatabaseThatRefusesToRequestCompleteAnswers(t *testing.T) {
	front := proxy(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.FormValue("deny_partial_response") != "" || r.FormValue("partial_response") != "" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"code":400,"message":"Unknown name \"partial_response\": Cannot bind query parameter."}}`)
			return
		}
		_, _ = io.WriteString(w, r.FormValue("query")+" at "+r.FormValue("time"))
	})
	status, text, err := do(t, http.MethodGet, front+"/api/v1/query?query=a&time=7", "")
	if err != nil || status != http.StatusOK || text != "a at 7" {
		t.Errorf("the answer is %d %q, and the error %v", status, text, err)
	}
}
