// SPDX-License-Identifier: Apache-2.0

// Package elsewhere passes the page's queries to the API of another Prometheus-compatible database.
//
// It only reads: of a request, it passes on only the paths and parameters that are listed here. Requests are bounded in
// number and time, and answers in bytes. It does not store anything or depend on a metric.
package elsewhere

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/teescope/teescope/internal/lib/clientname"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/promql"
	"github.com/teescope/teescope/internal/lib/remote"
)

const (
	// maxAnswer is the maximum size of an answer, in bytes. The page requests parts that are much smaller.
	maxAnswer = 32 << 20
	// maxComplaint is the maximum size of an answer that is not passed on, in bytes.
	maxComplaint = 4 << 10
	// maxRefusal is how much of a refusal is searched for an unknown function, in bytes. VictoriaMetrics repeats the query before it.
	maxRefusal = 64 << 10
	// maxConcurrent is the maximum number of requests at the same time, of all clients, and maxPerClient that of each. A page
	// makes six.
	maxConcurrent = 12
	maxPerClient  = 6
	// longURL is the size of the parameters in bytes from which they are sent in a body, because servers limit the length of URLs.
	longURL = 4 << 10
)

// prefix begins all paths of the API.
const prefix = "/api/v1/"

// parameters returns the parameters of a path that are passed on, or nil if the path is not passed on. The configuration and
// the flags of a database may contain secrets, so these paths are not passed on.
func parameters(path string) []string {
	switch path {
	case "query":
		return []string{"query", "time", "timeout", "limit"}
	case "query_range":
		return []string{"query", "start", "end", "step", "timeout", "limit"}
	case "format_query":
		return []string{"query"}
	case "series", "labels":
		return []string{"match[]", "start", "end", "limit"}
	case "metadata":
		return []string{"metric", "limit", "limit_per_metric"}
	case "targets":
		return []string{"state"}
	}
	if name, is := strings.CutPrefix(path, "label/"); is {
		if name, is = strings.CutSuffix(name, "/values"); is && name != "" && !strings.ContainsAny(name, "/.%?#") {
			return []string{"match[]", "start", "end", "limit"}
		}
	}
	return nil
}

// mayPost reports whether a path can be asked with POST.
func mayPost(path string) bool {
	switch path {
	case "query", "query_range", "format_query", "series", "labels":
		return true
	}
	return false
}

// Proxy answers below /api/v1 with the answers of another database.
type Proxy struct {
	server *remote.Server
	client *http.Client
	places *clientname.Places
}

// New returns a proxy for a server. It sends no request.
func New(s *remote.Server) *Proxy {
	c := s.Client()
	// A redirect would be followed with credentials of the network that this process is in.
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Proxy{server: s, client: c, places: clientname.NewPlaces(maxConcurrent, maxPerClient)}
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, prefix)
	allowed := parameters(path)
	switch {
	case allowed == nil:
		jsonapi.Refuse(w, http.StatusNotFound, jsonapi.NotFound, fmt.Errorf(
			"%s is not passed on to %s: this server has no database of its own", r.URL.Path, p.server.Target()))
		return
	case r.Method != http.MethodGet && (r.Method != http.MethodPost || !mayPost(path)):
		w.Header().Set("Allow", "GET")
		jsonapi.Refuse(w, http.StatusMethodNotAllowed, jsonapi.BadData, errors.New("this server only reads: use GET"))
		return
	}
	if err := r.ParseForm(); err != nil {
		jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, fmt.Errorf("reading the parameters: %w", err))
		return
	}
	leave := p.places.Take(r.Context(), r.RemoteAddr)
	if leave == nil {
		return
	}
	defer leave()
	params := only(r.Form, allowed)
	for name, value := range promql.Complete() {
		params.Set(name, value)
	}
	resp, err := p.askPortably(r.Context(), path, params)
	if err != nil {
		if r.Context().Err() == nil {
			jsonapi.Refuse(w, http.StatusBadGateway, jsonapi.Execution, p.server.Explain(err))
		}
		return
	}
	defer resp.Body.Close()
	p.answer(w, resp)
}

// only returns the parameters with these names.
func only(all url.Values, names []string) url.Values {
	some := url.Values{}
	for _, name := range names {
		if values := all[name]; len(values) > 0 {
			some[name] = values
		}
	}
	return some
}

// askPortably sends a request, and again if the database does not know a function of the query.
func (p *Proxy) askPortably(ctx context.Context, path string, params url.Values) (*http.Response, error) {
	resp, err := p.ask(ctx, path, params)
	if err != nil || resp.StatusCode != http.StatusUnprocessableEntity && resp.StatusCode != http.StatusBadRequest {
		return resp, err
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // the client gets the same error
	if params.Has("partial_response") && promql.RefusesComplete(string(said)) {
		_ = resp.Body.Close() // nothing was written
		for name := range promql.Complete() {
			params.Del(name)
		}
		return p.askPortably(ctx, path, params)
	}
	if portable, ok := promql.WithoutNative(params.Get("query"), string(said)); ok {
		_ = resp.Body.Close() // nothing was written
		params.Set("query", portable)
		return p.ask(ctx, path, params)
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(said), resp.Body), resp.Body}
	return resp, nil
}

// ask sends a request. It contains only the parameters of the client's request.
func (p *Proxy) ask(ctx context.Context, path string, params url.Values) (*http.Response, error) {
	text, method, target := params.Encode(), http.MethodGet, p.server.URL(prefix+path)
	var body io.Reader = http.NoBody
	if len(text) > longURL && mayPost(path) {
		method, body = http.MethodPost, strings.NewReader(text)
	} else if text != "" {
		target += "?" + text
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("Accept", "application/json")
	return p.client.Do(req)
}

// answer passes on answers of the API. Others may be anything, such as a page that requests a password, so they become an
// error.
func (p *Proxy) answer(w http.ResponseWriter, resp *http.Response) {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	isJSON := err == nil && kind == "application/json"
	switch status := resp.StatusCode; {
	case isJSON && (status == http.StatusOK || status == http.StatusBadRequest || status == http.StatusUnprocessableEntity):
	case status == http.StatusNotFound:
		jsonapi.Refuse(w, http.StatusNotFound, jsonapi.NotFound, fmt.Errorf("%s does not have this", p.server.Target()))
		return
	case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests:
		jsonapi.Refuse(w, http.StatusServiceUnavailable, jsonapi.Timeout, p.complaint(resp))
		return
	default:
		jsonapi.Refuse(w, http.StatusBadGateway, jsonapi.Execution, p.complaint(resp))
		return
	}
	if resp.ContentLength > maxAnswer {
		jsonapi.Refuse(w, http.StatusBadGateway, jsonapi.Execution, errTooLong)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(resp.StatusCode)
	n, err := io.Copy(w, io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil || n > maxAnswer {
		panic(http.ErrAbortHandler) // an incomplete answer must not look complete
	}
}

var errTooLong = fmt.Errorf("the answer is larger than %d MiB: use a shorter time range or fewer series", maxAnswer>>20)

// complaint describes an answer that is not passed on.
func (p *Proxy) complaint(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxComplaint)) // an incomplete body is better than none
	if resp.StatusCode == http.StatusOK {
		return fmt.Errorf("%s is not a Prometheus: its answer begins with %.40q", p.server.Target(), body)
	}
	return p.server.ExplainStatus(resp.StatusCode, body)
}
