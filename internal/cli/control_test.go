// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The answers are those of an agent, of one that refuses, of a server without an agent, and of one that tries to write to the
// terminal.
func TestControl(t *testing.T) {
	asked, answer, status := "", "", 200
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = r.Method + " " + r.URL.Path + " " + string(body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	c := Control{Server: server.URL, By: "ann", Reason: "why not"}
	on := func(out io.Writer) error {
		return c.On(t.Context(), out, Change{Kind: "watch", Rule: "comm=a", Seconds: 90}, false)
	}
	list := func(out io.Writer) error { return c.List(t.Context(), out, false) }
	end := func(io.Writer) error { return c.End(t.Context(), []string{"ABC"}) }
	const one = `{"id":"AB\u001bC","kind":"watch","rule":"comm=a","by":"ann","reason":"a test","end":"2026-01-02T15:04:05Z","seconds_left":89.7}`
	for _, tt := range []struct {
		do           func(io.Writer) error
		status       int
		answer       string
		asked, wants string
	}{
		{on, 200, one, `POST /api/control {"kind":"watch","rule":"comm=a","seconds":90,"by":"ann","reason":"why not"}`, "AB\uFFFDC is on until 2026-01-02T15:04:05Z"},
		{on, 403, `{"status":"error","errorType":"forbidden","error":"not here"}`, "POST", ": not here"},
		{on, 200, "[", "POST", "is not in teescope's format"},
		{list, 200, `{"allowed":true,"changes":[` + one + `]}`, "GET /api/control ", "watch  comm=a  2026-01-02T15:04:05Z  1m30s  ann (not verified)  a test"},
		{list, 200, `{"allowed":true,"changes":[]}`, "GET", "The agent measures what its configuration says: no change is on."},
		{list, 200, `{"allowed":false,"changes":[]}`, "GET", "set control.enabled"},
		{list, 200, "null\n", "GET", `measures nothing itself: name a "teescope agent"`},
		{list, 404, "404 page not found", "GET", `measures nothing itself: name a "teescope agent"`},
		{end, 204, "", "DELETE /api/control/ABC ", ""},
		{end, 404, `{"status":"error","errorType":"not_found","error":"no change"}`, "DELETE", "change ABC: "},
	} {
		var out bytes.Buffer
		asked, status, answer = "", tt.status, tt.answer
		if err := tt.do(&out); err != nil {
			out.WriteString(err.Error())
		}
		if !strings.HasPrefix(asked, tt.asked) || !strings.Contains(out.String(), tt.wants) {
			t.Errorf("%d %s: asked %q, wrote %q; want %q, %q", tt.status, tt.answer, asked, out.String(), tt.asked, tt.wants)
		}
	}
	if err := c.End(t.Context(), []string{"../findings"}); err == nil {
		t.Error("a path is an ID")
	}
}
