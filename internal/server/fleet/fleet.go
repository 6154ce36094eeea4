// SPDX-License-Identifier: Apache-2.0

// Package fleet answers requests for the state of all machines: /api/fleet.
//
// It does not depend on the database: it reads through a source. internal/analysis/fleet evaluates the figures.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/teescope/teescope/internal/analysis/fleet"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/lib/clientname"
	"github.com/teescope/teescope/internal/lib/jsonapi"
)

const (
	// fresh is how long an answer of the database is used for further requests.
	fresh = 10 * time.Second
	// perQuery is the time limit of each query, and patience that of waiting for the queries of another request.
	perQuery, patience = 15 * time.Second, 15 * time.Second
	// maxTime is the time limit of all queries of a request.
	maxTime = 30 * time.Second
	// The limits of the parameters.
	usualNodes, maxNodes     = 200, 2_000
	usualRows, maxRows       = 50, 500
	usualColumns, maxColumns = 12, 200
	usualWindow              = time.Hour
	maxWindow                = 24 * time.Hour
	// maxName is the maximum length of a name in a request, in bytes.
	maxName = 1_000
)

// Options configure [New].
type Options struct {
	Source query.Source
	// Causes returns the causes of all findings that are not silenced. It is nil without an analysis.
	Causes func() ([]render.Cause, error)
}

// API is the handler of /api/fleet.
type API struct {
	opts  Options
	turn  *clientname.Places // of the request that is being answered
	facts *fleet.Facts
}

// New returns the handler.
func New(o Options) *API { return &API{opts: o, turn: clientname.NewPlaces(1, 1)} }

// wanted are the parameters of a request.
type wanted struct {
	window    time.Duration
	limits    fleet.Limits
	node      string
	pod, onto string
}

// ServeHTTP answers with the fleet. ?node=NAME adds the pods of a machine, and ?pod=NAME&to=NODE what the move of a pod would
// change. ?limit and ?rows bound the lists of machines and all others, and ?columns the machines beside each pod. ?window is the time of the lowest and highest working sets.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	want, err := read(r.URL.Query())
	if err != nil {
		jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, err)
		return
	}
	// A client that sends many requests delays those of another client by one of them.
	leave := a.turn.TakeWithin(r.Context(), r.RemoteAddr, patience)
	if leave == nil {
		refuse(w, errBusy)
		return
	}
	defer leave()
	view, err := a.answer(r.Context(), want)
	if err != nil {
		refuse(w, err)
		return
	}
	jsonapi.Answer(w, view)
}

// errBusy is returned while other requests are being answered.
var errBusy = errors.New("another request for the fleet is being answered: try again in a moment")

func refuse(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, fleet.ErrNoPod), errors.Is(err, fleet.ErrNoNode):
		jsonapi.Refuse(w, http.StatusUnprocessableEntity, jsonapi.Execution, err) // the API exists, so this is not 404
	case errors.Is(err, errBusy), errors.Is(err, context.Canceled):
		jsonapi.Refuse(w, http.StatusServiceUnavailable, jsonapi.Timeout, err)
	default:
		jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, err)
	}
}

// answer computes the answer to a request. The caller has its turn.
func (a *API) answer(ctx context.Context, want wanted) (view fleet.View, err error) {
	facts := a.gather(ctx, want.window)
	if want.node != "" && !facts.Knows(want.node) {
		return view, fmt.Errorf("%w: %.80q", fleet.ErrNoNode, want.node)
	}
	causes, problem := a.causes()
	view = facts.View(want.limits, want.node, causes)
	if problem != "" {
		view.Problems = append(slices.Clone(view.Problems), query.Problem{Kind: query.Absent, Error: problem})
	}
	if want.pod != "" {
		view.WhatIf, err = facts.Move(want.pod, want.onto)
	}
	return view, err
}

// causes returns the causes of findings, or why they are not known.
func (a *API) causes() ([]render.Cause, string) {
	if a.opts.Causes == nil {
		return nil, "findings are not known: the analysis of this server is off"
	}
	causes, err := a.opts.Causes()
	if err != nil {
		return nil, "findings are not known: " + err.Error()
	}
	return causes, ""
}

// gather returns facts that are not older than fresh.
func (a *API) gather(ctx context.Context, window time.Duration) *fleet.Facts {
	if f := a.facts; f != nil && f.Window == window && time.Since(f.At) >= 0 && time.Since(f.At) < fresh {
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	f := fleet.Gather(ctx, a.opts.Source, time.Now(), window, query.Limits{PerQuery: perQuery, Series: fleet.MaxPods})
	a.facts = nil
	if !slices.ContainsFunc(f.Problems, func(p query.Problem) bool { return p.Kind == query.Failed }) {
		a.facts = f // a failure must not last
	}
	return f
}

var parameters = []string{"node", "pod", "to", "limit", "rows", "columns", "window"}

func read(in url.Values) (w wanted, err error) {
	w = wanted{window: usualWindow, limits: fleet.Limits{Nodes: usualNodes, Rows: usualRows, Columns: usualColumns}, node: in.Get("node"), pod: in.Get("pod"), onto: in.Get("to")}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		switch {
		case !slices.Contains(parameters, name):
			return w, fmt.Errorf("there is no parameter %.40q: use %s", name, strings.Join(parameters, ", "))
		case len(in.Get(name)) > maxName:
			return w, fmt.Errorf("%s has %d bytes; the maximum is %d", name, len(in.Get(name)), maxName)
		}
	}
	if (w.pod == "") != (w.onto == "") {
		return w, errors.New("pod and to belong together: they name a pod and the machine to move it to")
	}
	for name, p := range map[string]struct {
		to   *int
		most int
	}{"limit": {&w.limits.Nodes, maxNodes}, "rows": {&w.limits.Rows, maxRows}, "columns": {&w.limits.Columns, maxColumns}} {
		if s := in.Get(name); s != "" {
			if *p.to, err = strconv.Atoi(s); err != nil || *p.to < 1 || *p.to > p.most {
				return w, fmt.Errorf("%s=%.40q: use a number from 1 to %d", name, s, p.most)
			}
		}
	}
	if s := in.Get("window"); s != "" {
		d, err := model.ParseDuration(s)
		if w.window = time.Duration(d); err != nil || w.window < time.Minute || w.window > maxWindow {
			return w, fmt.Errorf("window=%.40q: use a duration from 1m to 1d", s)
		}
	}
	return w, nil
}
