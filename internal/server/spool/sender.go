// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
)

const (
	answerWithin = 30 * time.Second
	firstPause   = time.Second // before a failed request is repeated; doubled each time
	longPause    = time.Minute
	maxComplaint = 1024 // bytes of an answer that are shown
)

// Version2 is the value of VersionHeader in requests of version 2.0 of remote write. A receiver of that version must state in
// writtenHeader how many samples it has stored. One that does not know the version may answer 2xx and store nothing
// (prometheus.io/docs/specs/prw/remote_write_spec_2_0, "Required Written Response Headers").
const (
	VersionHeader = "X-Prometheus-Remote-Write-Version"
	Version2      = "2.0.0"
	writtenHeader = "X-Prometheus-Remote-Write-Samples-Written"
)

// Sender sends the requests of a queue to a receiver.
type Sender struct {
	Queue  *Queue
	Client *http.Client // follows no redirects
	URL    string
	Name   string      // for metrics
	Header http.Header // of each request
	// Refused reads in the body of a good answer how many samples the receiver has refused. It may be nil. The body may be cut.
	Refused func(body []byte) int

	first, longest time.Duration // pauses, for tests
	said           string        // the last failure that was logged
}

// answer is the answer of a receiver.
type answer struct {
	err   error
	again bool          // the request may succeed later
	after time.Duration // how long to wait for that at least
	taken int           // samples, or all
	// refused is the number of refused samples of a request whose other samples were taken. It is 0 unless taken is
	// all.
	refused int
}

// Run sends until ctx ends. It repeats failed requests, and drops requests that a receiver refuses permanently.
func (s *Sender) Run(ctx context.Context) {
	if s.first == 0 {
		s.first, s.longest = firstPause, longPause
	}
	pause := s.first
	for ctx.Err() == nil {
		body, ok := s.Queue.take()
		if !ok {
			wait(ctx, s.Queue.added, s.longest)
			continue
		}
		a := s.post(ctx, body)
		if a.err != nil && ctx.Err() == nil && a.err.Error() != s.said { // a repeated failure is logged once
			s.said = a.err.Error()
			s.Queue.opts.Log.Warn("sending samples failed", "retried", a.again, "err", text.Terminal(s.said))
		}
		if a.again {
			s.Queue.release()
			wait(ctx, nil, min(max(pause, a.after), s.longest))
			pause = min(2*pause, s.longest)
			continue
		}
		pause = s.first
		s.Queue.done(a.taken, a.refused)
		if a.err == nil && s.said != "" {
			s.said = ""
			s.Queue.opts.Log.Info("sending samples works again")
		}
	}
	s.Queue.release()
}

func wait(ctx context.Context, early <-chan struct{}, long time.Duration) {
	t := time.NewTimer(long)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-early:
	case <-t.C:
	}
}

// post sends one request.
func (s *Sender) post(ctx context.Context, body []byte) answer {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return answer{err: err, again: true}
	}
	req.Header = s.Header.Clone()
	resp, err := s.Client.Do(req)
	if err != nil {
		if of, ok := errors.AsType[*url.Error](err); ok {
			err = of.Err // without the address: its parameters may be secret
		}
		return answer{err: err, again: true}
	}
	defer func() { _ = resp.Body.Close() }()                               // nothing was written
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxComplaint))         // an incomplete text is better than none
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 16*maxComplaint)) // so that the connection can be used again
	a := s.judge(resp, said)
	if a.err == nil && s.Refused != nil {
		if a.refused = s.Refused(said); a.refused > 0 {
			a.err = errors.New("the receiver has taken a part of the samples")
		}
	}
	return a
}

// judge interprets an answer. Samples are dropped only if the answer says that they are invalid. A wrong password, an
// address that does not exist yet and the page of a proxy can be corrected, so the request is repeated.
func (s *Sender) judge(resp *http.Response, said []byte) answer {
	if resp.StatusCode/100 == 2 {
		if s.Header.Get(VersionHeader) != Version2 {
			return answer{taken: all}
		}
		written, err := strconv.ParseUint(resp.Header.Get(writtenHeader), 10, 31)
		if err != nil {
			return answer{again: true, err: fmt.Errorf(
				"the receiver answers %s without the header %s, so it does not support version 2.0 and has stored nothing: set remote-write.protocol to 1.0", resp.Status, writtenHeader)}
		}
		return answer{taken: int(written)}
	}
	a := answer{err: fmt.Errorf("the receiver answers %s: %.300s", resp.Status, bytes.TrimSpace(said)), again: true}
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		a.again = false
		if n, err := strconv.Atoi(resp.Header.Get(writtenHeader)); err == nil && n > 0 {
			a.taken = n
		}
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		a.after = time.Duration(min(seconds, 3600)) * time.Second
	}
	return a
}
