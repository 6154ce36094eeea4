// SPDX-License-Identifier: Apache-2.0

package promapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/teescope/teescope/internal/lib/text"
)

// notPrometheusError reports that a server answers, but not as Prometheus does.
type notPrometheusError struct{ Target, What string }

// Error describes the answer and says what to use instead.
func (e *notPrometheusError) Error() string {
	return fmt.Sprintf("%s is not a Prometheus: %s\n"+
		"Name a teescope up or server, or a Prometheus or VictoriaMetrics that scrapes the agents, with the path that is\n"+
		"before its /api/v1. An agent alone keeps no history", e.Target, e.What)
}

// explainedError is an error with a complete message.
type explainedError struct{ error }

// Unwrap returns the wrapped error.
func (e *explainedError) Unwrap() error { return e.error }

// complaint returns an error for an answer that the client library would not understand.
func (t *transport) complaint(status int, isJSON bool, body []byte) error {
	var envelope struct {
		Error string `json:"error"`
	}
	said := body
	if isJSON && json.Unmarshal(body, &envelope) == nil && envelope.Error != "" {
		said = []byte(envelope.Error)
	}
	target := t.server.Target()
	switch {
	case status/100 == 2:
		return &explainedError{&notPrometheusError{target, fmt.Sprintf("its answer to a query begins with %.40q", body)}}
	case status == http.StatusNotFound:
		return &explainedError{&notPrometheusError{target, "it has no /api/v1/query"}}
	case status == http.StatusTooManyRequests, status == http.StatusBadGateway, status == http.StatusServiceUnavailable:
		return &explainedError{fmt.Errorf("%w\nTried %d times. Try again when the server is less busy, or when its start is complete", t.server.ExplainStatus(status, said), tries)}
	}
	return &explainedError{t.server.ExplainStatus(status, said)}
}

// explain returns an error that describes a failed request.
func (s *Source) explain(ctx context.Context, err error) error {
	var explained *explainedError
	var said *v1.Error
	switch target := s.Target(); {
	case errors.As(err, &explained):
		return explained.error
	case ctx.Err() != nil:
		return fmt.Errorf("querying %s: %w", target, context.Cause(ctx))
	case errors.Is(err, errTooLong):
		return fmt.Errorf("querying %s: %w\nUse --workload or a shorter --window", target, errTooLong)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("querying %s: the response is incomplete: the server or a proxy closed the connection", target)
	case errors.As(err, &said):
		return s.explainSaid(said)
	}
	var asked *url.Error
	var network net.Error
	if errors.As(err, &asked) || errors.As(err, &network) {
		return s.server.Explain(err)
	}
	return s.strange(err.Error()) // the library could not parse it
}

// strange returns an error for an answer that is JSON, but not of the API.
func (s *Source) strange(what string) error {
	return &notPrometheusError{s.Target(), "its answer is not in the format of the API: " + text.Terminal(what)}
}

// explainSaid describes an error of the API.
func (s *Source) explainSaid(e *v1.Error) error {
	said := text.Terminal(e.Msg)
	switch e.Type {
	case v1.ErrTimeout, v1.ErrCanceled:
		return fmt.Errorf("%s aborted a query: %s\nUse a shorter --window, or try again when the server is less busy", s.Target(), said)
	case v1.ErrExec:
		return fmt.Errorf("%s could not run a query: %s\nA shorter --window needs fewer samples", s.Target(), said)
	case v1.ErrBadData:
		return fmt.Errorf("%s rejected a query: %s\nThe server may be too old for this query", s.Target(), said)
	}
	return s.strange(e.Msg)
}
