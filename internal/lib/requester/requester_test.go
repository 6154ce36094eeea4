// SPDX-License-Identifier: Apache-2.0

package requester

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A name in a header proves nothing. Only a user who was checked is passed on, with the name cut and made safe.
func TestWhoMadeARequest(t *testing.T) {
	plain := func() *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth("mallory", "no password that was checked")
		r.Header.Set(header, "root")
		return r
	}
	for _, tt := range []struct {
		what     string
		r        *http.Request
		claimed  string
		by       string
		verified bool
	}{
		{"nobody", plain(), "", "", false},
		{"a claim", plain(), "ann", "ann", false},
		{"a claim that a terminal would obey", plain(), "a\x1bnn", "a\ufffdnn", false},
		{"a user", With(plain(), "bob"), "", "bob", true},
		{"a user who claims to be another one", With(plain(), "bob"), "ann", "bob", true},
		{"a user without a name", With(plain(), ""), "ann", "", true},
		{"a long name", With(plain(), strings.Repeat("x", 300)), "", strings.Repeat("x", maxName), true},
	} {
		if by, verified := Of(tt.r, tt.claimed); by != tt.by || verified != tt.verified {
			t.Errorf("%s: %q, %v; want %q, %v", tt.what, by, verified, tt.by, tt.verified)
		}
		passed := plain()
		Forward(passed, tt.r)
		if passed.Header.Get("Authorization") != "" {
			t.Errorf("%s: the password is passed on", tt.what)
		}
		var by string
		var verified bool
		FromLink(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { by, verified = Of(r, tt.claimed) })).ServeHTTP(httptest.NewRecorder(), passed)
		if by != tt.by || verified != tt.verified {
			t.Errorf("%s, passed on: %q, %v; want %q, %v", tt.what, by, verified, tt.by, tt.verified)
		}
	}
}
