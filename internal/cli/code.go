// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codefind"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
)

// maxLinked is the number of findings for which the server is requested profiles.
const maxLinked = 20

// link adds to the first findings the functions that they are about, and the flame graphs of profiles that the server keeps. A server
// without profiles adds none.
func (a Analysis) link(ctx context.Context, server *remote.Server, window time.Duration, found []analysis.Finding) {
	answers := true
	functions := make(map[codelink.Key]*codelink.Functions)
	for i := range found[:min(len(found), maxLinked)] {
		f := &found[i]
		key, _ := f.Key()
		f.Code = f.Linked(window, nil, func(workload string, start, end time.Time) bool {
			if !answers {
				return false
			}
			event := codelink.Event("")
			if _, known := functions[key]; !known && end.Equal(f.LastSeen) {
				event = key.Event
			}
			kept, err := a.profiles(ctx, event, workload, start, end)
			answers = err == nil
			ours := answers && kept.Profiles > 0 && (f.Instance == "" || f.Instance == kept.Instance)
			if ours && event != "" {
				functions[key] = kept.Functions
			}
			return ours
		})
		if f.Code != nil && f.Code.Profile != "" {
			name(f.Code, functions[key])
		}
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

	Functions *codelink.Functions `json:"functions"`
}

// profiles asks what the server keeps of a workload, and with an event which functions have the most samples of it.
func (a Analysis) profiles(ctx context.Context, event codelink.Event, workload string, start, end time.Time) (k kept, err error) {
	q := url.Values{"start": {strconv.FormatInt(start.Unix(), 10)}, "end": {strconv.FormatInt(end.Unix()+1, 10)}}
	if workload != "" {
		q.Set("workload", workload)
	}
	if event != "" {
		q.Set("event", string(event))
	}
	data, _, err := askAPI(ctx, a.Server, a.Access, http.MethodGet, "/api/profiles", q, nil, maxControl)
	if err != nil {
		return k, err
	}
	return k, json.Unmarshal(data, &k)
}

// name adds the functions that a finding is about.
func name(code *codelink.Code, found *codelink.Functions) {
	code.Functions = found
	code.Lines = render.Functions(code)
}

// linkRecorded adds to findings the functions in the profiles of a run file, of its last repetition: the window is of that one.
func linkRecorded(r *recorded, found []analysis.Finding) (warning string) {
	finder, last := finderOf(found), 0
	if finder == nil {
		return "" // no profile need be read
	}
	for _, one := range r.Profiles {
		last = max(last, one.Repetition)
	}
	for _, one := range r.Profiles {
		if one.Repetition != last || len(one.Data) == 0 {
			continue
		}
		p, err := read.Read(bytes.NewReader(one.Data), read.Options{Offsets: true}, profile.DefaultLimits())
		if err != nil {
			return fmt.Sprintf("the functions that findings are about are not known: the profile of repetition %d: %v", last, err)
		}
		finder.Add(p)
	}
	nameAll(finder, found)
	return ""
}

// linkFiles adds to findings the functions in files that the user names.
func linkFiles(files []string, found []analysis.Finding) error {
	finder := finderOf(found)
	for _, file := range files {
		p, err := read.Open(file, read.Options{Offsets: true})
		if err != nil {
			return fmt.Errorf("--profile: %w", err)
		}
		if finder != nil {
			finder.Add(p)
		}
	}
	nameAll(finder, found)
	return nil
}

// finderOf returns a finder of the functions that findings are about, or nil if they are about none.
func finderOf(found []analysis.Finding) *codefind.Finder {
	var asked []codelink.Key
	for i := range found {
		if k, about := found[i].Key(); about && !slices.Contains(asked, k) && len(asked) < maxLinked {
			asked = append(asked, k)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	return codefind.New(asked, profile.DefaultLimits())
}

// nameAll adds what a finder has found.
func nameAll(finder *codefind.Finder, found []analysis.Finding) {
	if finder == nil {
		return
	}
	functions := finder.Functions()
	for i := range found {
		if k, about := found[i].Key(); about && functions[k] != nil {
			name(found[i].Code, functions[k])
		}
	}
}
