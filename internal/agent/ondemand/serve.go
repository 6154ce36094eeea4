// SPDX-License-Identifier: Apache-2.0

package ondemand

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/requester"
)

// changeAnswer is a change as the API shows it.
type changeAnswer struct {
	ID          string    `json:"id"`
	Kind        Kind      `json:"kind"`
	Rule        string    `json:"rule,omitempty"`
	Event       string    `json:"event,omitempty"` // of a profile; absent for CPU time
	By          string    `json:"by,omitempty"`    // who requested it, if that is known
	ByVerified  bool      `json:"by_verified"`     // by a password or a certificate; otherwise the request claims it
	Reason      string    `json:"reason,omitempty"`
	Begin       time.Time `json:"begin"`
	End         time.Time `json:"end"` // by the present clock
	SecondsLeft float64   `json:"seconds_left"`
}

// listAnswer is the answer to GET /api/control.
type listAnswer struct {
	Allowed    bool           `json:"allowed"`     // changes are accepted (control.enabled)
	Machine    string         `json:"machine"`     // the machine that the agent watches, as in the label instance of up
	MaxSeconds float64        `json:"max_seconds"` // longest time of a change
	MaxChanges int            `json:"max_changes"`
	Probes     []string       `json:"probes"`  // that can be paused
	Changes    []changeAnswer `json:"changes"` // the changes in effect, in the order in which they were made
}

// changeRequest is the body of POST /api/control.
type changeRequest struct {
	Kind    Kind    `json:"kind"`
	Rule    string  `json:"rule,omitempty"`  // of a watch, or the name of the probe to pause
	Event   string  `json:"event,omitempty"` // of a profile: "cpu", as if absent, or that whose stacks are sampled
	Seconds float64 `json:"seconds"`         // how long
	By      string  `json:"by,omitempty"`    // the requester, if no authentication is configured
	Reason  string  `json:"reason,omitempty"`
}

// cpuTime names the samples of a profile without another event.
const cpuTime = "cpu"

// ServeHTTP answers GET and POST /api/control, and DELETE /api/control/ID. Its caller authenticates clients, bounds bodies and
// refuses requests of other sites.
func (c *Control) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.routes.ServeHTTP(w, r) }

func (c *Control) newRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/control", c.serveList)
	mux.HandleFunc("POST /api/control", c.serveAdd)
	mux.HandleFunc("DELETE /api/control/{id}", c.serveEnd)
	return mux
}

func (c *Control) serveList(w http.ResponseWriter, _ *http.Request) {
	now := time.Now()
	answer := listAnswer{Allowed: c.opts.Allowed, Machine: c.opts.Machine, MaxSeconds: c.opts.Longest.Seconds(), MaxChanges: maxChanges, Probes: []string{}, Changes: []changeAnswer{}}
	if c.opts.Probes != nil {
		answer.Probes = append(answer.Probes, c.opts.Probes()...)
	}
	for _, one := range c.list(now) {
		answer.Changes = append(answer.Changes, one.shown(now))
	}
	jsonapi.Answer(w, answer)
}

// shown is the change for a client. The wall clock may have been set since it began, so the times are computed from the
// present one.
func (one change) shown(now time.Time) changeAnswer {
	at := func(t time.Time) time.Time { return now.Round(0).Add(t.Sub(now)).UTC() }
	s := changeAnswer{
		ID: one.id, Kind: one.kind, Event: one.event, By: one.by, ByVerified: one.verified, Reason: one.reason,
		Begin: at(one.begin), End: at(one.end), SecondsLeft: one.end.Sub(now).Seconds(),
	}
	switch one.kind {
	case Watch:
		s.Rule = one.rule.String()
	case Pause:
		s.Rule = one.probe
	}
	return s
}

func (c *Control) serveAdd(w http.ResponseWriter, r *http.Request) {
	if !c.opts.Allowed { // before the body is read
		c.refuse(w, "", errNotAllowed)
		return
	}
	var asked changeRequest
	if !jsonapi.Read(w, r, "change", &asked) {
		return
	}
	// A number beyond the bounds would overflow a duration.
	length := time.Duration(min(max(asked.Seconds, 0), 1e9) * float64(time.Second))
	if asked.Kind == Profile && asked.Event == cpuTime {
		asked.Event = ""
	}
	by, verified := requester.Of(r, asked.By)
	one, err := c.add(change{kind: asked.Kind, event: asked.Event, reason: asked.Reason, by: by, verified: verified}, asked.Rule, length)
	if err != nil {
		c.refuse(w, asked.Kind, err)
		return
	}
	jsonapi.Answer(w, one.shown(time.Now()))
}

func (c *Control) serveEnd(w http.ResponseWriter, r *http.Request) {
	by, _ := requester.Of(r, "")
	if err := c.end(r.PathValue("id"), by); err != nil {
		c.refuse(w, "", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// refuse answers with the reason why nothing has changed, and counts the refusal if the kind is known.
func (c *Control) refuse(w http.ResponseWriter, kind Kind, err error) {
	if slices.Contains(kinds(), kind) {
		c.mu.Lock()
		c.counts[counted{kind, refused}]++
		c.mu.Unlock()
	}
	switch {
	case errors.Is(err, errNotAllowed):
		jsonapi.Refuse(w, http.StatusForbidden, jsonapi.Forbidden, err)
	case errors.Is(err, errUnknown):
		jsonapi.Refuse(w, http.StatusNotFound, jsonapi.NotFound, err)
	case errors.Is(err, errTooFast):
		jsonapi.Refuse(w, http.StatusTooManyRequests, jsonapi.Execution, err)
	case errors.Is(err, errFull), errors.Is(err, errOther), errors.As(err, new(*lackError)):
		jsonapi.Refuse(w, http.StatusUnprocessableEntity, jsonapi.Execution, err)
	default:
		jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, err)
	}
}
