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

// maxRefusal is the maximum length of an unexpected answer that is repeated in an error, in bytes.
const maxRefusal = 300

// NotListeningError reports that no server listens at a target.
type NotListeningError struct {
	Target string
	Err    error // the error of the connection
}

// Error returns one line. The command adds how to start a server.
func (e *NotListeningError) Error() string { return "nothing listens on " + e.Target }

// Unwrap returns the error of the connection.
func (e *NotListeningError) Unwrap() error { return e.Err }

// RefusedError reports that a server answers, but not to this kind of request or not yet.
type RefusedError struct{ text string }

// Error returns what to do instead.
func (e *RefusedError) Error() string { return e.text }

// Explain describes a failed request for the user.
func (s *Server) Explain(err error) error {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err // without the address, which is already in the message
	}
	var certificate *tls.CertificateVerificationError
	plain := strings.TrimPrefix(s.target, "https://")
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT) && strings.HasPrefix(s.target, socketPrefix):
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

// ExplainStatus describes an error status for the user. Body is the beginning of the answer.
func (s *Server) ExplainStatus(status int, body []byte) error {
	line := firstLine(body)
	answer := fmt.Sprintf("%s answers %d %s: %s", s.target, status, http.StatusText(status), line)
	switch {
	case status == http.StatusUnauthorized && s.user == "":
		return &RefusedError{fmt.Sprintf("%s requires a user and a password: use %s %s --password-file FILE", s.target, s.flag, s.urlWith("USER@"))}
	case status == http.StatusUnauthorized:
		return &RefusedError{fmt.Sprintf("%s does not take this password of the user %q: see --password-file", s.target, text.Terminal(s.user))}
	case status == http.StatusBadRequest && strings.Contains(line, "HTTP request to an HTTPS server"):
		return &RefusedError{fmt.Sprintf("%s speaks TLS: use %s https://%s, with --ca-file if it uses your own certificate authority", s.target, s.flag, s.target)}
	case status == http.StatusForbidden, status == http.StatusServiceUnavailable:
		return &RefusedError{answer}
	}
	return errors.New(answer)
}

// urlWith returns the server's URL with a user name.
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
