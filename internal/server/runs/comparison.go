// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/run"
)

// mostCompared is the number of runs in a comparison.
const mostCompared = 40

// Choice says how runs are compared. The fields mean what the flags of teescope compare mean.
type Choice struct {
	Format   string  // a key of the formats that are served
	PerOp    float64 // 0 for per second
	Phase    string
	By       string
	Baseline string
}

// formats are the content types by format. A comparison in HTML is a page of its own. Its policy allows only its style, and
// the page of this server to show it.
var formats = map[string]string{
	"html": "text/html; charset=utf-8", "json": "application/json", "csv": "text/csv; charset=utf-8",
	"markdown": "text/markdown; charset=utf-8", "text": "text/plain; charset=utf-8",
}

const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox"

// choice reads the parameters of a request.
func choice(q url.Values) (c Choice, err error) {
	c = Choice{Format: q.Get("format"), Phase: q.Get("phase"), By: q.Get("by"), Baseline: q.Get("baseline")}
	if c.Format == "" {
		c.Format = "json"
	}
	if per := q.Get("per_op"); per != "" {
		if c.PerOp, err = strconv.ParseFloat(per, 64); err != nil || !(c.PerOp >= 1e-6 && c.PerOp <= 1e12) {
			return c, errors.New("per_op: use a number of operations, such as 1 or 100")
		}
	}
	switch {
	case formats[c.Format] == "":
		return c, errors.New("format: use html, json, csv, markdown or text")
	case !slices.Contains([]string{"", run.Whole, run.Steady, run.Start}, c.Phase):
		return c, errors.New("phase: use run, steady or start")
	}
	return c, nil
}

// compare answers with a comparison of the runs ?run=ID&run=ID.
func (s *Service) compare(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	how, err := choice(q)
	ids := q["run"]
	if err == nil && (len(ids) < 2 || len(ids) > mostCompared) {
		err = fmt.Errorf("name 2 to %d runs with run=ID", mostCompared)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	var names []string
	for _, id := range ids {
		one, err := s.store.Get(id)
		if err != nil {
			refuse(w, err)
			return
		}
		names = append(names, nameOf(one))
	}
	free := s.alone(w, r)
	if free == nil {
		return
	}
	defer free()
	var b bytes.Buffer
	err = s.opts.Comparer.Compare(&b, names, func(i int) (*run.Run, error) {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		return s.read(ids[i])
	}, how)
	if err != nil {
		jsonapi.Refuse(w, http.StatusUnprocessableEntity, jsonapi.Execution, err)
		return
	}
	w.Header().Set("Content-Type", formats[how.Format])
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(b.Bytes())
}
