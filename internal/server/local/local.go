// SPDX-License-Identifier: Apache-2.0

// Package local connects a server to the agent that watches the same machine in another process.
//
// It adds the agent's metrics to the server's metrics, and forwards requests that only an agent can answer. It does not
// depend on any metric.
package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/packed"
	"github.com/teescope/teescope/internal/lib/requester"
	"github.com/teescope/teescope/internal/lib/supervisor"
)

// Limits of an answer of the agent. Its time is longer than the time limit of the slowest collector. Its size is the same as
// for other agents.
const (
	maxTime = 10 * time.Second
	maxText = 64 << 20
)

// Limits of connections to the agent. Requests of clients have their own: these may be many and slow, and must not delay the
// scrapes and the question whether the agent hangs.
const (
	maxConns   = 8
	maxClients = 4
)

// base is the address of the agent, which only the client below uses.
const base = "http://agent.invalid"

// Agent is a client of the agent.
type Agent struct {
	client  *http.Client
	clients http.RoundTripper // for requests that are passed on
	text    atomic.Int64      // size of the last text of metrics, in bytes
	// spare is the buffer of the last scrape for the next one. A text has a megabyte with 128 workloads. As garbage, it would be a
	// quarter of what a server allocates.
	spare atomic.Pointer[bytes.Buffer]
}

// New returns the agent that dial connects to.
func New(dial func(context.Context) (net.Conn, error)) *Agent {
	over := func(most int) *http.Transport {
		return &http.Transport{
			DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
			DisableCompression:  true,
			MaxConnsPerHost:     most,
			MaxIdleConnsPerHost: 2,
		}
	}
	return &Agent{client: &http.Client{Timeout: maxTime, Transport: over(maxConns)}, clients: over(maxClients)}
}

// answer is an answer of the agent. The body is empty if the agent sent no content.
type answer struct {
	body   []byte
	header http.Header
}

// get returns the body of an answer.
func (a *Agent) get(ctx context.Context, path, accept string) ([]byte, error) {
	got, err := a.do(ctx, path, accept, bufferFor(0))
	return got.body, err
}

// metrics returns the agent's metrics in a format.
func (a *Agent) metrics(ctx context.Context, format expfmt.Format) ([]byte, error) {
	last := a.text.Load()
	body := a.spare.Swap(nil)
	if body == nil || int64(body.Cap()) < last {
		body = bufferFor(last)
	}
	got, err := a.do(ctx, "/metrics", string(format), body)
	if err == nil {
		a.text.Store(int64(len(got.body)))
	}
	return got.body, err
}

// mostSpare is the largest buffer that is kept between two scrapes, in bytes.
const mostSpare = 8 << 20

// keep keeps the buffer of a text that is not used any more for the next one.
func (a *Agent) keep(text []byte) {
	if cap(text) > 0 && cap(text) <= mostSpare {
		a.spare.Store(bytes.NewBuffer(text[:0]))
	}
}

// bufferFor returns an empty buffer for about as many bytes as there were last time. A buffer that grows leaves several times its size
// as garbage, at each scrape.
func bufferFor(last int64) *bytes.Buffer {
	return bytes.NewBuffer(make([]byte, 0, last+last/8+bytes.MinRead))
}

func (a *Agent) do(ctx context.Context, path, accept string, body *bytes.Buffer) (got answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return got, err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	return a.send(req, body)
}

// send sends a request, and reads the answer into an empty buffer.
func (a *Agent) send(req *http.Request, body *bytes.Buffer) (got answer, err error) {
	resp, err := a.client.Do(req)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err // without the address, which is a placeholder
		}
		return got, fmt.Errorf("asking the agent: %w", err)
	}
	defer resp.Body.Close()
	_, err = body.ReadFrom(io.LimitReader(resp.Body, maxText+1))
	switch {
	case err != nil:
		return got, fmt.Errorf("reading the agent's answer: %w", err)
	case body.Len() > maxText:
		return got, fmt.Errorf("reading the agent's answer: it is larger than %d MiB", maxText>>20)
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNoContent:
		return got, fmt.Errorf("asking the agent: %s: %s", resp.Status, bytes.TrimSpace(body.Bytes()))
	}
	return answer{body.Bytes(), resp.Header}, nil
}

// Threads returns the agent's answer about the threads of a workload, as JSON.
func (a *Agent) Threads(ctx context.Context, workload string) ([]byte, error) {
	return a.get(ctx, "/api/top/threads?workload="+url.QueryEscape(workload), "")
}

// Lines asks a question about the manifest of a program in Gramine, as JSON, and returns the agent's text.
func (a *Agent) Lines(ctx context.Context, question []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/api/manifest", bytes.NewReader(question))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	got, err := a.send(req, bufferFor(0))
	return got.body, err
}

// profileHeader has the name of a profile, with which the next one is requested.
const profileHeader = "Teescope-Profile"

// NextProfile returns the oldest profile of the agent that is newer than the named one, and its name, or no data if there is
// none. With an empty name it is the oldest one that the agent has.
func (a *Agent) NextProfile(ctx context.Context, after string) (data []byte, name string, err error) {
	resp, err := a.do(ctx, "/api/profiles/next?after="+url.QueryEscape(after), "", bufferFor(0))
	if err != nil {
		return nil, "", err
	}
	return resp.body, resp.header.Get(profileHeader), nil
}

// maxHealth is the maximum time of an answer about the agent's health.
const maxHealth = 5 * time.Second

// Hangs returns an error when the agent hangs. One that has ended does not hang: it is started again.
func (a *Agent) Hangs() error {
	ctx, cancel := context.WithTimeout(context.Background(), maxHealth)
	defer cancel()
	if _, err := a.get(ctx, "/-/healthy", ""); err != nil && !errors.Is(err, supervisor.ErrNobody) {
		return err
	}
	return nil
}

// Pass passes a request on to the agent, for at most as long as an answer may take.
func (a *Agent) Pass() http.Handler {
	to, _ := url.Parse(base) // a constant
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			requester.Forward(r.Out, r.In)
		},
		Transport: a.clients,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			jsonapi.Refuse(w, http.StatusBadGateway, jsonapi.Execution, fmt.Errorf("asking the agent: %w", err))
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), maxTime)
		defer cancel()
		proxy.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Own are the metrics of this process.
type Own interface {
	prometheus.Gatherer
	WriteText(w io.Writer, format expfmt.Format) error
}

// Both are the metrics of this process and of the agent.
type Both struct {
	agent *Agent
	own   Own
	pack  func(family string) bool // which classic histograms a scrape gets as one line each; nil is none
	text  atomic.Int64             // size of the last text of this process's metrics, in bytes
}

// With adds the agent's metrics to others. A scrape gets the classic histograms that pack selects as one line each: see package
// packed.
func (a *Agent) With(own Own, pack func(family string) bool) *Both {
	return &Both{agent: a, own: own, pack: pack}
}

// WriteText writes all metrics. Without the agent it writes those of this process, and returns an error.
func (b *Both) WriteText(w io.Writer, format expfmt.Format) error {
	agent, own, err := b.texts(context.Background(), format)
	defer b.agent.keep(agent)
	return errors.Join(err, merge(w, agent, own, unchanged))
}

// texts returns the metrics of the agent and of this process. With an error there are those of this process only.
func (b *Both) texts(ctx context.Context, format expfmt.Format) (agent, own []byte, err error) {
	agent, agentErr := b.agent.metrics(ctx, format)
	text := bufferFor(b.text.Load())
	err = b.own.WriteText(text, format)
	b.text.Store(int64(text.Len()))
	return agent, text.Bytes(), errors.Join(agentErr, err)
}

// Gather implements prometheus.Gatherer, like WriteText.
func (b *Both) Gather() ([]*dto.MetricFamily, error) {
	return prometheus.Gatherers{b.own, prometheus.GathererFunc(b.agent.gather)}.Gather()
}

func (a *Agent) gather() ([]*dto.MetricFamily, error) {
	format := expfmt.NewFormat(expfmt.TypeProtoDelim)
	text, err := a.metrics(context.Background(), format)
	if err != nil {
		return nil, err
	}
	var all []*dto.MetricFamily
	for dec := expfmt.NewDecoder(bytes.NewReader(text), format); ; {
		var f dto.MetricFamily
		switch err := dec.Decode(&f); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, fmt.Errorf("reading the agent's answer: %w", err)
		}
		all = append(all, &f)
	}
}

// Scraped serves all metrics, or fails when the agent does not answer: the scrape then shows that it is down.
func (b *Both) Scraped() http.Handler {
	openMetrics, _ := expfmt.NewOpenMetricsFormat(expfmt.OpenMetricsVersion_1_0_0) // fails only for unknown versions
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		format := expfmt.NegotiateAccept(r.Header, openMetrics, expfmt.NewFormat(expfmt.TypeTextPlain))
		agent, own, err := b.texts(r.Context(), format)
		defer b.agent.keep(agent)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", string(format))
		samples := unchanged
		if format.FormatType() == expfmt.TypeOpenMetrics {
			samples = b.packed
		}
		_ = merge(w, agent, own, samples) // fails only when the client has gone
	})
}

// packed returns the samples of a family, with one line for each histogram that the database stores as one series.
func (b *Both) packed(f family) []byte {
	if b.pack == nil || !b.pack(string(f.name)) {
		return f.samples
	}
	return packed.Pack(f.name, f.samples)
}

// Ready is a service that delays the start until the agent is ready, up to a time limit.
type Ready struct {
	agent *Agent
	most  time.Duration
}

// Ready returns the service.
func (a *Agent) Ready(most time.Duration) *Ready { return &Ready{a, most} }

// Name implements service.Service.
func (*Ready) Name() string { return "agent" }

// Init implements service.Initializer. A server without its agent still shows what it has stored.
func (r *Ready) Init(ctx context.Context) error {
	for end := time.Now().Add(r.most); time.Now().Before(end); {
		if _, err := r.agent.get(ctx, "/-/ready", ""); err == nil {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
