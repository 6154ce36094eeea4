// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/silence"
	"github.com/teescope/teescope/internal/lib/inputfile"
)

// mark marks the findings of an analysis with the silences of a file, or of the server that was queried. If these cannot be
// read, it returns a warning.
func (a Analysis) mark(ctx context.Context, found []analysis.Finding) (marked []analysis.Finding, warning string, err error) {
	switch {
	case a.Silences != "":
		store, err := readSilences(a.Silences)
		if err != nil {
			return nil, "", err
		}
		return markAt(store, found), "", nil
	case a.File != "":
		return found, "", nil
	}
	store, err := a.serverSilences(ctx)
	if err != nil {
		return found, fmt.Sprintf("muted findings are listed, because the silences cannot be read: %v", err), nil
	}
	if store == nil {
		return found, "", nil
	}
	if slices.ContainsFunc(store.List(), func(s silence.Silence) bool { return s.Kind == analysis.Acknowledged }) {
		found = a.dated(ctx, found)
	}
	return markAt(store, found), "", nil
}

// markAt marks findings with the silences at the end of their window.
func markAt(store *silence.Store, found []analysis.Finding) []analysis.Finding {
	if len(found) == 0 {
		return found
	}
	return store.Mark(found, found[0].LastSeen)
}

// readSilences reads silences.json of a data directory, or a list as /api/findings/silences answers it.
func readSilences(name string) (*silence.Store, error) {
	f, err := inputfile.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading the silences: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFindings))
	if err != nil {
		return nil, fmt.Errorf("reading the silences: %w", err)
	}
	store, err := silence.From(data)
	if err != nil {
		return nil, fmt.Errorf("reading the silences in %s: %w", name, err)
	}
	return store, nil
}

// serverSilences returns the silences of the server, or nil if it keeps none, as a Prometheus does.
func (a Analysis) serverSilences(ctx context.Context) (*silence.Store, error) {
	data, _, err := askFindings(ctx, a.Server, a.Access, http.MethodGet, "/silences", nil, nil)
	var refused *refusal
	switch {
	case errors.As(err, &refused) && hasNoSilences(refused.status):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil {
		return nil, nil // not an answer of teescope
	}
	return silence.From(data)
}

// hasNoSilences reports whether a status means that a server does not know silences. The others of 4xx mean that it did not
// answer this client, or not now.
func hasNoSilences(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return status/100 == 4
}

// dated sets the time at which the server first saw each finding, because an acknowledgement covers findings that began
// before it. Without an answer the findings are unchanged.
func (a Analysis) dated(ctx context.Context, found []analysis.Finding) []analysis.Finding {
	data, _, err := askFindings(ctx, a.Server, a.Access, http.MethodGet, "", url.Values{"muted": {"true"}}, nil)
	var newest struct {
		Findings []analysis.Finding `json:"findings"`
	}
	if err != nil || json.Unmarshal(data, &newest) != nil {
		return found
	}
	found = slices.Clone(found)
	for i := range found {
		for _, known := range newest.Findings {
			if known.ID == found[i].ID && known.FirstSeen.Before(found[i].FirstSeen) {
				found[i].FirstSeen = known.FirstSeen
			}
		}
	}
	return found
}
