// SPDX-License-Identifier: Apache-2.0

package live

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/machine"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/teelabel"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/condition"
)

// maxAnswered bounds the manifest of an answer in bytes. Larger ones are signed, and their lines are changed in another file.
const maxAnswered = 4 << 20

// maxReason bounds a reason in bytes.
const maxReason = 400

// Server answers which program of Gramine a workload is, with its manifest. It is only for the server of the same machine: a manifest
// may have secrets. It answers one request at a time.
type Server struct {
	machine   Machine
	processes func(workload string) (pids []int, known bool)
	busy      chan struct{} // holds a value while a request is answered
}

// NewServer returns a server. processes returns the processes of a workload, and whether it exists.
func NewServer(m Machine, processes func(workload string) (pids []int, known bool)) *Server {
	return &Server{m, processes, make(chan struct{}, 1)}
}

// ServeHTTP answers ?workload=NAME with an [advise.Program] as JSON, or with 404 if no program of the workload runs in Gramine.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-r.Context().Done():
		return
	}
	name := r.URL.Query().Get("workload")
	pids, known := s.processes(name)
	finder := New(s.machine, nil)
	p, found := finder.gramine(pids)
	if !known || !found {
		http.Error(w, fmt.Sprintf("no process of the workload %q runs in Gramine now", text.Label(name)), http.StatusNotFound)
		return
	}
	finder.Read(&p)
	answer := advise.Program{Live: p.Live, Manifest: p.Manifest, Text: p.Text}
	answer.Live.Workload = name
	answer.Machine = machine.This(condition.Host{Proc: finder.proc, Sys: hostfs.At(s.machine.Sys)})
	switch {
	case p.Err != nil:
		answer.Error = text.Short(text.Label(p.Err.Error()), maxReason)
	case len(p.Text) > maxAnswered:
		answer.Error, answer.Text = fmt.Sprintf("it has more than %d MiB", maxAnswered>>20), nil
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // an error means that the server has ended
}

// gramine returns the first program of Gramine that some of these processes are of.
func (f *Finder) gramine(pids []int) (Program, bool) {
	for _, p := range f.among(pids, 0) {
		if r := teelabel.Runtime(p.Runtime); r == teelabel.GramineSGX || r == teelabel.GramineDirect {
			return p, true
		}
	}
	return Program{}, false
}
