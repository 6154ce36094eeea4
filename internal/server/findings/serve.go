// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/lib/clientname"
	"github.com/teescope/teescope/internal/lib/jsonapi"
)

const (
	// maxListed is the maximum number of findings in a response.
	maxListed = 200
	// patience is how long a request waits for the analysis of another request.
	patience = 10 * time.Second
)

// newRoutes returns the handlers of /api/findings and the paths below it.
func (a *Analyst) newRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/findings", a.serveReport)
	mux.HandleFunc("GET /api/operations", a.serveOperations)
	mux.HandleFunc("GET /api/findings/history", func(w http.ResponseWriter, r *http.Request) { a.past.serve(w, r) })
	mux.Handle("GET /api/findings/manifest", advisor{a})
	mux.HandleFunc("GET /api/findings/silences", a.serveSilences)
	mux.HandleFunc("POST /api/findings/silences", a.addSilence)
	mux.HandleFunc("DELETE /api/findings/silences/{id}", a.endSilence)
	return mux
}

// ServeHTTP implements http.Handler for /api/findings and the paths below it, and for /api/operations.
func (a *Analyst) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.routes.ServeHTTP(w, r) }

// serveReport answers with the newest report. With ?at=TIME (RFC 3339, or seconds since 1970) it answers with a report of
// the window that ends at that time. A time of up to an hour in the future stands for now; the report contains the time
// used. Findings that a silence hides are counted, and listed with ?muted=true. The format is
// docs/user/findings.schema.json.
func (a *Analyst) serveReport(w http.ResponseWriter, r *http.Request) {
	all, err := readBool(r, "muted")
	if err != nil {
		jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, err)
		return
	}
	report, now, ok := a.reportAt(w, r)
	if !ok {
		return
	}
	report = report.Silenced(a.silences.Mark(report.Findings, now), all)
	report.Warnings = slices.Concat(report.Warnings, a.damaged)
	report.LeftOut += max(0, len(report.Findings)-maxListed)
	report.Findings = report.Findings[:min(len(report.Findings), maxListed)]
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = report.JSON(w) // the only error is a client that disconnected
}

// reportAt returns the newest report, or with ?at=TIME that of the window that ends then, and the time for which silences
// count. If there is none, it answers the request and returns false.
func (a *Analyst) reportAt(w http.ResponseWriter, r *http.Request) (report render.Report, now time.Time, ok bool) {
	text := r.URL.Query().Get("at")
	now = time.Now()
	report, err := a.Newest()
	if text == "" && err == nil {
		return report, now, true
	}
	at := now
	if text != "" {
		if at, err = jsonapi.Time("at", text); err != nil {
			jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, err)
			return report, now, false
		}
	}
	end, err := alone(r, a.asking)
	if err == nil {
		defer end()
		report, err = a.reportOf(r.Context(), at)
	}
	if err != nil {
		jsonapi.Refuse(w, http.StatusServiceUnavailable, jsonapi.Timeout, err)
		return report, now, false
	}
	return report, report.At, true
}

// alone waits until no other request that takes long is answered. A client that sends many delays those of another client by one of
// them. The caller calls end after its own.
func alone(r *http.Request, turn *clientname.Places) (end func(), err error) {
	if end = turn.TakeWithin(r.Context(), r.RemoteAddr, patience); end == nil {
		return nil, errors.New("another analysis is running: try again in a moment")
	}
	return end, nil
}

// reportOf runs an analysis on request. Only one such analysis runs at a time: see alone.
func (a *Analyst) reportOf(ctx context.Context, at time.Time) (render.Report, error) {
	result, err := a.evaluate(ctx, at, maxRequest, nil)
	if err != nil {
		return render.Report{}, err
	}
	a.date(result.Findings)
	code := newCode(a.opts)
	code.look(ctx, result)
	code.linked(result.Findings)
	return render.New(a.opts.Name, result, 0, nil), nil
}

// date sets the time when each known finding was first seen.
func (a *Analyst) date(found []analysis.Finding) {
	first := map[string][]analysis.Finding{}
	for _, f := range a.ledger.Open() {
		first[f.ID] = append(first[f.ID], f)
	}
	for _, e := range a.ledger.Closed() {
		first[e.ID] = append(first[e.ID], e.Finding)
	}
	for i := range found {
		for _, known := range first[found[i].ID] {
			// The requested time may be between two analyses, and so a little later than the finding was last seen.
			if at := found[i].LastSeen; !known.FirstSeen.After(at) && !at.After(known.LastSeen.Add(2*a.opts.Window)) {
				found[i].FirstSeen = known.FirstSeen
			}
		}
	}
}

// Causes returns a function that groups the findings of the newest report that no silence hides by their causes.
func Causes(a *Analyst) func() ([]render.Cause, error) {
	return func() ([]render.Cause, error) {
		report, err := a.Newest()
		if err != nil {
			return nil, err
		}
		listed, _ := analysis.Listed(a.silences.Mark(report.Findings, time.Now()))
		return render.AllCauses(listed), nil
	}
}
