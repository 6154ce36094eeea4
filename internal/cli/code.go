// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
)

// maxLinked is the number of findings for which the server is requested profiles.
const maxLinked = 20

// link adds to the first findings the functions that they are about, and the flame graphs of profiles that the server keeps. A server
// without profiles adds none.
func (a Analysis) link(ctx context.Context, server *remote.Server, window time.Duration, found []analysis.Finding) {
	type asked struct {
		workload   string
		start, end int64
	}
	answers := true
	answered := make(map[asked]kept)
	functions := make(map[codelink.Key]*codelink.Functions)
	for i := range found[:min(len(found), maxLinked)] {
		f := &found[i]
		key, _ := f.Key()
		ours := false
		f.Code = f.Linked(window, nil, func(event codelink.Event, workload string, start, end time.Time) bool {
			of, about := asked{workload, start.Unix(), end.Unix()}, codelink.Key{Workload: workload}
			if _, known := functions[key]; !known && end.Equal(f.LastSeen) {
				about = key
			}
			answer, known := answered[of]
			if answers && (!known || about.Event != "") {
				var err error
				answer, err = a.profiles(ctx, about, start, end)
				if answers = err == nil; answers {
					answered[of], functions[about] = answer, answer.Functions
				}
			}
			ours = answers && (f.Instance == "" || f.Instance == answer.Instance)
			return ours && answer.of(event) > 0
		})
		if f.Code != nil && ours {
			name(f.Code, functions[key])
		}
		if f.Code != nil && !strings.HasPrefix(server.Target(), "unix:") { // a browser cannot open a link to a socket
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

	Events    map[codelink.Event]int `json:"events"`
	Functions *codelink.Functions    `json:"functions"`
}

// of returns the number of profiles of an event.
func (k kept) of(event codelink.Event) int {
	if event == codelink.CPU {
		return k.Profiles
	}
	return k.Events[event]
}

// profiles asks what the server keeps of a workload, and with an event which functions have the most samples of it.
func (a Analysis) profiles(ctx context.Context, of codelink.Key, start, end time.Time) (k kept, err error) {
	q := url.Values{"start": {strconv.FormatInt(start.Unix(), 10)}, "end": {strconv.FormatInt(end.Unix()+1, 10)}}
	for name, value := range map[string]string{"workload": of.Workload, "event": string(of.Event), "reason": string(of.Reason)} {
		if value != "" {
			q.Set(name, value)
		}
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

// named is a profile in a file that the user names.
type named struct {
	file string
	*profile.Profile
}

// readProfiles reads the files that the user names.
func readProfiles(files []string) (all []named, err error) {
	for _, file := range files {
		p, err := read.Open(file, read.Options{Offsets: true})
		if err != nil {
			return nil, fmt.Errorf("--profile: %w", err)
		}
		all = append(all, named{file, p})
	}
	return all, nil
}

// linkNamed adds to findings the functions in files that the user names. It returns a warning for each file that adds none.
func linkNamed(files []named, found []analysis.Finding) (warnings []string) {
	finder := finderOf(found)
	of := make([][]codelink.Key, len(files))
	for i, one := range files {
		if finder != nil {
			of[i] = finder.Add(one.Profile)
		}
	}
	functions := nameAll(finder, found)
	for i, one := range files {
		why := ""
		switch {
		case finder == nil:
			why = "no finding is about code"
		case len(of[i]) == 0:
			why = fmt.Sprintf("its samples are %s, and the findings are about %s", contents(one.Profile), subjects(found))
		case !slices.ContainsFunc(of[i], func(k codelink.Key) bool { return functions[k] != nil }):
			why = fmt.Sprintf("it has fewer than %d samples of what a finding is about: record for longer", codefind.Least)
		}
		if why != "" {
			warnings = append(warnings, fmt.Sprintf("--profile %s adds no function: %s", text.Terminal(one.file), why))
		}
	}
	return warnings
}

// subjects lists what code findings are about.
func subjects(found []analysis.Finding) string {
	const most = 3
	var all []string
	for i := range found {
		if k, about := found[i].Key(); about {
			one := render.Sampled(k.Event, k.Reason)
			if k.Workload != "" {
				one += " of " + text.Short(text.Terminal(k.Workload), 60)
			}
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	s := strings.Join(all[:min(len(all), most)], ", ")
	if len(all) > most {
		s += fmt.Sprintf(" and %d others", len(all)-most)
	}
	return s
}

// contents describes the samples of a profile: their event and the workloads with the most of them.
func contents(p *profile.Profile) string {
	const most = 3
	counts := make(map[string]int64)
	for i := range p.Samples {
		counts[p.Label(&p.Samples[i], profile.Workload)] += p.Samples[i].Values[p.Main]
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	shown := names[:min(len(names), most)]
	for i, name := range shown {
		if shown[i] = text.Short(text.Terminal(name), 60); name == "" {
			shown[i] = "no named workload"
		}
	}
	s := render.Sampled(codefind.EventOf(p), "") + " of " + strings.Join(shown, ", ")
	if len(names) > most {
		s += fmt.Sprintf(" and %d others", len(names)-most)
	}
	return s
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

// nameAll adds what a finder has found, and returns it.
func nameAll(finder *codefind.Finder, found []analysis.Finding) map[codelink.Key]*codelink.Functions {
	if finder == nil {
		return nil
	}
	functions := finder.Functions()
	for i := range found {
		if k, about := found[i].Key(); about && functions[k] != nil {
			name(found[i].Code, functions[k])
		}
	}
	return functions
}
