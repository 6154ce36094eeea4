// SPDX-License-Identifier: Apache-2.0

package own

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/requester"
)

// Path is where the API is. The paths of dashboards are below it.
const Path = "/api/dashboards/own"

// written is the content of a request about a dashboard. The version is the version of the dashboard that it changes.
type written struct {
	Version int     `json:"version"`
	Title   string  `json:"title"`
	Panels  []Panel `json:"panels"`
}

// Service keeps dashboards and serves them at [Path].
type Service struct {
	path   string
	log    *slog.Logger
	routes *http.ServeMux
	store  *store
}

// New returns a service that keeps dashboards in a file.
func New(path string, log *slog.Logger) *Service {
	s := &Service{path: path, log: log, routes: http.NewServeMux()}
	s.routes.HandleFunc("GET "+Path, func(w http.ResponseWriter, _ *http.Request) {
		jsonapi.Answer(w, append([]Dashboard{}, s.store.List()...))
	})
	s.routes.HandleFunc("POST "+Path, s.add)
	s.routes.HandleFunc("GET "+Path+"/{id}", s.one(func(w http.ResponseWriter, d Dashboard) { jsonapi.Answer(w, d) }))
	s.routes.HandleFunc("PUT "+Path+"/{id}", s.change)
	s.routes.HandleFunc("DELETE "+Path+"/{id}", s.remove)
	s.routes.HandleFunc("GET "+Path+"/{id}/grafana", s.one(grafana))
	return s
}

// Name implements service.Service.
func (s *Service) Name() string { return "own dashboards" }

// Init reads the file. A file that cannot be read does not stop the program.
func (s *Service) Init(context.Context) (err error) {
	if s.store, err = open(s.path); err != nil {
		s.log.Error("reading the kept dashboards failed", "err", err)
	}
	return nil
}

// ServeHTTP implements http.Handler after Init. A change requires a JSON body or the method DELETE, which another site cannot
// make a browser send.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// one serves the dashboard {id}.
func (s *Service) one(serve func(http.ResponseWriter, Dashboard)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d, err := s.store.Get(r.PathValue("id"))
		if err != nil {
			refuse(w, err)
			return
		}
		serve(w, d)
	}
}

// grafana answers with a dashboard for Grafana, for download.
func grafana(w http.ResponseWriter, d Dashboard) {
	rendered, err := d.Grafana()
	if err != nil {
		jsonapi.Refuse(w, http.StatusInternalServerError, jsonapi.Internal, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="teescope-own-`+d.ID+`.json"`)
	_, _ = w.Write(rendered) // an error means that the client has disconnected
}

func (s *Service) add(w http.ResponseWriter, r *http.Request) {
	d, ok := read(w, r, "")
	if !ok {
		return
	}
	d, err := s.store.Add(d, time.Now())
	s.answer(w, "a dashboard is kept", d, err)
}

func (s *Service) change(w http.ResponseWriter, r *http.Request) {
	d, ok := read(w, r, r.PathValue("id"))
	if !ok {
		return
	}
	d, err := s.store.Change(d, time.Now())
	s.answer(w, "a dashboard has been changed", d, err)
}

func read(w http.ResponseWriter, r *http.Request, id string) (Dashboard, bool) {
	var body written
	ok := jsonapi.Read(w, r, "dashboard", &body)
	by, _ := requester.Proven(r)
	return Dashboard{ID: id, Version: body.Version, Title: body.Title, Panels: body.Panels, ChangedBy: by}, ok
}

// answer answers with a dashboard that was changed, or with the reason why it was not.
func (s *Service) answer(w http.ResponseWriter, done string, d Dashboard, err error) {
	if err != nil {
		refuse(w, err)
		return
	}
	s.log.Info(done, "dashboard", d.ID, "title", d.Title, "panels", len(d.Panels), "by", d.ChangedBy)
	jsonapi.Answer(w, d)
}

func (s *Service) remove(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if err := s.store.Delete(id); err != nil {
		refuse(w, err)
		return
	}
	by, _ := requester.Proven(r)
	s.log.Info("a dashboard has been deleted", "dashboard", id, "by", by)
	w.WriteHeader(http.StatusNoContent)
}

// refuse answers why a dashboard is not shown or has not changed.
func refuse(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, errUnknown):
		jsonapi.Refuse(w, http.StatusNotFound, jsonapi.NotFound, err)
	case errors.Is(err, errChanged):
		jsonapi.Refuse(w, http.StatusConflict, jsonapi.Execution, err)
	case errors.Is(err, errFull):
		jsonapi.Refuse(w, http.StatusUnprocessableEntity, jsonapi.Execution, err)
	case errors.Is(err, errNotStored):
		jsonapi.Refuse(w, http.StatusInternalServerError, jsonapi.Internal, err)
	default:
		jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, err)
	}
}
