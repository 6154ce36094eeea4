// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/lines"
	"github.com/teescope/teescope/internal/advise/machine"
	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/teelabel"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/condition"
)

// maxAnswered is the maximum size in bytes of a manifest that is read for an answer. Larger manifests are signed, and their lines
// are changed in another file. Parsing a manifest with the shortest keys takes about 75 times its size in memory, and an agent
// has 512 MiB.
const maxAnswered = 1 << 20

// maxReason bounds a reason in bytes.
const maxReason = 400

const (
	// pauseFactor is the ratio of the pause after an answer to the duration of the answer. So clients use at most a twentieth of
	// a processor.
	pauseFactor = 20
	// maxPause is the maximum pause. Processes that answer slowly make an answer take long without using the processor.
	maxPause = time.Minute
	// patience is the maximum time that a request waits for its turn.
	patience = 5 * time.Second
)

// Server answers which lines of the manifest of a program in Gramine to change. It shows no other line, because a manifest may have
// secrets. It answers one request at a time, and pauses in between.
type Server struct {
	machine   Machine
	processes func(workload string) (pids []int, known bool)
	turn      chan time.Time // holds the earliest time of the next answer while none is made
}

// NewServer returns a server. processes returns the processes of a workload, and whether it exists.
func NewServer(m Machine, processes func(workload string) (pids []int, known bool)) *Server {
	turn := make(chan time.Time, 1)
	turn <- time.Time{}
	return &Server{m, processes, turn}
}

// ServeHTTP answers a [lines.Question] as JSON with text for people, or with 404 if no program of the workload runs in Gramine or its
// manifest cannot be read.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q lines.Question
	if !jsonapi.Read(w, r, "question", &q) {
		return
	}
	end, ok := s.begin(r.Context())
	if !ok {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many requests for manifests: try again later", http.StatusServiceUnavailable)
		return
	}
	defer end()
	p, found := s.program(q.Workload)
	if !found {
		http.Error(w, fmt.Sprintf("no process of the workload %q runs in Gramine now", text.Label(text.Cut(q.Workload, maxReason))), http.StatusNotFound)
		return
	}
	said, err := lines.Of(p, q)
	if err != nil {
		http.Error(w, text.Short(text.Label(err.Error()), maxReason), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, said) // an error means that the client has disconnected
}

// begin waits for the turn of a request. The returned function ends it. It returns false if the wait takes too long.
func (s *Server) begin(ctx context.Context) (end func(), ok bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var next time.Time
	select {
	case next = <-s.turn:
	case <-ctx.Done():
		return nil, false
	}
	if wait := time.Until(next); wait > patience || clock.Sleep(ctx, wait) != nil {
		s.turn <- next
		return nil, false
	}
	began := time.Now()
	return func() { s.turn <- time.Now().Add(pause(time.Since(began))) }, true
}

// pause returns the time between an answer that took so long and the next one.
func pause(took time.Duration) time.Duration { return min(pauseFactor*took, maxPause) }

// program reads the Gramine program of a workload.
func (s *Server) program(workload string) (advise.Program, bool) {
	pids, known := s.processes(workload)
	finder := New(s.machine, nil)
	p, found := finder.gramine(pids)
	if !known || !found {
		return advise.Program{}, false
	}
	finder.Read(&p)
	answer := advise.Program{Live: p.Live, Manifest: p.Manifest, Text: p.Text, Gramine: p.Gramine}
	answer.Live.Workload = workload
	answer.Machine = machine.This(condition.Host{Proc: finder.proc, Sys: hostfs.At(s.machine.Sys)})
	switch {
	case p.Err != nil:
		answer.Error = text.Short(text.Label(p.Err.Error()), maxReason)
	case len(p.Text) > maxAnswered:
		answer.Error, answer.Text = fmt.Sprintf("it has more than %d MiB", maxAnswered>>20), nil
	}
	return answer, true
}

// gramine returns the first Gramine program that one of these processes belongs to.
func (f *Finder) gramine(pids []int) (Program, bool) {
	for _, p := range f.among(pids, 0) {
		if r := teelabel.Runtime(p.Runtime); r == teelabel.GramineSGX || r == teelabel.GramineDirect {
			return p, true
		}
	}
	return Program{}, false
}
