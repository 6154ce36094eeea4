// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"fmt"
	"net/http"

	"github.com/teescope/teescope/internal/server/prom/bound"
)

// maxSelectors is the maximum number of match[] parameters. Each is looked up in the index, and all results are in
// memory at once.
const maxSelectors = 100

// boundedRequests refuses requests whose parameters are too large to be parsed.
func boundedRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			refuse(w, http.StatusBadRequest, "bad_data", "reading the parameters: "+err.Error())
			return
		}
		if r.URL.Path == "/api/v1/read" {
			// The memory of an answer to many queries in one request has no limit in Prometheus.
			refuse(w, http.StatusNotImplemented, "unavailable", "teescope does not offer remote read: use /api/v1/query_range")
			return
		}
		if err := boundedParameters(r); err != nil {
			refuse(w, http.StatusBadRequest, "bad_data", err.Error())
			return
		}
		next.ServeHTTP(w, r)
	})
}

func boundedParameters(r *http.Request) error {
	if n := len(r.Form["match[]"]); n > maxSelectors {
		return fmt.Errorf("the request has %d match[] parameters; the maximum is %d: use a regular expression, or send several requests", n, maxSelectors)
	}
	var all int
	for _, name := range []string{"query", "match_target", "match[]"} {
		for _, text := range r.Form[name] {
			if err := bound.Text(text); err != nil {
				return err
			}
			if all += len(text); name == "match[]" && all > bound.MaxText {
				return fmt.Errorf("the match[] parameters have more than %d bytes: send several requests", bound.MaxText)
			}
		}
	}
	switch r.URL.Path {
	case "/api/v1/format_query":
		return bound.Format(r.Form.Get("query"))
	case "/api/v1/parse_query":
		return bound.Tree(r.Form.Get("query"))
	}
	return nil
}

// withDeadline ends each request after the time limit of queries.
func withDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), queryTimeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// boundedMetadata refuses requests for the metadata of all metrics when the answer would take too much memory.
func (s *Server) boundedMetadata(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole := r.URL.Path == "/api/v1/metadata" || r.URL.Path == "/api/v1/targets/metadata"
		if most := s.memory.queryBytes(); whole && r.Form.Get("metric") == "" && s.metadataBytes() > most {
			refuse(w, http.StatusUnprocessableEntity, "execution", fmt.Sprintf(
				"the metadata of all targets may take more than %.0f MiB of memory: ask for one metric with the parameter metric", most/(1<<20)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// metadataBytes returns what an answer with the metadata of all targets takes. Each text exists once for all requests, and
// twice in the answer. A target may expose the same texts as others.
func (s *Server) metadataBytes() float64 {
	const each = 400 // entries of two maps and a slice
	var all float64
	for _, targets := range s.scraper.TargetsActive() {
		for _, t := range targets {
			all += each*float64(t.LengthMetadata()) + copies*float64(t.SizeMetadata())
		}
	}
	return all
}
