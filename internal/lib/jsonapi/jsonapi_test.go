// SPDX-License-Identifier: Apache-2.0

package jsonapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		what, kind, body string
		status           int
		says             string
	}{
		{"a value", "application/json; charset=utf-8", `{"n":3}` + "\n", 200, ""},
		{"a form, which another site can send", "application/x-www-form-urlencoded", `{"n":3}`, 415, "must be JSON"},
		{"no type", "", `{"n":3}`, 415, "must be JSON"},
		{"a member that does not exist", "application/json", `{"m":3}`, 400, `the body is not a thing: json: unknown field \"m\"`},
		{"a torn value", "application/json", `{"n":`, 400, "the body is not a thing"},
		{"nothing", "application/json", ``, 400, "the body is not a thing"},
		{"two values", "application/json", `{"n":3}{"n":4}`, 400, "more than one thing"},
		{"a value and rubbish", "application/json", `{"n":3}]`, 400, "more than one thing"},
		{"too much", "application/json", strings.Repeat(" ", maxBody) + `{"n":3}`, 400, "too large"},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tt.body))
		r.Header.Set("Content-Type", tt.kind)
		var into struct{ N int }
		ok := Read(w, r, "thing", &into)
		if ok != (tt.status == 200) || w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) || ok && into.N != 3 {
			t.Errorf("%s: %v, %d, %+v: %s", tt.what, ok, w.Code, into, w.Body)
		}
	}
}

func TestRefuse(t *testing.T) {
	w := httptest.NewRecorder()
	Refuse(w, http.StatusServiceUnavailable, Timeout, errors.New("later"))
	if got := w.Body.String(); w.Code != 503 || w.Header().Get("Retry-After") != "1" || got != `{"error":"later","errorType":"timeout","status":"error"}`+"\n" {
		t.Errorf("%d %v %s", w.Code, w.Header(), got)
	}
}
