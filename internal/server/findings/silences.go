// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/analysis/silence"
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
	answer(w, shown)
}

// addSilence stores a silence and answers with its ID. It requires a JSON body, which another site cannot make a browser
// send.
func (a *Analyst) addSilence(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "bad_data", errors.New("the body must be JSON, with the header Content-Type: application/json"))
		return
	}
	one, err := readSilence(r.Body)
	if err == nil {
		err = a.knows(one)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "bad_data", err)
		return
	}
	if user, _, ok := r.BasicAuth(); ok && one.CreatedBy == "" {
		one.CreatedBy = user
	}
	if one, err = a.silences.Add(one, time.Now()); err != nil {
		refuseChange(w, err)
		return
	}
	a.opts.Log.Info("findings are silenced", "silence", one.ID, "kind", string(one.Kind), "matchers", fmt.Sprint(one.Matchers), "until", one.EndsAt,
		"by", one.CreatedBy, "comment", one.Comment)
	a.tell()
	answer(w, map[string]string{"silenceID": one.ID})
}

// readSilence reads one silence. A member that it does not have is an error, because it is probably misspelled.
func readSilence(body io.Reader) (silence.Silence, error) {
	var one silence.Silence
	in := json.NewDecoder(body)
	in.DisallowUnknownFields()
	if err := in.Decode(&one); err != nil {
		return one, fmt.Errorf("the body is not a silence: %w", err)
	}
	if in.More() {
		return one, errors.New("the body has more than one silence")
	}
	if one.ID != "" {
		return one, errors.New("the body has an id: a silence cannot be changed; end it and make another one")
	}
	return one, nil
}

// knows returns an error for a rule that does not exist. Its silence would cover nothing.
func (a *Analyst) knows(one silence.Silence) error {
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
	a.opts.Log.Info("a silence has been ended", "silence", id)
	a.tell()
	w.WriteHeader(http.StatusNoContent)
}

// refuseChange answers why the silences have not changed.
func refuseChange(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, silence.ErrUnknown):
		refuse(w, http.StatusNotFound, "not_found", err)
	case errors.Is(err, silence.ErrFull):
		refuse(w, http.StatusUnprocessableEntity, "execution", err)
	case errors.Is(err, silence.ErrNotStored):
		refuse(w, http.StatusInternalServerError, "internal", err)
	default:
		refuse(w, http.StatusBadRequest, "bad_data", err)
	}
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(value) // the only error is a client that disconnected
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
