// SPDX-License-Identifier: Apache-2.0

// Package app is the composition root: it turns a configuration into services and runs them.
//
// It explicitly lists all parts of the program. It does not contain code that can be tested without the whole program.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/teescope/teescope/internal/agent/collector"
	"github.com/teescope/teescope/internal/agent/collector/build"
	"github.com/teescope/teescope/internal/agent/collector/sandbox"
	"github.com/teescope/teescope/internal/agent/threads"
	"github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/analysis/threshold"
	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/lib/service"
	"github.com/teescope/teescope/internal/lib/supervisor"
	"github.com/teescope/teescope/internal/lib/systemd"
	"github.com/teescope/teescope/internal/lib/trim"
	"github.com/teescope/teescope/internal/server/dashboards/own"
	"github.com/teescope/teescope/internal/server/findings"
	"github.com/teescope/teescope/internal/server/fleet"
	"github.com/teescope/teescope/internal/server/httpapi"
	"github.com/teescope/teescope/internal/server/local"
	"github.com/teescope/teescope/internal/server/notify"
	"github.com/teescope/teescope/internal/server/profiles"
	"github.com/teescope/teescope/internal/server/prom"
	"github.com/teescope/teescope/internal/server/runs"
	"github.com/teescope/teescope/internal/server/storagealert"
)

// Options are the options of a program.
type Options struct {
	Config *config.Config
	Build  build.Info
	Binary string // the name of the binary in advice, as in os.Args[0]
	Page   fs.FS  // the built page
	// Comparer compares the runs that the server keeps.
	Comparer runs.Comparer
	Log      *slog.Logger
	Out      io.Writer // for the line with the address of the page
}

// Agent runs the collectors and their exposition until ctx ends.
func Agent(ctx context.Context, o Options) error {
	if err := mayWatch(o, "/proc"); err != nil {
		return err
	}
	tuneMemory(0, agentMemory, agentGC)
	p := newProgram(o)
	p.agent()
	p.add(fewThreads{})
	p.confine(privilege.Agent)
	return p.run(ctx)
}

// RecordAgent is an agent with one client, record, which also requests metrics at the beginning and the end of each phase. So it
// has no limit of requests.
func RecordAgent(ctx context.Context, o Options) error {
	if err := privilege.Check(o.Binary); err != nil {
		return err
	}
	tuneMemory(0, agentMemory, agentGC)
	p := newProgram(o)
	p.agent()
	p.add(fewThreads{})
	p.web.Frugal = false
	p.confine(privilege.Agent)
	return p.run(ctx)
}

// Server scrapes agents and runs storage, queries and the page until ctx ends. If another database is configured (query.url), it
// runs the analysis and the page only.
func Server(ctx context.Context, o Options) error {
	tuneMemory(o.Config.Memory.Limit, serverMemory, gcPercent)
	p := newProgram(o)
	compose := p.stores()
	if o.Config.Query.URL != nil {
		compose = p.elsewhere
	}
	if err := compose(); err != nil {
		return err
	}
	p.confine(privilege.Server)
	return p.run(ctx)
}

// program collects the parts of one run.
type program struct {
	Options
	host         string
	collectors   []collector.Collector
	own          *prometheus.Registry // metrics of the process itself
	sandbox      *sandbox.Collector   // reports what confines the process
	started      <-chan struct{}      // closed when the collectors no longer need the privileges of the start
	capabilities func() []string      // the capabilities that they still need
	confined     chan struct{}        // closed when the privileges have been dropped
	services     []service.Service
	web          httpapi.Options
	url          func() string // the address of the page; nil before run
	hub          *notify.Hub   // sends alerts; nil without a database
	status       *prom.Status  // nil in an agent
	stored       bool          // this process writes into the data directory
	exposition   http.Handler  // all metrics of this process; nil before run

	// In up, the link to the other part, and in its server the agent.
	link  *supervisor.Link
	local *local.Agent
}

func newProgram(o Options) *program {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost" // the label instance must not be empty
	}
	own := prometheus.NewRegistry()
	registerProcess(own)
	confinement, nothing := sandbox.New(), make(chan struct{})
	close(nothing)
	return &program{
		Options: o, host: host, own: own, collectors: []collector.Collector{build.New(o.Build), confinement},
		sandbox: confinement, started: nothing, confined: make(chan struct{}), capabilities: func() []string { return nil },
		web: webOptions(o, host),
	}
}

// registerProcess adds the metrics that every process has.
func registerProcess(to prometheus.Registerer) {
	to.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
}

func (p *program) add(s ...service.Service) { p.services = append(p.services, s...) }

// agent adds the collectors.
func (p *program) agent() {
	with := agentCollectors(p.Config, p.Log, p.confined)
	control := onDemand(p.Config, p.host, p.Log, with)
	p.web.Control, p.web.NextProfile, p.web.Manifests = control, with.profiles, with.manifests
	all := slices.Concat(with.collectors, []collector.Collector{control})
	p.collectors, p.started = append(p.collectors, all...), with.system.Sampled()
	p.capabilities = func() []string { return append(with.boundary.Capabilities(), with.system.Capabilities()...) }
	p.add(with.pods)
	for _, c := range all {
		p.add(c) // the group calls the methods among Init, Run and Shutdown that the collector has
	}
	p.web.Frugal = p.Config.Overhead.Budget < 1 // 100% is no limit
	p.web.Threads = threads.New("/proc", with.system.Processes, with.boundary.Transitions.Of)
}

// confine adds the service that drops the privileges of the start. It must be added last.
func (p *program) confine(role privilege.Role) {
	drop := &privilegeDropper{role: role, wanted: p.Config.Sandbox, when: p.started, capabilities: p.capabilities, sandbox: p.sandbox, done: p.confined, link: p.link, log: p.Log}
	if p.stored {
		drop.dataDir = p.Config.DataDir
	}
	p.add(drop)
}

// server adds the database, which scrapes this process too, the rules and the page.
func (p *program) server() error {
	c := p.Config
	evaluated, err := p.alerting()
	if err != nil {
		return err
	}
	var endpoints []prom.Endpoint
	for _, e := range c.Scrape {
		endpoints = append(endpoints, prom.Endpoint{
			Job: e.Job, URL: e.URL, Config: c.ScrapeConfigFile(e.Job),
			Workload: prom.Workload{Name: e.Workload, Machine: e.Machine, Operations: e.Operations, Latency: e.Latency},
		})
	}
	owner, err := privilege.FindAccount(c.Sandbox.User)
	if err != nil {
		return err
	}
	finder := p.discovery()
	db := prom.New(prom.Options{
		DataDir: c.DataDir, Owner: owner.UID, Interval: c.Interval, RetentionTime: c.Retention.Time, RetentionSize: c.Retention.Size,
		MemoryLimit: c.Memory.Limit, Scraped: limitByTargets(c.Memory.Limit),
		Targets: c.Targets, TargetsConfig: agentClients(c), Discovery: finder, RemoteWrite: remoteWrite(c), Endpoints: endpoints, Rules: evaluated, Self: http.HandlerFunc(p.self), Instance: p.host, Agent: p.link != nil,
		Version: prom.Version(p.Build), Flags: c.Values(), Registry: p.own, Log: p.Log,
	})
	p.status, p.stored = db.Status(), true
	stored := storagealert.New(storagealert.Options{State: p.status.Storage, Hub: evaluated.Hub, Instance: p.host})
	p.collectors = append(p.collectors, stored)
	p.page(db.Handler())
	p.collectors = append(p.collectors, prom.NewTargets(db))
	kept := own.New(filepath.Join(c.DataDir, "dashboards.json"), p.Log)
	pushed := runs.New(runs.Options{Dir: filepath.Join(c.DataDir, prom.RunsDir), Comparer: p.Comparer, Log: p.Log})
	p.web.Own, p.web.Runs = kept, pushed
	p.add(db, evaluated.Hub, db.Reloader(), stored, kept, pushed)
	profiled := p.profiles()
	p.cluster()
	p.web.Fleet = fleet.New(fleet.Options{Source: db.Source()})
	if !c.Analysis.Enabled {
		return nil
	}
	analysed := findings.Options{
		Source: db.Source().While(p.status.Stores), Name: p.host, Scrape: c.Interval, Keep: db, File: filepath.Join(c.DataDir, "findings.json"),
		SilenceFile: filepath.Join(c.DataDir, "silences.json"), HistoryFile: filepath.Join(c.DataDir, "findings-history.jsonl"), Tell: sendFindings(p.hub), Profiles: profiled,
	}
	if p.local != nil {
		analysed.Threads = p.local.Threads
	}
	analysed.Lines = p.lines(db)
	return p.analyse(analysed)
}

// lines returns a function that requests the lines of manifests from agents: from the agent of this machine over the link,
// and from others by the connection of their scrapes.
func (p *program) lines(db *prom.Server) findings.AskLines {
	return func(ctx context.Context, instance string, question []byte) ([]byte, error) {
		switch {
		case instance != "":
			return prom.NewAsker(db).Ask(ctx, instance, "/api/manifest", question)
		case p.local != nil:
			return p.local.Lines(ctx, question)
		}
		return nil, errors.New("no agent of this machine is asked: name the instance")
	}
}

// profiles adds the store of the profiles of this machine's agent. It returns nil without an agent.
func (p *program) profiles() findings.Profiles {
	if p.local == nil {
		return nil
	}
	c := p.Config
	kept := profiles.New(profiles.Options{
		Dir: filepath.Join(c.DataDir, prom.ProfilesDir), Next: p.local.NextProfile, RetentionTime: c.Retention.Time, RetentionSize: c.Retention.Size,
		Instance: p.host, Log: p.Log.With("part", "profiles"),
	})
	p.web.Profiles = kept
	p.add(kept)
	return kept
}

// analyse adds the analysis of a database. It is initialised after the database and stops before it.
func (p *program) analyse(o findings.Options) error {
	c := p.Config
	var err error
	if o.Overrides, err = threshold.ParseAll(c.Analysis.Thresholds, rules.All()); err != nil {
		return fmt.Errorf("analysis.thresholds: %w", err)
	}
	o.Instance, o.Rules, o.Limiter, o.Interval, o.Window = p.host, rules.All(), rules.Limits(), c.Analysis.Interval, c.Analysis.Window
	o.Log = p.Log.With("part", "analysis")
	a := findings.New(o)
	p.collectors, p.web.Findings = append(p.collectors, a), a
	p.web.Fleet = fleet.New(fleet.Options{Source: o.Source, Causes: findings.Causes(a)})
	p.add(a)
	return nil
}

// CheckThreshold checks one value of the key analysis.thresholds.
func CheckThreshold(value string) error {
	_, err := threshold.Parse(value, rules.All())
	return err
}

// self answers the scrapes of this process. The database starts to scrape after run has set the exposition.
func (p *program) self(w http.ResponseWriter, r *http.Request) { p.exposition.ServeHTTP(w, r) }

func (p *program) gatherer() *collector.Registry {
	return collector.NewRegistry(p.Log, p.collectors...).Beside(p.own)
}

// run starts all services. The port comes first, so that readiness can be queried. The service that drains requests
// comes last, so that it is shut down first.
func (p *program) run(ctx context.Context) error {
	gatherer := p.gatherer()
	p.exposition = httpapi.Metrics(gatherer, p.Log)
	group := service.NewGroup(p.Log)
	p.web.Metrics, p.web.Ready, p.web.Hangs = gatherer, group.Ready, gatherer.Hangs
	if p.local != nil {
		both := p.local.With(gatherer, packs(p.Config))
		p.exposition, p.web.Metrics = both.Scraped(), both
		p.web.Hangs = func() error { return errors.Join(gatherer.Hangs(), p.local.Hangs()) }
	}
	if p.status != nil {
		hangs := p.web.Hangs
		p.web.Works, p.web.Hangs = p.status.Stores, func() error { return errors.Join(hangs(), p.status.Hangs()) }
	}
	web := httpapi.New(p.web)
	p.url = web.URL
	group.Add(web)
	group.Add(p.services...)
	manager := systemd.New(systemd.Options{Getenv: os.Getenv, Confined: p.confined, Healthy: web.Healthy, Log: p.Log})
	group.Add(web.Drain(), trimmer{}, &announcer{out: p.Out, url: web.URL, page: p.web.API != nil, sends: p.stored}, manager)
	return group.Run(ctx)
}

// announcer prints that everything runs. The group calls its Run when all services are initialised.
type announcer struct {
	out  io.Writer
	url  func() string
	page bool
	// sends states that samples are sent to receivers only.
	sends bool
}

// Name implements service.Service.
func (a *announcer) Name() string { return "announcer" }

// Run implements service.Runner.
func (a *announcer) Run(ctx context.Context) error {
	switch {
	case a.page:
		fmt.Fprintf(a.out, "teescope is up: open %s in a browser; Ctrl-C stops it.\n", a.url())
	case a.sends:
		fmt.Fprintf(a.out, "teescope is up and sends to the receivers; %s/metrics shows how far; Ctrl-C stops it.\n", a.url())
	default:
		fmt.Fprintf(a.out, "teescope agent is up: %s/metrics; Ctrl-C stops it.\n", a.url())
	}
	<-ctx.Done()
	return nil
}

// trimmer returns memory to the system when all services are initialised, and from then on periodically: the first rules
// and analyses run after the start and touch many pages that are not needed again soon.
type trimmer struct{}

// Name implements service.Service.
func (trimmer) Name() string { return "trimmer" }

// Run implements service.Runner.
func (trimmer) Run(ctx context.Context) error {
	for wait := time.Minute; ; wait = 10 * time.Minute {
		trim.Trim()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}
