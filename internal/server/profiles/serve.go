// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/lib/clientname"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
	"github.com/teescope/teescope/internal/run/profile/write"
)

const (
	// usualRange is the time range of a query without start and end. It ends now.
	usualRange = time.Hour
	// maxMerged is the number of profiles in a query: 12 hours.
	maxMerged = 720
	// maxMergedBytes limits the stacks and names of all of them, without what is written.
	maxMergedBytes = 128 << 20
	maxLabels      = 16 // of a query
	// patience is how long a query may take, and wait for another one.
	patience = 30 * time.Second
)

func (s *Store) newRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/profiles", s.serveList)
	mux.HandleFunc("GET /api/profiles/merged", s.serveMerged)
	mux.HandleFunc("GET /api/profiles/tree", s.serveTree)
	mux.HandleFunc("GET /api/profiles/threads", s.serveThreads)
	mux.HandleFunc("POST /api/profiles/tree", s.serveOpened(openedTree))
	mux.HandleFunc("POST /api/profiles/threads", s.serveOpened(openedThreads))
	return mux
}

// ServeHTTP answers GET /api/profiles and below.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// keptProfiles is the answer to GET /api/profiles: the profiles that share time with the asked interval, and have a sample of the asked
// workload. All figures except Events are of profiles of CPU time.
type keptProfiles struct {
	Profiles int       `json:"profiles"`
	Instance string    `json:"instance"` // of the machine that they are of
	Bytes    int64     `json:"bytes"`
	First    time.Time `json:"first,omitzero"` // beginning of the first one
	Last     time.Time `json:"last,omitzero"`  // end of the last one
	Limit    int64     `json:"limit_bytes"`    // for all that are kept
	// Events are the numbers of profiles of other events. With a workload, only the last maxRead of each are counted.
	Events map[codelink.Event]int `json:"events,omitempty"`
	// Functions are those with the most samples of an event, if the request names one.
	Functions *codelink.Functions `json:"functions,omitempty"`
}

func (s *Store) serveList(w http.ResponseWriter, r *http.Request) {
	start, end, err := interval(r.URL.Query(), "")
	if err != nil {
		jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, err)
		return
	}
	event, err := readEvent(r.URL.Query())
	if err != nil {
		jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, err)
		return
	}
	k, entries := keptProfiles{Limit: s.most, Instance: s.opts.Instance, Events: map[codelink.Event]int{}}, s.between(codelink.CPU, start, end)
	workload := r.URL.Query().Get("workload")
	if workload != "" && len(entries) > maxRead {
		jsonapi.Refuse(w, http.StatusUnprocessableEntity, jsonapi.Execution, fmt.Errorf(
			"the time range has %d profiles; the maximum with a workload is %d: use a shorter range", len(entries), maxRead))
		return
	}
	entries = having(r.Context(), s, workload, entries)
	for _, other := range codelink.Events()[1:] {
		if n := len(having(r.Context(), s, workload, s.between(other, start, end))); n > 0 {
			k.Events[other] = n
		}
	}
	for _, e := range entries {
		if k.Profiles == 0 {
			k.First = e.begin.UTC()
		}
		if e.end.After(k.Last) {
			k.Last = e.end.UTC()
		}
		k.Profiles, k.Bytes = k.Profiles+1, k.Bytes+e.size
	}
	if r.URL.Query().Has("event") && k.Profiles+len(k.Events) > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		key := codelink.Key{Event: event, Workload: workload, Reason: codelink.Reason(r.URL.Query().Get("reason"))}
		k.Functions = s.Functions(ctx, []codelink.Key{key}, start, end)[key]
	}
	jsonapi.Answer(w, k)
}

// interval reads the parameters start and end, with a prefix. Without both it is the last hour.
func interval(q url.Values, prefix string) (start, end time.Time, err error) {
	end = time.Now()
	if v := q.Get(prefix + "end"); v != "" {
		if end, err = jsonapi.Time(prefix+"end", v); err != nil {
			return start, end, err
		}
	}
	start = end.Add(-usualRange)
	if v := q.Get(prefix + "start"); v != "" {
		if start, err = jsonapi.Time(prefix+"start", v); err != nil {
			return start, end, err
		}
	}
	if !start.Before(end) {
		return start, end, fmt.Errorf("%sstart is not before %send", prefix, prefix)
	}
	return start, end, nil
}

// readEvent reads the parameter event, which is CPU time by default.
func readEvent(q url.Values) (codelink.Event, error) {
	event := codelink.Event(cmp.Or(q.Get("event"), string(codelink.CPU)))
	if !slices.Contains(codelink.Events(), event) {
		return "", fmt.Errorf("event=%.40q: use one of %v", event, codelink.Events())
	}
	return event, nil
}

// query selects samples: by event, time, workload and labels.
type query struct {
	event      codelink.Event
	value      string // type of the value to show; empty for that of the profiles
	start, end time.Time
	labels     []profile.Label
	times      bool // keep samples of different times apart
}

// readQuery reads the parameters of one side: start, end, workload, and label=KEY:VALUE, which may be repeated.
func readQuery(q url.Values, prefix string) (a query, err error) {
	if a.start, a.end, err = interval(q, prefix); err != nil {
		return a, err
	}
	if a.event, err = readEvent(q); err != nil {
		return a, err
	}
	a.value = q.Get("value")
	if v := q.Get(prefix + "workload"); v != "" {
		a.labels = append(a.labels, profile.Label{Key: profile.Workload, Value: v})
	}
	for _, v := range q[prefix+"label"] {
		key, value, found := strings.Cut(v, ":")
		if !found || key == "" {
			return a, fmt.Errorf("%slabel=%.60q: use KEY:VALUE, such as process:redis-server", prefix, v)
		}
		a.labels = append(a.labels, profile.Label{Key: key, Value: value})
	}
	if len(a.labels) > maxLabels {
		return a, fmt.Errorf("more than %d labels", maxLabels)
	}
	return a, nil
}

// base begins the names of the parameters of the other side of a difference.
const base = "base."

// readBase reads the base of a difference, and reports whether a difference is requested. Parameters that it does not
// name are those of the query.
func readBase(q url.Values, a query) (b query, asked bool, err error) {
	for name := range q {
		asked = asked || strings.HasPrefix(name, base)
	}
	if !asked {
		return b, false, nil
	}
	if b, err = readQuery(q, base); err != nil {
		return b, true, err
	}
	switch {
	case !q.Has(base+"start") && !q.Has(base+"end"):
		b.start, b.end = a.start, a.end
	case !q.Has(base+"start") || !q.Has(base+"end"):
		return b, true, errors.New("give both base.start and base.end, or neither")
	}
	if len(b.labels) == 0 {
		b.labels = a.labels
	}
	return b, true, nil
}

// readSides reads a query and the base of its difference.
func readSides(q url.Values) (a, from query, differs bool, err error) {
	a, err = readQuery(q, "")
	from, differs, err2 := readBase(q, a)
	return a, from, differs, errors.Join(err, err2)
}

// title describes a query.
func (a query) title() string {
	var parts []string
	for _, l := range a.labels {
		parts = append(parts, text.Short(text.Label(l.Key+" "+l.Value), 60))
	}
	if len(parts) == 0 {
		parts = []string{"all workloads"}
	}
	if a.event != codelink.CPU {
		parts = append(parts, string(a.event))
	}
	return fmt.Sprintf("%s, %s to %s UTC", strings.Join(parts, ", "), a.start.UTC().Format("2006-01-02 15:04:05"), a.end.UTC().Format("15:04:05"))
}

// errNone is the error of a query without an answer.
var errNone = errors.New("no profile has a sample of that: profiles.enabled takes samples all the time, and \"teescope control profile\" for a while, also of other events")

// during reports whether a sample was taken in the time of the query, as far as it says when.
func (a query) during(s *profile.Sample) bool {
	return s.At == 0 || a.start.UnixNano() <= s.At && s.At < a.end.UnixNano()
}

// merged adds up the samples of all profiles that share time with the query, and match all its labels. Samples without a time
// count as a whole.
func (s *Store) merged(ctx context.Context, a query) (*profile.Profile, error) {
	entries := s.between(a.event, a.start, a.end)
	if len(entries) > maxMerged {
		return nil, fmt.Errorf("the time range has %d profiles; the maximum is %d: use a shorter range: %w", len(entries), maxMerged, profile.ErrLimit)
	}
	var b *profile.Builder
	skipped, shown := 0, 0
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		part := e.begin.Before(a.start) || e.end.After(a.end)
		p, err := read.Open(filepath.Join(s.opts.Dir, e.name()), read.Options{Times: part || a.times})
		if err != nil {
			skipped++ // it was removed meanwhile, or the disk has lost it
			continue
		}
		if b == nil {
			b = profile.NewBuilder("pprof", p.Values, limits())
			b.Times, shown = a.times, p.Main
		}
		switch err := b.Merge(p, func(one *profile.Sample) bool { return a.during(one) && matches(p, one, a.labels) }); {
		case errors.Is(err, profile.ErrValues):
			skipped++
		case err != nil:
			return nil, err
		}
	}
	if b == nil {
		return nil, errNone
	}
	b.Note(fmt.Sprintf("profiles of the agent: %d", len(entries)-skipped))
	if skipped > 0 {
		b.Note(fmt.Sprintf("%d further profiles could not be read, or have samples of another event", skipped))
	}
	p := b.Profile()
	if len(p.Samples) == 0 {
		return nil, errNone
	}
	p.Main = shown
	return p, a.show(p)
}

// show chooses the value of a profile that the query asks for.
func (a query) show(p *profile.Profile) error {
	if a.value == "" || p.Select(a.value) {
		return nil
	}
	return invalid{fmt.Errorf("value=%.40q: the samples have %v", a.value, p.Values)}
}

// sides returns the profile of a query and, for a difference, that of its base, and a title for both.
func (s *Store) sides(ctx context.Context, a, from query, differs bool) (p, before *profile.Profile, title string, err error) {
	if p, err = s.merged(ctx, a); err != nil || !differs {
		return p, nil, a.title(), err
	}
	if before, err = s.merged(ctx, from); err != nil {
		err = fmt.Errorf("base: %w", err)
	}
	return p, before, from.title() + " (A); " + a.title() + " (B)", err
}

// limits are the limits of a query. A server has less memory than a command that merges files.
func limits() profile.Limits {
	l := profile.DefaultLimits()
	l.Bytes = maxMergedBytes
	return l
}

func matches(p *profile.Profile, s *profile.Sample, labels []profile.Label) bool {
	for _, l := range labels {
		if p.Label(s, l.Key) != l.Value {
			return false
		}
	}
	return true
}

// serveMerged answers with one profile in the requested format, by default pprof. With parameters that begin with
// "base." the answer is a flame graph of the difference from the base.
func (s *Store) serveMerged(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	name := cmp.Or(q.Get("format"), "pprof")
	a, from, differs, err := readSides(q)
	format, err2 := write.Choose(name, "")
	if differs && !write.Graph(name) {
		err2 = fmt.Errorf("format=%.60q: for a difference use svg or html", name)
	}
	switch v := q.Get("times"); {
	case v == "true" && format.Times:
		a.times = true
	case v == "true":
		err2 = cmp.Or(err2, errors.New("times=true: use the format pprof or otlp"))
	case v != "" && v != "false":
		err2 = cmp.Or(err2, fmt.Errorf("times=%.60q: use true or false", v))
	}
	var b bytes.Buffer
	if !s.inTurn(w, r, errors.Join(err, err2), func(ctx context.Context) error {
		p, before, title, err := s.sides(ctx, a, from, differs)
		switch {
		case err != nil:
			return err
		case differs:
			return write.Difference(&b, name, before, p, title)
		}
		return format.Write(&b, p, title)
	}) {
		return
	}
	send(w, name, format.Extensions[0], b.Bytes())
}

// inTurn runs the work for a request while no other query runs, and reports whether it succeeded. Otherwise, or if the parameters were
// wrong, it has refused the request.
func (s *Store) inTurn(w http.ResponseWriter, r *http.Request, wrong error, work func(context.Context) error) bool {
	if wrong != nil {
		refuse(w, invalid{wrong})
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	err := alone(ctx, s.turns, s.queries, r.RemoteAddr, work)
	if err != nil {
		refuse(w, err)
	}
	return err == nil
}

// alone runs the work for the client at an address while no other query runs. A client that sends many requests delays those of another
// client by one of them. The place is free again before the answer is sent: a client may read slowly.
func alone(ctx context.Context, turns *clientname.Places, queries chan struct{}, address string, work func(context.Context) error) error {
	end := turns.Take(ctx, address)
	if end == nil {
		return errBusy
	}
	defer end()
	select {
	case queries <- struct{}{}:
		defer func() { <-queries }()
		return work(ctx)
	case <-ctx.Done():
		return errBusy
	}
}

// errBusy is the error of a query that could not begin.
var errBusy = errors.New("other queries for profiles take long: try again later")

// send sends a written profile.
func send(w http.ResponseWriter, format, extension string, body []byte) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	switch format {
	case "html":
		h.Set("Content-Security-Policy", write.Policy()) // the page's policy forbids inline scripts
		h.Set("Content-Type", "text/html; charset=utf-8")
	default:
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Disposition", `attachment; filename="profile`+extension+`"`)
	}
	_, _ = w.Write(body) // fails only when the client has gone
}

// invalid is an error in a request.
type invalid struct{ error }

func refuse(w http.ResponseWriter, err error) {
	switch {
	case errors.As(err, new(invalid)):
		jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, err)
	case errors.Is(err, errNone):
		jsonapi.Refuse(w, http.StatusNotFound, jsonapi.NotFound, err)
	case errors.Is(err, profile.ErrLimit):
		jsonapi.Refuse(w, http.StatusUnprocessableEntity, jsonapi.Execution, err)
	case errors.Is(err, errSlow): // the rest of the body is not read, so the connection cannot be used again (RFC 9110, 15.5.9)
		w.Header().Set("Connection", "close")
		jsonapi.Refuse(w, http.StatusRequestTimeout, jsonapi.Timeout, err)
	case errors.Is(err, errBusy):
		jsonapi.Refuse(w, http.StatusServiceUnavailable, jsonapi.Timeout, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		jsonapi.Refuse(w, http.StatusServiceUnavailable, jsonapi.Timeout, errors.New("reading the profiles took too long: use a shorter range"))
	default:
		jsonapi.Refuse(w, http.StatusInternalServerError, jsonapi.Internal, err)
	}
}
