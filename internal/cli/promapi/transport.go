// SPDX-License-Identifier: Apache-2.0

package promapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/teescope/teescope/internal/lib/remote"
)

const (
	// tries is how often a question is asked at most.
	tries = 3
	// pause is waited before it is asked again, and maxPause at most where the server says how long.
	pause    = 250 * time.Millisecond
	maxPause = 3 * time.Second
	// maxComplaint bounds what is read of an answer that is an error, in bytes.
	maxComplaint = 64 << 10
)

// transport bounds answers, asks again where that can help, and turns what is no answer of a Prometheus into an error.
type transport struct{ server *remote.Server }

// clientOf makes a client whose time limit covers all tries of a question.
func clientOf(s *remote.Server) *http.Client {
	c := s.Client()
	c.Transport = transport{s}
	return c
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		resp, err := t.server.RoundTrip(r)
		wait, again := worthAsking(resp, err)
		if !again || try == tries {
			return t.judge(r, resp, err)
		}
		if r.GetBody != nil {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			r = r.Clone(r.Context())
			r.Body = body
		}
		if resp != nil {
			resp.Body.Close()
		}
		if err := sleep(r.Context(), wait); err != nil {
			return nil, err
		}
	}
}

// worthAsking tells whether the same question may be answered a moment later. Every question of this package can be
// asked twice, because it changes nothing. One that took too long is not: the server has enough to do.
func worthAsking(resp *http.Response, err error) (wait time.Duration, again bool) {
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

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// judge passes on what the client library understands, bounded.
func (t transport) judge(r *http.Request, resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	isJSON := strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")
	switch status := resp.StatusCode; {
	case isJSON && (status/100 == 2 || status == http.StatusBadRequest || status == http.StatusUnprocessableEntity):
	case r.Method == http.MethodPost && (status == http.StatusForbidden || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented):
		// The library asks again, with GET.
	default:
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxComplaint)) // what could be read of it is better than nothing
		return nil, t.complaint(status, isJSON, body)
	}
	resp.Body = &bounded{ReadCloser: resp.Body, left: maxAnswer}
	return resp, nil
}

// bounded is a body that fails when it is longer than it may be.
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
