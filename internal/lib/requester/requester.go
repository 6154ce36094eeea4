// SPDX-License-Identifier: Apache-2.0

// Package requester identifies the author of a request: the user whose password or certificate the server has checked, or
// else the name that the request claims.
//
// It does not check a password: package httpapi does that, and marks the request.
package requester

import (
	"context"
	"net/http"

	"github.com/teescope/teescope/internal/lib/text"
)

// maxName is how much of a name is kept, in bytes.
const maxName = 64

// header passes the user on between two processes of teescope. Only [FromLink] reads it.
const header = "Teescope-User"

type key struct{}

// With returns the request of an authenticated user.
func With(r *http.Request, user string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), key{}, text.Cut(text.Label(user), maxName)))
}

// Proven returns the authenticated user, or false without one.
func Proven(r *http.Request) (user string, ok bool) {
	user, ok = r.Context().Value(key{}).(string)
	return user, ok
}

// Of returns the author of a request, and whether the user was authenticated. A name that the request claims counts only if
// no user is proven. It is empty if neither is known.
func Of(r *http.Request, claimed string) (by string, verified bool) {
	if user, ok := Proven(r); ok {
		return user, true
	}
	return text.Cut(text.Label(claimed), maxName), false
}

// Forward adds the author of the original request to a request for another process of teescope. It removes the author
// that the client claims, and the password, which the other process does not need.
func Forward(to, from *http.Request) {
	to.Header.Del("Authorization")
	to.Header.Del(header)
	if user, ok := Proven(from); ok {
		to.Header.Set(header, user)
	}
}

// FromLink serves requests that another process of teescope has passed on with [Forward]. No other process may be able to send
// them.
func FromLink(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, ok := r.Header[header]; ok && len(user) == 1 {
			r = With(r, user[0])
		}
		next.ServeHTTP(w, r)
	})
}
