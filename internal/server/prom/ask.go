// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/scrape"
)

// Limits of a question to an agent on another machine.
const (
	askTime   = 10 * time.Second
	mostAsked = 1 << 20 // bytes of an answer
)

// Asker sends requests to agents that a server scrapes.
type Asker struct{ of *Server }

// NewAsker returns an Asker for the agents of a server.
func NewAsker(of *Server) Asker { return Asker{of} }

// Ask sends a body of JSON to a path of the agent that is scraped with this label instance, and returns the body of its
// answer. The connection is the same as for scrapes: scheme, TLS, credentials, no redirects. Only agents are asked, so no
// client can name another address.
func (a Asker) Ask(ctx context.Context, instance, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	to, with, err := a.agentOf(instance)
	if err != nil {
		return nil, err
	}
	to.Path, to.RawQuery = path, ""
	client, err := commonconfig.NewClientFromConfig(with, "agents", commonconfig.WithDialContextFunc(boundedDialer{a.of.self, a.of.memory, a.of.opts}.dial), commonconfig.WithKeepAlivesDisabled())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", clientKey(jobLabel), err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err // without the address, which the label names
		}
		return nil, fmt.Errorf("asking the agent: %w", err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(io.LimitReader(resp.Body, mostAsked+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the agent's answer: %w", err)
	case len(got) > mostAsked:
		return nil, fmt.Errorf("reading the agent's answer: it is larger than %d MiB", mostAsked>>20)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("asking the agent: %s: %s", resp.Status, bytes.TrimSpace(got))
	}
	return got, nil
}

// agentOf returns the address of the agent that is scraped with this label instance, and the client of its scrapes.
func (a Asker) agentOf(instance string) (*url.URL, commonconfig.HTTPClientConfig, error) {
	next, _, reason := a.of.drainer.enter() // the scraper is another one after the database was opened again
	if next == nil {
		return nil, commonconfig.HTTPClientConfig{}, errors.New(reason)
	}
	defer a.of.drainer.active.Done()
	for _, job := range a.of.cfg.ScrapeConfigs {
		if job.JobName != jobLabel && !strings.HasPrefix(job.JobName, jobAgents) {
			continue
		}
		for _, t := range a.of.scraper.TargetsActive()[job.JobName] {
			if instanceOf(t) == instance {
				return t.URL(), job.HTTPClientConfig, nil
			}
		}
	}
	return nil, commonconfig.HTTPClientConfig{}, errors.New("no agent is scraped on that machine")
}

func instanceOf(t *scrape.Target) string { return t.GetValue(model.InstanceLabel) }
