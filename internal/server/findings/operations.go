// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/jsonapi"
)

// maxPer is the largest number of operations that costs are stated for.
const maxPer = 1e9

// operationsAnswer is the answer of /api/operations.
type operationsAnswer struct {
	At         time.Time             `json:"at"` // end of the window
	Window     float64               `json:"window_seconds"`
	Per        float64               `json:"per"` // operations that the costs are of
	Operations []analysis.Operations `json:"operations"`
}

// serveOperations answers with what the operations of workloads cost: those of the newest report, or with ?at=TIME of
// the window that ends then. ?workload=NAME selects one workload, and ?per=100 states the costs of a hundred operations.
func (a *Analyst) serveOperations(w http.ResponseWriter, r *http.Request) {
	per := 1.0
	if text := r.URL.Query().Get("per"); text != "" {
		var err error
		if per, err = strconv.ParseFloat(text, 64); err != nil || !(per > 0 && per <= maxPer) {
			jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, fmt.Errorf("per=%.40q is not a number of operations above 0 and up to 1e9: use for example 100", text))
			return
		}
	}
	report, _, ok := a.reportAt(w, r)
	if !ok {
		return
	}
	answer := operationsAnswer{At: report.At, Window: report.Window, Per: per, Operations: []analysis.Operations{}}
	only := r.URL.Query().Get("workload")
	for _, o := range report.Operations {
		if only == "" || o.Workload == only {
			answer.Operations = append(answer.Operations, multiplied(o, per))
		}
	}
	jsonapi.Answer(w, answer)
}

// multiplied returns the costs of so many operations.
func multiplied(o analysis.Operations, per float64) analysis.Operations {
	if per == 1 {
		return o
	}
	times := func(v *float64) *float64 {
		if v == nil {
			return nil
		}
		m := *v * per
		return &m
	}
	o.Costs = slices.Clone(o.Costs)
	for i := range o.Costs {
		e := &o.Costs[i]
		e.Value, e.Low, e.High = e.Value*per, times(e.Low), times(e.High)
		e.Query = fmt.Sprintf("(%s) * %s", e.Query, strconv.FormatFloat(per, 'g', -1, 64))
	}
	return o
}
