// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/crypto/bcrypt"

	"github.com/teescope/teescope/internal/lib/requester"
)

// A wrong password costs a computation of about 60 ms. A client has a few attempts, and then one in five seconds.
const (
	attemptRate, attemptBurst = 0.2, 10
	maxKnown                  = 128 // passwords that were right
)

// noUser is the hash of a password for users that do not exist, so that the time of an answer does not distinguish them.
const noUser = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"

// authenticator requires a user and a password if the web configuration has users.
type authenticator struct {
	config *webFile
	next   http.Handler
	limit  *bucket // the rate limit of the web configuration at the start; nil for none

	computing sync.Mutex // one computation at a time

	mu       sync.Mutex
	known    map[[sha256.Size]byte]bool
	attempts map[string]*bucket
}

func newAuthenticator(config *webFile, next http.Handler) http.Handler {
	if config.path == "" {
		return next
	}
	a := &authenticator{config: config, next: next, known: map[[sha256.Size]byte]bool{}, attempts: map[string]*bucket{}}
	if c, err := config.current(); err == nil && c.RateLimiterConfig.Interval > 0 {
		a.limit = &bucket{rate: 1 / c.RateLimiterConfig.Interval.Seconds(), most: float64(c.RateLimiterConfig.Burst)}
	}
	return a
}

// isAuthenticated reports whether a request has a valid password or client certificate.
func isAuthenticated(r *http.Request) bool {
	_, ok := requester.Proven(r)
	return ok
}

// certified returns the request of the user whose certificate was checked, if there is one.
func certified(r *http.Request) *http.Request {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return r
	}
	of := r.TLS.VerifiedChains[0][0].Subject
	return requester.With(r, cmp.Or(of.CommonName, of.String()))
}

// ServeHTTP implements http.Handler.
func (a *authenticator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := a.config.current()
	if err != nil {
		writeText(w, http.StatusServiceUnavailable, "teescope refuses all requests until its web configuration is valid. See its log.\n")
		return
	}
	if a.limit != nil && !a.limit.tryTake(time.Now(), 1) {
		writeText(w, http.StatusTooManyRequests, "The rate limit of the web configuration is reached.\n")
		return
	}
	for name, value := range c.HTTPConfig.Header {
		w.Header().Set(name, value)
	}
	if len(c.Users) == 0 {
		a.serve(w, certified(r))
		return
	}
	switch a.check(c, r) {
	case http.StatusOK:
		user, _, _ := r.BasicAuth() // check has compared it
		a.serve(w, requester.With(r, user))
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "5")
		writeText(w, http.StatusTooManyRequests, "Too many wrong passwords from this address. Try again in a while.\n")
	default:
		w.Header().Set("WWW-Authenticate", "Basic")
		http.Error(w, http.StatusText(http.StatusUnauthorized), http.StatusUnauthorized)
	}
}

// serve serves a request whose user was authenticated, if it has one, and writes the log of requests.
func (a *authenticator) serve(w http.ResponseWriter, r *http.Request) {
	if to, ok := w.(*answer); ok {
		to.user, to.verified = requester.Proven(r)
	}
	a.next.ServeHTTP(w, r)
}

// check returns the status of a request's password.
func (a *authenticator) check(c *web.Config, r *http.Request) int {
	user, password, given := r.BasicAuth()
	if !given {
		return http.StatusUnauthorized
	}
	hash, exists := c.Users[user]
	if !exists {
		hash = noUser
	}
	key := sha256.Sum256([]byte(strings.Join([]string{string(hash), user, password}, "\x00")))
	if a.isKnown(key) {
		return http.StatusOK
	}
	if !a.attempt(connectionOf(r).name()) {
		return http.StatusTooManyRequests
	}
	a.computing.Lock()
	err := bcrypt.CompareHashAndPassword([]byte(hash), []byte(password))
	a.computing.Unlock()
	if err != nil || !exists {
		return http.StatusUnauthorized
	}
	a.remember(key)
	return http.StatusOK
}

func (a *authenticator) isKnown(key [sha256.Size]byte) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known[key]
}

func (a *authenticator) remember(key [sha256.Size]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxKnown {
		clear(a.known)
	}
	a.known[key] = true
}

// attempt reports whether a client may try another password.
func (a *authenticator) attempt(client string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if a.attempts[client] == nil {
		if len(a.attempts) >= maxClients {
			for other, one := range a.attempts {
				if one.full(now) {
					delete(a.attempts, other)
				}
			}
		}
		a.attempts[client] = &bucket{rate: attemptRate, most: attemptBurst}
	}
	return a.attempts[client].tryTake(now, 1)
}
