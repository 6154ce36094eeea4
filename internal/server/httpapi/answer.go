// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Bounds of answers. A handler writes into memory and returns, so that a client that reads slowly holds no place in the
// queue of queries and no slot for scrapes. Then the answer is sent.
const (
	// maxHeld is the memory of all answers that are being sent, in bytes. Beyond it, the oldest answer of the client
	// with the most bytes is given up.
	maxHeld = 64 << 20
	// maxAnswer is the part of one answer that is held, in bytes. The handler of a longer one waits for its client.
	maxAnswer = 32 << 20
	// A client that has taken fewer bytes than this after patience is disconnected.
	patience         = 10 * time.Second
	leastRate        = 32 << 10 // bytes per second
	leastRateOfLarge = 1 << 20  // while a handler waits
)

// chunk is how many bytes are sent between two readings of the clock.
const chunk = 64 << 10

// held bounds the memory of the answers that are being sent.
type held struct {
	most int

	mu      sync.Mutex
	total   int
	answers map[*answer]bool
}

func newHeld(most int) *held { return &held{most: most, answers: map[*answer]bool{}} }

// add counts an answer and gives up others while there are too many bytes.
func (h *held) add(a *answer) {
	h.mu.Lock()
	h.answers[a] = true
	h.total += a.size
	var victims []*answer
	for h.total > h.most {
		v := h.victim(a)
		if v == nil {
			break
		}
		h.drop(v)
		victims = append(victims, v)
	}
	h.mu.Unlock()
	for _, v := range victims {
		v.giveUp()
	}
}

// victim returns the oldest answer of the client with the most bytes, but never the newest answer.
func (h *held) victim(newest *answer) *answer {
	bytes := map[string]int{}
	for a := range h.answers {
		bytes[a.conn.name()] += a.size
	}
	var best *answer
	for a := range h.answers {
		if a == newest {
			continue
		}
		if best == nil {
			best = a
			continue
		}
		if x, y := bytes[a.conn.name()], bytes[best.conn.name()]; x > y || x == y && a.begun.Before(best.begun) {
			best = a
		}
	}
	return best
}

func (h *held) drop(a *answer) {
	if h.answers[a] {
		delete(h.answers, a)
		h.total -= a.size
	}
}

func (h *held) done(a *answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(a)
}

// answer holds the output of a handler. It implements http.ResponseWriter.
type answer struct {
	to      http.ResponseWriter
	conn    *connection
	control *http.ResponseController
	begun   time.Time // when sending began
	status  int
	parts   [][]byte
	own     bool // whether the last part may be appended to
	size    int
	sent    int
	direct  bool   // whether the answer is too long to be held
	release func() // releases shared parts; nil for none

	user     string // the authenticated user
	verified bool   // somebody has
}

// inMemory lets handlers write into memory.
func (s *Server) inMemory(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{to: w, conn: connectionOf(r), control: http.NewResponseController(w)}
		a.conn.add(1, 0)
		working := true
		defer func() {
			if working { // the handler has panicked, which ends the connection
				a.conn.add(-1, 0)
			}
		}()
		defer func() {
			if a.release != nil {
				a.release()
			}
		}()
		next.ServeHTTP(a, r)
		working = false
		a.conn.add(-1, 1)
		defer a.conn.add(0, -1)
		a.finish(s.held)
	})
}

// SetReadDeadline is for http.ResponseController: a handler may give a client less time for its request.
func (a *answer) SetReadDeadline(at time.Time) error { return a.control.SetReadDeadline(at) }

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.to.Header() }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	if a.direct || a.size+len(p) > maxAnswer {
		return len(p), a.stream(p)
	}
	a.WriteHeader(http.StatusOK)
	a.size += len(p)
	if !a.own {
		a.parts, a.own = append(a.parts, nil), true
	}
	last := &a.parts[len(a.parts)-1]
	*last = append(*last, p...)
	return len(p), nil
}

// writeShared writes bytes without copying them, if possible. They do not change until it calls release.
func writeShared(w io.Writer, p []byte, release func()) {
	a, ok := w.(*answer)
	if !ok {
		defer release()
		_, _ = w.Write(p) // an error means that the client has gone
		return
	}
	a.WriteHeader(http.StatusOK)
	a.parts, a.own = append(a.parts, p), false
	a.size += len(p)
	a.release = release
}

// stream sends the held part, and then p, while the handler waits.
func (a *answer) stream(p []byte) error {
	if !a.direct {
		a.direct, a.begun = true, time.Now()
		a.WriteHeader(http.StatusOK)
		a.to.WriteHeader(a.status)
	}
	parts := slices.Concat(a.parts, [][]byte{p})
	a.parts, a.own, a.size = nil, false, 0
	for _, part := range parts {
		if err := a.send(part, leastRateOfLarge); err != nil {
			return err
		}
	}
	return nil
}

// finish sends the held part.
func (a *answer) finish(h *held) {
	if a.direct {
		return
	}
	if a.status != 0 {
		a.to.WriteHeader(a.status)
	}
	a.begun = time.Now()
	h.add(a)
	defer h.done(a)
	for i, part := range a.parts {
		if err := a.send(part, leastRate); err != nil {
			return // the client has gone, or is too slow: its connection ends
		}
		a.parts[i] = nil
	}
}

// send sends bytes while the client takes them at a rate.
func (a *answer) send(p []byte, rate int) error {
	for len(p) > 0 {
		n := min(len(p), chunk)
		a.sent += n
		until := a.begun.Add(patience + time.Duration(a.sent)*time.Second/time.Duration(rate))
		_ = a.control.SetWriteDeadline(until) // a writer without deadlines is one in memory
		if _, err := a.to.Write(p[:n]); err != nil {
			return fmt.Errorf("sending an answer: %w", err)
		}
		p = p[n:]
	}
	return nil
}

// giveUp ends the connection.
func (a *answer) giveUp() {
	if a.conn != nil {
		_ = a.conn.Close()
	}
}
