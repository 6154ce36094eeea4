// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/waittest"
)

// open opens a queue. Each of its requests takes one block.
func open(t *testing.T, dir string, bytes int64, age time.Duration, now func() time.Time) *Queue {
	t.Helper()
	q, err := Open(Options{Dir: dir, Bytes: bytes, Age: age, Log: slog.New(slog.DiscardHandler), now: now})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func at(seconds int64) time.Time { return time.Unix(1_000_000+seconds, 0) }

// receiver is a server with a list of what it has taken.
type receiver struct {
	mu     sync.Mutex
	got    []string
	status int
	header map[string]string
	asked  int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	for name, value := range r.header {
		w.Header().Set(name, value)
	}
	if r.status != 0 {
		w.WriteHeader(r.status)
		return
	}
	r.got = append(r.got, string(body))
}

func (r *receiver) set(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) state() (got []string, asked int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got), r.asked
}

// send runs a sender until the condition holds.
func send(t *testing.T, q *Queue, r *receiver, until func() bool) {
	t.Helper()
	sendWith(t, q, r, nil, until)
}

// sendWith does the same with a header.
func sendWith(t *testing.T, q *Queue, r *receiver, header http.Header, until func() bool) {
	t.Helper()
	server := httptest.NewServer(r)
	defer server.Close()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s := Sender{Queue: q, Client: server.Client(), URL: server.URL, Header: header, first: time.Millisecond, longest: 5 * time.Millisecond}
		s.Run(ctx)
	}()
	waittest.Until(t, "the sender", until)
	stop()
	<-done
}

// TestOrderOverRestarts adds requests in two runs while the receiver is away. Afterwards it has all, once, in order.
func TestOrderOverRestarts(t *testing.T) {
	dir, r, want := t.TempDir(), &receiver{status: http.StatusServiceUnavailable}, []string(nil)
	q := open(t, dir, 0, 0, nil)
	for i := range 12 { // a number of two digits sorts behind one of one
		want = append(want, fmt.Sprint("request ", i))
		q.Add([]byte(want[i]), 10, at(int64(i)))
		if i == 5 {
			send(t, q, r, func() bool { _, asked := r.state(); return asked > 2 })
			q = open(t, dir, 0, 0, nil)
		}
	}
	if s := q.State(); s.Requests != 12 || s.Samples != 120 || !s.Oldest.Equal(at(0)) || s.Sent != 0 {
		t.Errorf("waiting: %+v", s)
	}
	r.set(0)
	send(t, q, r, func() bool { return q.State().Requests == 0 })
	if got, _ := r.state(); !slices.Equal(got, want) {
		t.Errorf("received %q", got)
	}
	if s := q.State(); s.Sent != 120 || s.Bytes != 0 || !s.Oldest.IsZero() {
		t.Errorf("at the end: %+v", s)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("files: %v, %v", left, err)
	}
}

// TestBounds fills a queue beyond its size and its age. The oldest requests are dropped, and counted.
func TestBounds(t *testing.T) {
	now := at(0)
	q := open(t, t.TempDir(), 4*block, time.Minute, func() time.Time { return now })
	for i := range 10 {
		q.Add([]byte("x"), 100+i, at(int64(i)))
	}
	if s := q.State(); s.Requests != 4 || s.Bytes != 4*block || s.Dropped[Full] != 100+101+102+103+104+105 || !s.Oldest.Equal(at(6)) {
		t.Errorf("full: %+v", s)
	}
	now = at(7).Add(time.Minute + time.Millisecond)
	q.Add([]byte("x"), 1, now)
	if s := q.State(); s.Requests != 3 || s.Dropped[Full] != 615+106 || s.Dropped[Old] != 107 {
		t.Errorf("old: %+v", s)
	}
	q.Add(bytes.Repeat([]byte("x"), 5*block), 7, now)
	if s := q.State(); s.Dropped[Disk] != 7 || s.Requests != 3 {
		t.Errorf("larger than the queue: %+v", s)
	}
	if err := os.RemoveAll(q.opts.Dir); err != nil {
		t.Fatal(err)
	}
	q.Add([]byte("x"), 3, now)
	if s := q.State(); s.Dropped[Disk] != 10 {
		t.Errorf("without the directory: %+v", s)
	}
}

// TestDamage changes and truncates files. What they held is counted, and the others are sent. What a kill left of writing is removed.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	q := open(t, dir, 0, 0, nil)
	for i := range 4 {
		q.Add([]byte(fmt.Sprint("request ", i)), 10+i, at(int64(i)))
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	for name, data := range map[string][]byte{files[0]: []byte("some other bytes"), files[1]: nil, filepath.Join(dir, "5-x"): []byte("foreign"), files[3] + ".new": nil} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	q, r := open(t, dir, 0, 0, nil), &receiver{}
	if n := q.State().Requests; n != 4 {
		t.Fatalf("%d requests", n)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 4+1 {
		t.Errorf("files: %q, %v", left, err)
	}
	send(t, q, r, func() bool { return q.State().Requests == 0 })
	if got, _ := r.state(); strings.Join(got, ",") != "request 2,request 3" || q.State().Dropped[Damaged] != 10+11 {
		t.Errorf("received %q, %+v", got, q.State())
	}
}

// TestAnswers says which answers lose samples: those that say that the samples are wrong. All others can be corrected.
func TestAnswers(t *testing.T) {
	for status := 200; status < 600; status++ {
		resp := &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {"7"}}}
		a := (&Sender{}).judge(resp, []byte("why\n"))
		lost := map[int]bool{400: true, 409: true, 413: true, 422: true}[status]
		switch {
		case status < 300:
			if a != (answer{taken: all}) {
				t.Errorf("%d: %+v", status, a)
			}
		case a.err == nil || a.again == lost || a.taken != 0 || a.after != 7*time.Second:
			t.Errorf("%d: %+v", status, a)
		}
	}
}

// TestReceiverWithoutVersion2 has a receiver that answers requests of version 2.0 as if it had stored them, as VictoriaMetrics 1.150 does.
// The samples wait until it supports the version.
func TestReceiverWithoutVersion2(t *testing.T) {
	s := Sender{Header: http.Header{VersionHeader: {Version2}}}
	for _, status := range []int{http.StatusOK, http.StatusNoContent} {
		for _, header := range []http.Header{{}, {writtenHeader: {""}}, {writtenHeader: {"-1"}}, {writtenHeader: {"all"}}} {
			if a := s.judge(&http.Response{StatusCode: status, Header: header}, nil); !a.again || a.taken != 0 || a.err == nil || !strings.Contains(a.err.Error(), "set remote-write.protocol to 1.0") {
				t.Errorf("%d, %v: %+v", status, header, a)
			}
		}
		if a := s.judge(&http.Response{StatusCode: status, Header: http.Header{writtenHeader: {"10"}}}, nil); a != (answer{taken: 10}) {
			t.Errorf("%d with the header: %+v", status, a)
		}
	}
}

// TestRefused has a receiver that refuses a request for good, and has stored a part of another.
func TestRefused(t *testing.T) {
	q, r := open(t, t.TempDir(), 0, 0, nil), &receiver{status: http.StatusBadRequest}
	empty := func() bool { return q.State().Requests == 0 }
	q.Add([]byte("a"), 10, at(0))
	send(t, q, r, empty)
	r.header = map[string]string{writtenHeader: "7"}
	q.Add([]byte("b"), 10, at(1))
	send(t, q, r, empty)
	r.header, r.status = nil, 0
	q.Add([]byte("c"), 10, at(2))
	send(t, q, r, empty)
	if s := q.State(); s.Dropped[Refused] != 13 || s.Sent != 17 {
		t.Errorf("%+v", s)
	}
}

// TestPartlyWritten has a receiver of version 2.0 that answers 200, and states that it has stored some samples, or none. The others are
// counted as refused.
func TestPartlyWritten(t *testing.T) {
	q, r := open(t, t.TempDir(), 0, 0, nil), &receiver{}
	for _, written := range []string{"7", "0", "10", "1000"} {
		r.header = map[string]string{writtenHeader: written}
		q.Add([]byte("a"), 10, at(0))
		sendWith(t, q, r, http.Header{VersionHeader: {Version2}}, func() bool { return q.State().Requests == 0 })
	}
	if s := q.State(); s.Dropped[Refused] != 3+10 || s.Sent != 7+10+10 {
		t.Errorf("%+v", s)
	}
}

// TestPartlyRefused has a receiver that answers that it has taken all but some samples.
func TestPartlyRefused(t *testing.T) {
	q := open(t, t.TempDir(), 0, 0, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "3") }))
	defer server.Close()
	for _, samples := range []int{10, 2} {
		q.Add([]byte("a"), samples, at(0))
		s := Sender{Queue: q, Client: server.Client(), URL: server.URL, Refused: func(body []byte) int { return int(body[0] - '0') }}
		body, _ := q.take()
		a := s.post(t.Context(), body)
		if a.err == nil || a.again {
			t.Errorf("%+v", a)
		}
		q.done(a.taken, a.refused)
	}
	if s := q.State(); s.Dropped[Refused] != 3+2 || s.Sent != 7 || s.Requests != 0 {
		t.Errorf("%+v", s)
	}
}

// TestNothingIsDroppedWhileItIsSent fills a queue while its oldest request is on its way.
func TestNothingIsDroppedWhileItIsSent(t *testing.T) {
	q := open(t, t.TempDir(), 2*block, 0, nil)
	q.Add([]byte("sent"), 1, at(0))
	if body, ok := q.take(); !ok || string(body) != "sent" {
		t.Fatal(body, ok)
	}
	for i := range 5 {
		q.Add([]byte("x"), 10, at(int64(i+1)))
	}
	q.done(all, 0)
	if s := q.State(); s.Sent != 1 || s.Dropped[Full] != 40 || s.Requests != 1 {
		t.Errorf("%+v", s)
	}
}
