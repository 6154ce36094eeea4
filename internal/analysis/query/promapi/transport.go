// SPDX-License-Identifier: Apache-2.0

package promapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/promql"
	"github.com/teescope/teescope/internal/lib/remote"
)

const (
	// tries is the maximum number of tries of a request.
	tries = 3
	// pause is the time before the next try. maxPause bounds a time that the server sets.
	pause    = 250 * time.Millisecond
	maxPause = 3 * time.Second
	// maxComplaint is the maximum size of an error answer, in bytes.
	maxComplaint = 64 << 10
)

// transport requests complete answers, bounds them, retries where that can help, and turns answers that are not from Prometheus into errors.
type transport struct {
	server *remote.Server
	plain  atomic.Bool // the server refuses the parameters that request complete answers
}

// clientOf returns a client whose time limit covers all tries of a request.
func clientOf(s *remote.Server) *http.Client {
	c := s.Client()
	c.Transport = &transport{server: s}
	return c
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.plain.Load() {
		return t.try(r)
	}
	all := r.Clone(r.Context())
	params := all.URL.Query()
	for name, value := range promql.Complete() {
		params.Set(name, value)
	}
	all.URL.RawQuery = params.Encode()
	resp, err := t.try(all)
	if err != nil || resp.StatusCode != http.StatusBadRequest {
		return resp, err
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxComplaint)) // the caller gets the same error
	if !promql.RefusesComplete(string(said)) {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(said), resp.Body), resp.Body}
		return resp, nil
	}
	resp.Body.Close()
	t.plain.Store(true)
	if r, err = again(r); err != nil {
		return nil, err
	}
	return t.try(r)
}

// again returns a request with a body that was not read.
func again(r *http.Request) (*http.Request, error) {
	if r.GetBody == nil {
		return r, nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = body
	return r, nil
}

// try sends a request, and repeats it where that can help.
func (t *transport) try(r *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		resp, err := t.server.RoundTrip(r)
		wait, may := retryable(resp, err)
		if !may || try == tries {
			return t.judge(r, resp, err)
		}
		if r, err = again(r); err != nil {
			return nil, err
		}
		if resp != nil {
			resp.Body.Close()
		}
		if err := clock.Sleep(r.Context(), wait); err != nil {
			return nil, err
		}
	}
}

// retryable reports whether a retry may succeed. Every request of this package can be repeated because it changes
// nothing. A request that timed out is not repeated, because the server is busy.
func retryable(resp *http.Response, err error) (wait time.Duration, again bool) {
	if err != nil {
		return pause, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable:
		wait = pause
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
			wait = min(time.Duration(seconds)*time.Second, maxPause)
		}
		return wait, true
	}
	return 0, false
}

// judge passes on answers that the client library understands, bounded in size.
func (t *transport) judge(r *http.Request, resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	isJSON := strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")
	switch status := resp.StatusCode; {
	case isJSON && (status/100 == 2 || status == http.StatusBadRequest || status == http.StatusUnprocessableEntity):
	case r.Method == http.MethodPost && (status == http.StatusForbidden || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented):
		// The library retries with GET.
	default:
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxComplaint)) // an incomplete body is better than none
		return nil, t.complaint(status, isJSON, body)
	}
	resp.Body = &bounded{ReadCloser: resp.Body, left: maxAnswer}
	return resp, nil
}

// bounded is a body that fails when it is longer than its limit.
type bounded struct {
	io.ReadCloser
	left int
}

var errTooLong = fmt.Errorf("the response is larger than %d MiB", maxAnswer>>20)

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errTooLong
	}
	return n, err
}
