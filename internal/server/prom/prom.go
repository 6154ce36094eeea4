// SPDX-License-Identifier: Apache-2.0

// Package prom embeds Prometheus: it scrapes, stores and answers PromQL over the real /api/v1.
//
// It is the only importer of github.com/prometheus/prometheus. It does not depend on metrics of teescope, and does not
// discover targets (package discovery does). It accepts no writes and no administration over HTTP.
package prom

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"
	apiv1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/teescope/teescope/internal/lib/quietlog"
	"github.com/teescope/teescope/internal/server/discovery"
	"github.com/teescope/teescope/internal/server/prom/bound"
)

// Limits of a query. Five million samples take 80 MB. That is enough for a day of 250 series at 5 s, and too little to
// exhaust a small machine.
const (
	maxSamples    = 5_000_000
	queryTimeout  = 30 * time.Second
	lookbackDelta = 5 * time.Minute // Prometheus' own default
)

// Options configure a [Server].
type Options struct {
	DataDir       string // absolute; the database is its subdirectory tsdb
	Owner         int    // the UID of the user that the process becomes; it may own the data directory
	Interval      time.Duration
	RetentionTime time.Duration
	RetentionSize int64 // bytes, 0 is unlimited
	// MemoryLimit is how much memory the process may use, in bytes. Near it, queries and new series are refused. 0 is
	// no limit.
	MemoryLimit int64
	Targets     []string // agents, host:port; https://host:port for those with TLS
	// TargetsConfig are the HTTP clients for Targets and for agents that Discovery finds. The first client whose
	// pattern matches an agent is used for it.
	TargetsConfig []AgentClient
	// Discovery finds more agents while the server runs. It may be nil.
	Discovery   *discovery.Finder
	Endpoints   []Endpoint
	RemoteWrite RemoteWrite
	Rules       RuleOptions
	// Self answers scrapes of this process without a network. With nil, this process is not scraped.
	Self http.Handler
	// Instance is the label instance of Self: the host name.
	Instance string
	// Agent states that Self has the metrics of an agent too.
	Agent   bool
	Version Version
	// Flags are shown by /api/v1/status/flags.
	Flags map[string]string
	// Scraped is called with the number of targets at the start, and when the discovery has found others. It may be nil.
	Scraped func(targets int)
	// Registry receives the metrics of the embedded Prometheus.
	Registry *prometheus.Registry
	Log      *slog.Logger

	// block is how much time a block covers, for tests. 0 is Prometheus' default of two hours.
	block time.Duration
}

// manyTargets is the number of targets that limits assume before a discovery has answered.
const manyTargets = 1000

// targets is the number of targets that share the memory.
func (o *Options) targets() int {
	n := len(o.Targets) + len(o.Endpoints)
	if o.Discovery != nil {
		n += manyTargets
	}
	return n
}

// Endpoint is an application that is scraped besides agents. Job is the job label of its series.
type Endpoint struct {
	Job    string
	URL    *url.URL
	Config string // a file with the HTTP client configuration; may be empty
	// Workload is the workload that the metrics are about.
	Workload Workload
}

// Version is shown by /api/v1/status/buildinfo.
type Version struct {
	Version, Revision, GoVersion string
}

// Server is the embedded Prometheus. It is a service with Init, Run and Shutdown.
type Server struct {
	opts    Options
	born    time.Time
	memory  *memoryLimiter
	drainer *drainer
	stats   *tsdb.DBStats
	health  *health
	damages *damages
	reserve *reserve // nil before Init
	lock    *dirLock
	metrics *registrations
	db      *tsdb.DB
	engine  *boundedEngine
	scraper *scrape.Manager
	remote  *remote.Storage // nil without remote write
	limiter atomic.Pointer[seriesLimiter]
	self    *pipeServer
	cfg     *config.Config
	api     *laterAPI            // nil before open
	ruler   *ruler               // nil evaluates no rules
	rules   apiv1.RulesRetriever // the rules evaluated on this database
	// evaluating ends when rule evaluations must stop querying this database.
	evaluating context.Context
	giveUp     context.CancelFunc
}

// New returns a server. It touches nothing outside the process before Init.
func New(opts Options) *Server {
	if opts.Scraped == nil {
		opts.Scraped = func(int) {}
	}
	s := &Server{
		opts: opts, born: time.Now(), memory: newMemoryLimiter(opts.MemoryLimit, opts.targets()), drainer: newDrainer(), stats: tsdb.NewDBStats(), rules: none{},
		health: newHealth(opts.Log),
	}
	s.damages = newDamages(s.health, opts.Log)
	if opts.Rules.Hub != nil {
		s.ruler = newRuler(opts.Rules, opts.Log)
		s.ruler.current = func() error { return s.health.current(opts.Interval) }
	}
	return s
}

// Name implements service.Service.
func (s *Server) Name() string { return "database" }

// Handler answers all paths below /api/v1. Before Init has ended and after Shutdown has begun, it answers 503 with the
// reason.
func (s *Server) Handler() http.Handler { return s.drainer }

// Init locks the data directory, opens the database, and creates the scraper and the API. Nothing is scraped before
// Run.
func (s *Server) Init(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	if s.ruler != nil {
		if err = s.ruler.load(); err != nil {
			return fmt.Errorf("reading rules:\n%w", err)
		}
		s.opts.Registry.MustRegister(s.ruler.success, s.ruler.at)
	}
	if err = checkDataDir(s.opts.DataDir, s.opts.Owner); err != nil {
		return err
	}
	if s.lock, err = lockDataDir(s.opts.DataDir); err != nil {
		return err
	}
	if err = s.open(); err != nil {
		return err
	}
	s.reserve = newReserve(s.tsdbDir())
	s.health.opened(s.db, s.reserve)
	if ahead := aheadOfClock(s.db); ahead > aheadAtStart {
		return s.rewind(ctx, ahead)
	}
	return nil
}

// open opens the database and creates everything that uses it.
func (s *Server) open() (err error) {
	s.metrics = &registrations{Registry: s.opts.Registry}
	damaged, err := setDamagedAside(s.tsdbDir(), s.opts.Log)
	if err != nil {
		return err
	}
	s.health.setAside(damaged)
	if s.db, err = openDB(s.tsdbDir(), s.opts, s.metrics, s.stats, s.damages); err != nil {
		return err
	}
	if s.reserve != nil {
		s.health.opened(s.db, s.reserve)
	}
	if s.cfg, err = s.config(); err != nil {
		return fmt.Errorf("configuring scrapes: %w", err)
	}
	if s.remote, err = s.opts.RemoteWrite.open(s.db, s.cfg, s.metrics, s.opts.Log); err != nil {
		return err
	}
	s.self = newPipeServer(s.opts.Self)
	if s.scraper, err = s.newScraper(); err != nil {
		return fmt.Errorf("creating the scrape manager: %w", err)
	}
	p := parser.NewParser(parser.Options{})
	s.engine = s.boundedEngine(promql.NewEngine(promql.EngineOpts{
		Logger:               quietlog.New(s.opts.Log, "promql"),
		Reg:                  s.metrics,
		MaxSamples:           s.memory.maxSamples(),
		Timeout:              queryTimeout,
		LookbackDelta:        lookbackDelta,
		EnableAtModifier:     true, // off by default in a library, on in every Prometheus
		EnableNegativeOffset: true, // the same
		NoStepSubqueryIntervalFn: func(int64) int64 {
			return s.opts.Interval.Milliseconds()
		},
		Parser: p,
	}))
	s.evaluating, s.giveUp = context.WithCancel(context.Background())
	if s.ruler != nil {
		s.rules = s.ruler.attach(s)
	}
	s.api = &laterAPI{create: func() http.Handler { return s.newAPI(p) }}
	bounded := boundedRequests(s.memory.guard(s.boundedMetadata(withDeadline(s.api))))
	s.drainer.open(newConcurrencyLimiter(bounded, s.memory.running()))
	return nil
}

func (s *Server) boundedEngine(e *promql.Engine) *boundedEngine {
	limits := bound.Limits{Step: s.opts.Interval, Kept: s.opts.RetentionTime}
	return &boundedEngine{QueryEngine: e, limits: limits, most: s.memory.maxSamples(), bytes: s.memory.queryBytes()}
}

func (s *Server) tsdbDir() string { return filepath.Join(s.opts.DataDir, databaseDir) }

// Shutdown waits for running queries, flushes the database and unlocks the data directory.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drainer.close(ctx, "teescope is stopping")
	return s.release()
}

// release undoes Init.
func (s *Server) release() error {
	err := s.close()
	if s.reserve != nil {
		s.reserve.release()
	}
	if s.lock != nil {
		s.lock.release()
		s.lock = nil
	}
	return err
}

// close closes what open opened, in reverse order.
func (s *Server) close() error {
	if s.api != nil {
		s.api.close() // it may still be created from what is closed here
	}
	if s.giveUp != nil {
		s.giveUp()
	}
	if s.self != nil {
		s.self.close()
	}
	var err error
	if s.remote != nil {
		err = s.remote.Close()
		s.remote = nil
	}
	if s.db != nil {
		var e error
		if p := contained(func() { e = s.db.Close() }); p != nil || e != nil {
			err = errors.Join(err, fmt.Errorf("closing the database: %w", errors.Join(p, e)))
		}
		s.db = nil
	}
	if s.metrics != nil {
		s.metrics.undo()
	}
	return err
}
