// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/teescope/teescope/internal/lib/exposition"
	"github.com/teescope/teescope/internal/lib/remote"
)

// Source provides samples.
type Source interface {
	Scrape(ctx context.Context) (*Sample, error)
	// Threads lists the single threads of a workload.
	Threads(ctx context.Context, workload string) (*ThreadList, error)
	// Toggle switches something off if it is on, or else on for a while, and returns what was done.
	Toggle(ctx context.Context, t toggle) (string, error)
}

const (
	// maxExposition is the maximum size of an exposition, in bytes. An agent with 128 workloads has half a MiB.
	maxExposition = 64 << 20
	// maxThreads is the maximum size of a list of threads, in bytes. An agent lists 256 threads in 70 KiB.
	maxThreads = 8 << 20
	// requestTimeout is the time limit of a request.
	requestTimeout = 5 * time.Second
)

// Client queries an agent over HTTP.
type Client struct {
	server *remote.Server
	http   *http.Client
	begun  map[string]bool // the changes that it has switched on, by ID
}

// NewClient returns a client for HOST:PORT or a URL. The URL may have a user, a password, and a path that a proxy puts
// before the agent's.
func NewClient(target string, a remote.Access) (*Client, error) {
	s, err := remote.New("--connect", target, a, requestTimeout)
	if err != nil {
		return nil, err
	}
	s = s.TrimPath("/metrics")
	return &Client{server: s, http: s.Client()}, nil
}

// NewLocal returns a client for an agent in the same process.
func NewLocal(name string, agent http.Handler) *Client {
	s := remote.Local(name, agent, requestTimeout)
	return &Client{server: s, http: s.Client()}
}

// Target returns the agent's name for display.
func (c *Client) Target() string { return c.server.Target() }

// get sends one request and returns the body of a successful answer. When is the middle of the time in which the agent
// must have made the answer.
func (c *Client) get(ctx context.Context, address, accept string, most int64) (body []byte, when time.Time, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, when, fmt.Errorf("querying %s: %w", c.Target(), err)
	}
	req.Header.Set("Accept", accept)
	asked := time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, when, c.server.Explain(err)
	}
	defer resp.Body.Close()
	answered := time.Now()
	body, err = io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		return nil, when, fmt.Errorf("reading the response of %s: %w", c.Target(), err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, when, c.server.ExplainStatus(resp.StatusCode, body)
	}
	if int64(len(body)) > most {
		return nil, when, fmt.Errorf("the response of %s is larger than %d MiB", c.Target(), most>>20)
	}
	// The agent collects between the request and the first byte of the answer.
	return body, asked.Add(answered.Sub(asked) / 2), nil
}

// Scrape requests the agent's metrics.
func (c *Client) Scrape(ctx context.Context) (*Sample, error) {
	body, when, err := c.get(ctx, c.server.URL("metrics"), exposition.Accept, maxExposition)
	if err != nil {
		return nil, err
	}
	s, err := parseExposition(body)
	if err != nil {
		return nil, fmt.Errorf("%s is not a teescope agent (a teescope server has no workloads of its own: use one of its agents): %w", c.Target(), err)
	}
	s.At = when
	return s, nil
}

// Threads requests the threads of a workload.
func (c *Client) Threads(ctx context.Context, workload string) (*ThreadList, error) {
	address := c.server.URL("api/top/threads") + "?" + url.Values{"workload": {workload}}.Encode()
	body, _, err := c.get(ctx, address, "application/json", maxThreads)
	if err != nil {
		return nil, err
	}
	l, err := parseThreads(body)
	if err != nil {
		return nil, fmt.Errorf("reading the list of threads of %s: %w", c.Target(), err)
	}
	return l, nil
}
