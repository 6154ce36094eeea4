// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/analysis/history"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/lib/remote"
)

// History queries the history of findings from a server.
type History struct {
	Server string
	Access remote.Access
	history.Question
}

// Ask returns the history.
func (h History) Ask(ctx context.Context) (render.Past, error) {
	q := url.Values{"limit": {strconv.Itoa(cmp.Or(h.Limit, history.UsualLimit))}}
	for name, value := range map[string]string{"rule": h.Rule, "workload": h.Workload, "instance": h.Instance, "from": stamp(h.From), "to": stamp(h.To)} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if h.Changed {
		q.Set("changed", "true")
	}
	data, target, err := askFindings(ctx, h.Server, h.Access, http.MethodGet, "/history", q, nil)
	if err != nil {
		return render.Past{}, err
	}
	var past history.Answer
	if err := decoded(data, target, &past); err != nil {
		return render.Past{}, err
	}
	if past.Schema != history.Schema {
		return render.Past{}, fmt.Errorf("the history of %s has the format %d, and this program reads %d: use the version of the server", target, past.Schema, history.Schema)
	}
	return render.Past{Answer: past, Source: target}, nil
}

// stamp formats a time for a parameter. It is empty for no time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
