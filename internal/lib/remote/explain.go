// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
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
			"Name the file of the authority that has signed it with %s, and the host as in the certificate", s.target, certificate.Err, s.advice("ca_file of tls_config", "--ca-file"))
	case wantsCertificate(err):
		return fmt.Errorf("querying %s: %w\nIf it requires a client certificate, name cert_file and key_file in tls_config of %s", s.target, err, cmp.Or(s.config, "a file, and the file with --http-config-file"))
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("querying %s: it does not use TLS: use %s %s, without %s", s.target, s.flag, plain, s.advice("tls_config", "--ca-file"))
	}
	return fmt.Errorf("querying %s: %w", s.target, err)
}

// wantsCertificate reports whether a server may have refused a connection because of the client's certificate. Go has no
// type for these alerts. Servers with TLS 1.2 send the last one, which has other reasons too.
func wantsCertificate(err error) bool {
	return slices.ContainsFunc([]string{"certificate required", "bad certificate", "unknown certificate authority", "handshake failure"}, func(alert string) bool {
		return strings.HasSuffix(err.Error(), "remote error: tls: "+alert)
	})
}

// ExplainStatus describes an error status for the user. Body is the beginning of the answer.
func (s *Server) ExplainStatus(status int, body []byte) error {
	line := firstLine(body)
	answer := fmt.Sprintf("%s answers %d %s: %s", s.target, status, http.StatusText(status), line)
	switch {
	case status == http.StatusUnauthorized && s.config != "":
		return &RefusedError{fmt.Sprintf("%s does not take the credentials of %s: see basic_auth and authorization there", s.target, s.config)}
	case status == http.StatusUnauthorized && s.user == "":
		return &RefusedError{fmt.Sprintf("%s requires a user and a password: use %s %s --password-file FILE", s.target, s.flag, s.urlWith("USER@"))}
	case status == http.StatusUnauthorized:
		return &RefusedError{fmt.Sprintf("%s does not take this password of the user %q: see --password-file", s.target, text.Terminal(s.user))}
	case status == http.StatusBadRequest && strings.Contains(line, "HTTP request to an HTTPS server"):
		return &RefusedError{fmt.Sprintf("%s requires TLS: use %s https://%s, with %s if it uses your own certificate authority",
			s.target, s.flag, s.target, s.advice("ca_file of tls_config", "--ca-file"))}
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
