// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/teescope/teescope/internal/lib/text"
)

// maxRefusal bounds what is repeated of an answer that is none, in bytes.
const maxRefusal = 300

// NotListeningError says that there is no server at a target.
type NotListeningError struct {
	Target string
	Err    error // of the connection
}

// Error says it in one line; how to start a server is for the command to say.
func (e *NotListeningError) Error() string { return "nothing listens on " + e.Target }

// Unwrap gives the error of the connection.
func (e *NotListeningError) Unwrap() error { return e.Err }

// RefusedError says that somebody is there who may well be the right one, and cannot be asked this way or not yet.
type RefusedError struct{ text string }

// Error says what to do instead.
func (e *RefusedError) Error() string { return e.text }

// Explain says what a failed request means to somebody who wants to see something.
func (s *Server) Explain(err error) error {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err // without the address, which is said already
	}
	var certificate *tls.CertificateVerificationError
	plain := strings.TrimPrefix(s.target, "https://")
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return &NotListeningError{Target: s.target, Err: err}
	case os.IsTimeout(err):
		return fmt.Errorf("querying %s: no response within %s", s.target, s.within)
	case errors.As(err, &certificate):
		return fmt.Errorf("querying %s: its certificate is not trusted: %w\n"+
			"Name the file of the authority that has signed it with --ca-file, and the host as in the certificate", s.target, certificate.Err)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("querying %s: it does not use TLS: use %s %s, without --ca-file", s.target, s.flag, plain)
	}
	return fmt.Errorf("querying %s: %w", s.target, err)
}

// ExplainStatus does so for an answer that is none. The body is what there is of it.
func (s *Server) ExplainStatus(status int, body []byte) error {
	line := firstLine(body)
	answer := fmt.Sprintf("%s answers %d %s: %s", s.target, status, http.StatusText(status), line)
	switch {
	case status == http.StatusUnauthorized && s.user == "":
		return &RefusedError{fmt.Sprintf("%s wants a user and a password: use %s %s --password-file FILE", s.target, s.flag, s.urlWith("USER@"))}
	case status == http.StatusUnauthorized:
		return &RefusedError{fmt.Sprintf("%s does not take this password of the user %q: see --password-file", s.target, text.Terminal(s.user))}
	case status == http.StatusBadRequest && strings.Contains(line, "HTTP request to an HTTPS server"):
		return &RefusedError{fmt.Sprintf("%s speaks TLS: use %s https://%s, with --ca-file where its authority is your own", s.target, s.flag, s.target)}
	case status == http.StatusForbidden, status == http.StatusServiceUnavailable:
		return &RefusedError{answer}
	}
	return errors.New(answer)
}

// urlWith is the server's URL with a user.
func (s *Server) urlWith(user string) string {
	scheme, rest, ok := strings.Cut(s.target, "://")
	if !ok {
		scheme, rest = "http", s.target
	}
	return scheme + "://" + user + rest
}

func firstLine(data []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(data[:min(len(data), maxRefusal)])), "\n")
	return text.Terminal(line)
}
