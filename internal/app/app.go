// SPDX-License-Identifier: Apache-2.0

// Package app is the composition root: it turns a configuration into services and runs them.
//
// Everything that the program consists of is listed here by hand. The package refuses to contain
// anything that a test would want without the whole program.
package app

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/teescope/teescope/docs/user"
	"github.com/teescope/teescope/internal/agent/collector"
	"github.com/teescope/teescope/internal/agent/collector/build"
	"github.com/teescope/teescope/internal/agent/collector/sandbox"
	"github.com/teescope/teescope/internal/agent/threads"
	"github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/lib/service"
	"github.com/teescope/teescope/internal/lib/trim"
	"github.com/teescope/teescope/internal/server/dashboards"
	"github.com/teescope/teescope/internal/server/findings"
	"github.com/teescope/teescope/internal/server/httpapi"
	"github.com/teescope/teescope/internal/server/notify"
	"github.com/teescope/teescope/internal/server/prom"
)

// Options are what a program is made of besides its configuration.
type Options struct {
	Config *config.Config
	Build  build.Info
	Binary string // what advice about the binary names, as in os.Args[0]
	Page   fs.FS  // the built page
	Log    *slog.Logger
	Out    io.Writer // for the line that says where the page is
}

// Up runs the agent and the server wired together, until ctx ends.
func Up(ctx context.Context, o Options) error {
	if err := privilege.Check(o.Binary); err != nil {
		return err
	}
	tuneMemory(o.Config.Memory.Limit, serverMemory)
	p := newProgram(o)
	if err := p.server(); err != nil {
		return err
	}
	p.agent()
	p.confine(privilege.Up)
	return p.run(ctx)
}

// Agent runs the collectors and their exposition, until ctx ends.
func Agent(ctx context.Context, o Options) error {
	if err := privilege.Check(o.Binary); err != nil {
		return err
	}
	tuneMemory(0, agentMemory)
	p := newProgram(o)
	p.agent()
	p.confine(privilege.Agent)
	return p.run(ctx)
}

// Server runs storage, queries and the page over what it scrapes from agents, until ctx ends.
func Server(ctx context.Context, o Options) error {
	tuneMemory(o.Config.Memory.Limit, serverMemory)
	p := newProgram(o)
	if err := p.server(); err != nil {
		return err
	}
	p.confine(privilege.Server)
	return p.run(ctx)
}

// program collects the parts of one run.
type program struct {
	Options
	host       string
	collectors []collector.Collector
	own        *prometheus.Registry // of the process itself
	sandbox    *sandbox.Collector   // of what confines the process
	sampled    <-chan struct{}      // closed when the collectors need their privileges no more
	keeps      func() []string      // but for these
	settled    chan struct{}        // closed when that is done
	services   []service.Service
	web        httpapi.Options
	url        func() string // where it listens; nil before run
	hub        *notify.Hub   // who tells of what fires; nil without a database
	exposition http.Handler  // of all of the above, made by run
}

func newProgram(o Options) *program {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost" // the label instance must not be empty
	}
	own := prometheus.NewRegistry()
	own.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	held, none := sandbox.New(), make(chan struct{})
	close(none)
	return &program{
		Options: o, host: host, own: own, collectors: []collector.Collector{build.New(o.Build), held},
		sandbox: held, sampled: none, settled: make(chan struct{}), keeps: func() []string { return nil },
		web: httpapi.Options{Listen: o.Config.Listen, Hostname: host, WebConfig: o.Config.WebConfigFile, Log: o.Log},
	}
}

func (p *program) add(s ...service.Service) { p.services = append(p.services, s...) }

// agent adds the collectors, and those of them that are services.
func (p *program) agent() {
	all, system, crossings := agentCollectors(p.Config, p.Log, p.settled)
	p.collectors, p.sampled, p.keeps = append(p.collectors, all...), system.Sampled(), crossings.Keeps
	for _, c := range all {
		p.add(c) // what of Init, Run and Shutdown it has is found there
	}
	p.web.Threads = threads.New("/proc", system.Processes)
}

// confine adds the service that gives up what only the start needs. It is the last to be added.
func (p *program) confine(role privilege.Role) {
	drop := &dropper{role: role, when: p.sampled, keeps: p.keeps, sandbox: p.sandbox, settled: p.settled, log: p.Log}
	if p.web.API != nil {
		drop.dataDir = p.Config.DataDir
	}
	p.add(drop)
}

// server adds the database, which scrapes this process, the rules on it, and the page.
func (p *program) server() error {
	c := p.Config
	evaluated, err := p.alerting()
	if err != nil {
		return err
	}
	var endpoints []prom.Endpoint
	for _, e := range c.Scrape {
		endpoints = append(endpoints, prom.Endpoint(e))
	}
	db := prom.New(prom.Options{
		DataDir: c.DataDir, Interval: c.Interval, RetentionTime: c.Retention.Time, RetentionSize: c.Retention.Size,
		MemoryLimit: c.Memory.Limit,
		Targets:     c.Targets, Endpoints: endpoints, Rules: evaluated, Self: http.HandlerFunc(p.self), Instance: p.host,
		Version: prom.Version(p.Build), Flags: c.Values(), Registry: p.own, Log: p.Log,
	})
	p.web.API, p.web.Page, p.web.Panels, p.web.Families = db.Handler(), p.Page, dashboards.Serve(), httpapi.Families(user.Metrics)
	p.add(db, evaluated.Hub, db.Reloader())
	if c.Analysis.Enabled {
		p.analyse(db)
	}
	return nil
}

// analyse adds what looks for causes in the database. It is initialised after the database, and stops before it.
func (p *program) analyse(db *prom.Server) {
	c := p.Config
	a := findings.New(findings.Options{
		Source: db.Source(), Name: p.host, Rules: rules.All(), Interval: c.Analysis.Interval, Window: c.Analysis.Window,
		Scrape: c.Interval, Keep: db, File: filepath.Join(c.DataDir, "findings.json"), Tell: tellFindings(p.hub),
		Log: p.Log.With("part", "analysis"),
	})
	p.collectors, p.web.Findings = append(p.collectors, a), a
	p.add(a)
}

// self answers the scrapes of this process. The database begins to ask after run has made the answer.
func (p *program) self(w http.ResponseWriter, r *http.Request) { p.exposition.ServeHTTP(w, r) }

func (p *program) gatherer() *collector.Registry {
	return collector.NewRegistry(p.Log, p.collectors...).Beside(p.own)
}

// run starts everything in this order: the port first, so that readiness can be asked for; last the
// service that lets requests end, so that it is the first to be shut down.
func (p *program) run(ctx context.Context) error {
	gatherer := p.gatherer()
	p.exposition = httpapi.Metrics(gatherer, p.Log)
	group := service.NewGroup(p.Log)
	p.web.Metrics, p.web.Ready = gatherer, group.Ready
	web := httpapi.New(p.web)
	p.url = web.URL
	group.Add(web)
	group.Add(p.services...)
	group.Add(web.Drain(), &announcer{out: p.Out, url: web.URL, page: p.web.API != nil})
	return group.Run(ctx)
}

// announcer tells the user that everything runs. Its Run begins when all is initialised.
type announcer struct {
	out  io.Writer
	url  func() string
	page bool
}

// Name implements service.Service.
func (a *announcer) Name() string { return "announcer" }

// Run implements service.Runner.
func (a *announcer) Run(ctx context.Context) error {
	if a.page {
		fmt.Fprintf(a.out, "teescope is up: open %s in a browser; Ctrl-C stops it.\n", a.url())
	} else {
		fmt.Fprintf(a.out, "teescope agent is up: %s/metrics; Ctrl-C stops it.\n", a.url())
	}
	// The first rules and analyses come after the start, and touch much that is not needed soon again.
	for wait := time.Minute; ; wait = 10 * time.Minute {
		trim.Trim()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}
