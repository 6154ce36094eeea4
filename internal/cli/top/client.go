// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/teescope/teescope/internal/lib/remote"
)

// Source gives samples.
type Source interface {
	Scrape(ctx context.Context) (*Sample, error)
	// Threads lists the single threads of a workload.
	Threads(ctx context.Context, workload string) (*ThreadList, error)
}

const (
	// maxExposition bounds what is read of an exposition, in bytes. An agent with 128 workloads has half a MiB.
	maxExposition = 64 << 20
	// maxThreads bounds a list of threads, in bytes. An agent lists 256 in 70 KiB.
	maxThreads = 8 << 20
	// askWithin bounds a question: an agent that takes longer is as good as gone.
	askWithin = 5 * time.Second
)

// Client asks an agent over HTTP.
type Client struct {
	server *remote.Server
	http   *http.Client
}

// NewClient makes a client for HOST:PORT, or for a URL, which may have a user, a password and the path
// that a proxy has put before the agent's.
func NewClient(target string, a remote.Access) (*Client, error) {
	s, err := remote.New("--connect", target, a, askWithin)
	if err != nil {
		return nil, err
	}
	s = s.TrimPath("/metrics")
	return &Client{server: s, http: s.Client()}, nil
}

// NewLocal makes a client for an agent in the same process.
func NewLocal(name string, agent http.Handler) *Client {
	s := remote.Local(name, agent, askWithin)
	return &Client{server: s, http: s.Client()}
}

// Target names the agent, for people.
func (c *Client) Target() string { return c.server.Target() }

// get asks once and returns the body of an answer that is one. When is the middle of the time in which
// the agent must have made the answer.
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
	// The agent collects between the question and the first byte of the answer.
	return body, asked.Add(answered.Sub(asked) / 2), nil
}

// Scrape asks the agent for its exposition.
func (c *Client) Scrape(ctx context.Context) (*Sample, error) {
	body, when, err := c.get(ctx, c.server.URL("metrics"), "text/plain;version=0.0.4", maxExposition)
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

// Threads asks the agent for the threads of a workload.
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
