// SPDX-License-Identifier: Apache-2.0

package top

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
)

// NotListeningError says that there is no agent at a target.
type NotListeningError struct {
	Target string
	err    error
}

// Error says it in one line; how to start an agent is for the command to say.
func (e *NotListeningError) Error() string { return "nothing listens on " + e.Target }

// Unwrap gives the error of the connection.
func (e *NotListeningError) Unwrap() error { return e.err }

// RefusedError says that somebody is there who may well be an agent, and cannot be asked this way or
// not yet.
type RefusedError struct{ text string }

// Error says what to do instead.
func (e *RefusedError) Error() string { return e.text }

// explain says what a failed request means to somebody who wants to see something.
func (c *Client) explain(err error) error {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err // without the address, which is said already
	}
	var certificate *tls.CertificateVerificationError
	plain := strings.TrimPrefix(c.target, "https://")
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return &NotListeningError{Target: c.target, err: err}
	case os.IsTimeout(err):
		return fmt.Errorf("asking %s: no answer within %s", c.target, askWithin)
	case errors.As(err, &certificate):
		return fmt.Errorf("asking %s: its certificate is not trusted: %w\n"+
			"Name the file of the authority that has signed it with --ca-file, and the host as in the certificate", c.target, certificate.Err)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("asking %s: it does not speak TLS: use --connect %s, without --ca-file", c.target, plain)
	}
	return fmt.Errorf("asking %s: %w", c.target, err)
}

// explainStatus does so for an answer that is none.
func (c *Client) explainStatus(resp *http.Response, line string) error {
	text := fmt.Sprintf("%s answers %s: %s", c.target, resp.Status, line)
	switch {
	case resp.StatusCode == http.StatusUnauthorized && c.user == "":
		return &RefusedError{fmt.Sprintf("%s wants a user and a password: use --connect %s --password-file FILE", c.target, c.urlWith("USER@"))}
	case resp.StatusCode == http.StatusUnauthorized:
		return &RefusedError{fmt.Sprintf("%s does not take this password of the user %q: see --password-file", c.target, clean(c.user))}
	case resp.StatusCode == http.StatusBadRequest && strings.Contains(line, "HTTP request to an HTTPS server"):
		return &RefusedError{fmt.Sprintf("%s speaks TLS: use --connect https://%s, with --ca-file where its authority is your own", c.target, c.target)}
	case resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusServiceUnavailable:
		return &RefusedError{text}
	}
	return errors.New(text)
}

// urlWith is the agent's URL with a user.
func (c *Client) urlWith(user string) string {
	scheme, rest, ok := strings.Cut(c.target, "://")
	if !ok {
		scheme, rest = "http", c.target
	}
	return scheme + "://" + user + rest
}

func firstLine(data []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(data[:min(len(data), maxRefusal)])), "\n")
	return clean(line)
}
