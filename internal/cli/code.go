// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/remote"
)

// maxLinked is the number of findings for which the server is requested profiles.
const maxLinked = 20

// link adds to the first findings the flame graphs of profiles that the server keeps. A server without profiles adds none.
func (a Analysis) link(ctx context.Context, server *remote.Server, window time.Duration, found []analysis.Finding) {
	answers := true
	for i := range found[:min(len(found), maxLinked)] {
		f := &found[i]
		f.Code = f.Linked(window, nil, func(workload string, start, end time.Time) bool {
			if !answers {
				return false
			}
			kept, err := a.profiles(ctx, workload, start, end)
			answers = err == nil
			return answers && kept.Profiles > 0 && (f.Instance == "" || f.Instance == kept.Instance)
		})
		if f.Code != nil && !strings.HasPrefix(server.Target(), "unix:") { // nobody can open a link to a socket
			for _, link := range []*string{&f.Code.Profile, &f.Code.Change} {
				if path, query, is := strings.Cut(*link, "?"); is {
					*link = server.URL(path) + "?" + query
				}
			}
		}
	}
}

// kept is a part of the answer about the profiles that a server keeps.
type kept struct {
	Profiles int    `json:"profiles"`
	Instance string `json:"instance"`
}

func (a Analysis) profiles(ctx context.Context, workload string, start, end time.Time) (k kept, err error) {
	q := url.Values{"start": {strconv.FormatInt(start.Unix(), 10)}, "end": {strconv.FormatInt(end.Unix()+1, 10)}}
	if workload != "" {
		q.Set("workload", workload)
	}
	data, _, err := askAPI(ctx, a.Server, a.Access, http.MethodGet, "/api/profiles", q, nil, maxControl)
	if err != nil {
		return k, err
	}
	return k, json.Unmarshal(data, &k)
}
