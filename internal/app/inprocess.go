// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net/http"
	"slices"

	"github.com/teescope/teescope/internal/agent/collector"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/lib/service"
)

// Client uses an agent in the same process. The agent ends when the client returns.
type Client func(ctx context.Context, agent http.Handler) error

// InProcess runs an agent without a port until its client returns. The handler that the client gets answers /metrics
// and /api/top/threads.
func InProcess(ctx context.Context, o Options, use Client) error {
	if err := privilege.Check(o.Binary); err != nil {
		return err
	}
	tuneMemory(0, agentMemory, agentGC)
	p := newProgram(o)
	p.agent()
	p.confine(privilege.Agent)
	return p.inProcess(ctx, use)
}

func (p *program) inProcess(ctx context.Context, use Client) error {
	p.collectors = slices.DeleteFunc(p.collectors, func(c collector.Collector) bool { return !forTop(c.Name()) })
	group := service.NewGroup(p.Log, p.services...)
	group.Add(&inProcessClient{use: use, agent: p.routes(p.gatherer())})
	return group.Run(ctx)
}

// forTop reports whether teescope top shows metrics of a collector. An in-process agent has no other client.
func forTop(name string) bool { return name != "container" && name != "node" }

// inProcessClient is the service in which the client of an in-process agent runs.
type inProcessClient struct {
	use   Client
	agent http.Handler
}

// Name implements service.Service.
func (c *inProcessClient) Name() string { return "view" }

// Run implements service.Runner. The group ends when it returns.
func (c *inProcessClient) Run(ctx context.Context) error { return c.use(ctx, c.agent) }
