// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/lib/clientname"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/requester"
	"github.com/teescope/teescope/internal/run"
)

// Path is where the API is. The paths of runs are below it.
const Path = "/api/runs"

// ContentType is the content type of run files. Another site cannot make a browser send it.
const ContentType = "application/octet-stream"

const (
	// maxUploads is the number of files that are received at the same time, one from a client. They are in memory.
	maxUploads = 4
	// patience is how long a request waits for another one that reads run files.
	patience = 10 * time.Second
)

// A Comparer writes a comparison of runs, whose names are different.
type Comparer interface {
	// Compare reads the runs with read, one after the other, and writes the comparison in a format.
	Compare(w io.Writer, names []string, read func(i int) (*run.Run, error), how Choice) error
}

// Options configure a [Service].
type Options struct {
	Dir      string
	Comparer Comparer
	Log      *slog.Logger
}

// Service keeps run files and serves them at [Path].
type Service struct {
	opts    Options
	routes  *http.ServeMux
	store   *store
	reading *clientname.Places // one, of the request that holds the values of a run

	mu      sync.Mutex
	pushing map[string]bool // clients whose file is received
}

// New returns a service that keeps runs in a directory.
func New(o Options) *Service {
	s := &Service{opts: o, routes: http.NewServeMux(), reading: clientname.NewPlaces(1, 1), pushing: map[string]bool{}}
	s.routes.HandleFunc("GET "+Path, s.list)
	s.routes.HandleFunc("POST "+Path, s.push)
	s.routes.HandleFunc("GET "+Path+"/comparison", s.compare)
	s.routes.HandleFunc("GET "+Path+"/{id}", s.file)
	s.routes.HandleFunc("DELETE "+Path+"/{id}", s.remove)
	return s
}

// Name implements service.Service.
func (s *Service) Name() string { return "runs" }

// Init reads which runs are kept. A directory that cannot be read does not stop the program.
func (s *Service) Init(context.Context) (err error) {
	if s.store, err = open(s.opts.Dir); err != nil {
		s.opts.Log.Error("reading the kept runs failed", "err", err)
	}
	return nil
}

// ServeHTTP implements http.Handler after Init. It bounds bodies itself. A change requires a body of [ContentType] or the
// method DELETE, which another site cannot make a browser send.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

func (s *Service) list(w http.ResponseWriter, _ *http.Request) {
	all, err := s.store.List()
	if err != nil {
		refuse(w, err)
		return
	}
	jsonapi.Answer(w, append([]Summary{}, all...))
}

func (s *Service) push(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Content-Type") != ContentType {
		jsonapi.Refuse(w, http.StatusUnsupportedMediaType, jsonapi.BadData, errors.New("the body must be a run file, with the header Content-Type: "+ContentType))
		return
	}
	leave := s.receive(clientname.Of(r.RemoteAddr))
	if leave == nil {
		jsonapi.Refuse(w, http.StatusServiceUnavailable, jsonapi.Timeout, errors.New("another run is being pushed: try again in a moment"))
		return
	}
	defer leave()
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxFile))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		jsonapi.Refuse(w, http.StatusRequestEntityTooLarge, jsonapi.BadData, fmt.Errorf("a run file of a server may have %d MiB", MaxFile>>20))
		return
	}
	if err != nil {
		jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, fmt.Errorf("reading the run file: %w", err))
		return
	}
	free := s.alone(w, r)
	if free == nil {
		return
	}
	defer free()
	by, _ := requester.Proven(r)
	one, err := s.store.Add(data, r.URL.Query().Get("name"), by, time.Now())
	if err != nil {
		refuse(w, err)
		return
	}
	s.opts.Log.Info("a run is kept", "run", one.ID, "name", one.Name, "bytes", one.Size, "by", by)
	jsonapi.Answer(w, one)
}

// receive takes a place for the file of a client. It returns nil if there is none.
func (s *Service) receive(client string) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pushing[client] || len(s.pushing) >= maxUploads {
		return nil
	}
	s.pushing[client] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pushing, client)
	}
}

// alone waits until no other request reads run files. If that takes too long, it answers the request and returns nil.
func (s *Service) alone(w http.ResponseWriter, r *http.Request) (free func()) {
	if free = s.reading.TakeWithin(r.Context(), r.RemoteAddr, patience); free == nil {
		jsonapi.Refuse(w, http.StatusServiceUnavailable, jsonapi.Timeout, errors.New("other runs are being read: try again in a moment"))
	}
	return free
}

func (s *Service) file(w http.ResponseWriter, r *http.Request) {
	one, err := s.store.Get(r.PathValue("id"))
	if err != nil {
		refuse(w, err)
		return
	}
	data, err := s.store.File(one.ID)
	if err != nil {
		jsonapi.Refuse(w, http.StatusInternalServerError, jsonapi.Internal, err)
		return
	}
	w.Header().Set("Content-Type", ContentType)
	w.Header().Set("Content-Disposition", `attachment; filename="`+one.ID+fileEnding+`"`)
	_, _ = w.Write(data) // an error means that the client has disconnected
}

func (s *Service) remove(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if err := s.store.Delete(id); err != nil {
		refuse(w, err)
		return
	}
	by, _ := requester.Proven(r)
	s.opts.Log.Info("a run has been deleted", "run", id, "by", by)
	w.WriteHeader(http.StatusNoContent)
}

// read reads a kept run.
func (s *Service) read(id string) (*run.Run, error) {
	f, err := inputfile.Open(s.store.path(id, fileEnding))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return run.ReadWithin(f, within)
}

// nameOf is the name of a run in a comparison. The ID distinguishes files with the same name.
func nameOf(one Summary) string { return filepath.Join(one.ID, one.Name) }

// refuse answers why a run is not shown or has not changed.
func refuse(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, errUnknown):
		jsonapi.Refuse(w, http.StatusNotFound, jsonapi.NotFound, err)
	case errors.Is(err, errFull):
		jsonapi.Refuse(w, http.StatusUnprocessableEntity, jsonapi.Execution, err)
	case errors.Is(err, errNotStored), errors.Is(err, errUnread):
		jsonapi.Refuse(w, http.StatusInternalServerError, jsonapi.Internal, err)
	default:
		jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, err)
	}
}
