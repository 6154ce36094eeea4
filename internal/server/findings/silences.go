// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/analysis/silence"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/requester"
	"github.com/teescope/teescope/internal/lib/text"
)

// shownSilence is a silence as the API lists it, in the form of Alertmanager's API v2.
type shownSilence struct {
	silence.Silence
	Status struct {
		State silence.State `json:"state"`
	} `json:"status"`
}

// serveSilences answers with all silences, the newest first.
func (a *Analyst) serveSilences(w http.ResponseWriter, _ *http.Request) {
	now, shown := time.Now(), []shownSilence{}
	for _, s := range a.silences.List() {
		one := shownSilence{Silence: s}
		one.Status.State = s.State(now)
		shown = append(shown, one)
	}
	jsonapi.Answer(w, shown)
}

// addSilence stores a silence and answers with its ID. It requires a JSON body, which another site cannot make a browser
// send.
func (a *Analyst) addSilence(w http.ResponseWriter, r *http.Request) {
	var one silence.Silence
	if !jsonapi.Read(w, r, "silence", &one) {
		return
	}
	if err := a.accepts(one); err != nil {
		jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, err)
		return
	}
	if user, ok := requester.Proven(r); ok {
		one.CreatedBy, one.CreatedByVerified = user, true
	} else {
		one.CreatedByVerified = false // set by the server only
	}
	one, err := a.silences.Add(one, time.Now())
	if err != nil {
		refuseChange(w, err)
		return
	}
	a.opts.Log.Info("findings are silenced", "silence", one.ID, "kind", string(one.Kind), "matchers", fmt.Sprint(one.Matchers), "until", one.EndsAt,
		"by", one.CreatedBy, "by_verified", one.CreatedByVerified, "comment", one.Comment)
	a.tell()
	jsonapi.Answer(w, map[string]string{"silenceID": one.ID})
}

// accepts returns an error for a silence that has an ID, and for a rule that does not exist: the silence would cover nothing.
func (a *Analyst) accepts(one silence.Silence) error {
	if one.ID != "" {
		return errors.New("the body has an id: a silence cannot be changed; end it and make another one")
	}
	names := ruleNames(a.opts.Rules)
	for _, m := range one.Matchers {
		if m.Name != silence.Rule {
			continue
		}
		if err := m.Any(names); err != nil {
			if near := text.Nearest(m.Value, names); near != "" {
				return fmt.Errorf("%w; did you mean %s?", err, near)
			}
			return err
		}
	}
	return nil
}

// endSilence ends a silence now.
func (a *Analyst) endSilence(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if err := a.silences.End(id, time.Now()); err != nil {
		refuseChange(w, err)
		return
	}
	by, _ := requester.Of(r, "")
	a.opts.Log.Info("a silence has been ended", "silence", id, "by", by)
	a.tell()
	w.WriteHeader(http.StatusNoContent)
}

// refuseChange answers why the silences have not changed.
func refuseChange(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, silence.ErrUnknown):
		jsonapi.Refuse(w, http.StatusNotFound, jsonapi.NotFound, err)
	case errors.Is(err, silence.ErrFull):
		jsonapi.Refuse(w, http.StatusUnprocessableEntity, jsonapi.Execution, err)
	case errors.Is(err, silence.ErrNotStored):
		jsonapi.Refuse(w, http.StatusInternalServerError, jsonapi.Internal, err)
	default:
		jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, err)
	}
}

// readBool reads a parameter that is false by default.
func readBool(r *http.Request, name string) (bool, error) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return false, nil
	}
	v, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("%s=%.40q: use true or false", name, s)
	}
	return v, nil
}
