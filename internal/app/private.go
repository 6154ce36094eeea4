// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net/http"
	"slices"

	"github.com/teescope/teescope/internal/agent/collector"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/lib/service"
	"github.com/teescope/teescope/internal/server/httpapi"
)

// Client is what uses an agent in the same process. The agent ends when it returns.
type Client func(ctx context.Context, agent http.Handler) error

// Private runs an agent that listens nowhere for as long as a client uses it. The handler that the
// client gets answers /metrics and /api/top/threads.
func Private(ctx context.Context, o Options, use Client) error {
	if err := privilege.Check(o.Binary); err != nil {
		return err
	}
	tuneMemory(0, agentMemory)
	p := newProgram(o)
	p.agent()
	p.confine(privilege.Agent)
	return p.private(ctx, use)
}

func (p *program) private(ctx context.Context, use Client) error {
	p.collectors = slices.DeleteFunc(p.collectors, func(c collector.Collector) bool { return !forTop(c.Name()) })
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", httpapi.Metrics(p.gatherer(), p.Log))
	mux.Handle("GET /api/top/threads", p.web.Threads)
	group := service.NewGroup(p.Log, p.services...)
	group.Add(&guest{use: use, agent: mux})
	return group.Run(ctx)
}

// forTop tells whether teescope top shows something of a collector. Nobody else asks a private agent.
func forTop(name string) bool { return name != "container" && name != "node" }

// guest is the service in which the client of a private agent runs.
type guest struct {
	use   Client
	agent http.Handler
}

// Name implements service.Service.
func (g *guest) Name() string { return "view" }

// Run implements service.Runner. Its end is that of the group.
func (g *guest) Run(ctx context.Context) error { return g.use(ctx, g.agent) }
