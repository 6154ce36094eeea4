// SPDX-License-Identifier: Apache-2.0

package promapi

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// Google's managed Prometheus refuses parameters that it does not know. The answer is one that it gave to another client.
func TestAServerThatRefusesToRequestCompleteAnswers(t *testing.T) {
	var refused atomic.Int64
	s := source(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") != "a" {
			t.Errorf("the query is %q", r.FormValue("query"))
		}
		if r.Form.Has("partial_response") {
			refused.Add(1)
			answer(http.StatusBadRequest, "application/json; charset=UTF-8", `{"error":{"code":400,"message":"Invalid JSON payload received. `+
				`Unknown name \"partial_response\": Cannot bind query parameter.","status":"INVALID_ARGUMENT"}}`)(w, r)
			return
		}
		answer(http.StatusOK, "application/json", `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"2"]}]}}`)(w, r)
	}), time.Minute)
	for range 2 {
		got, err := s.Instant(t.Context(), "a", time.Unix(1, 0))
		if err != nil || len(got) != 1 || got[0].Value != 2 {
			t.Errorf("the samples are %v, and the error %v", got, err)
		}
	}
	if n := refused.Load(); n != 1 {
		t.Errorf("%d requests were refused", n)
	}
}
