// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync"
	"time"

	"github.com/grafana/regexp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/features"
	"github.com/prometheus/prometheus/util/notifications"
	apiv1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/teescope/teescope/internal/lib/quietlog"
)

// never matches no origin, so that pages of other origins cannot read the answers. It must not be nil because the API
// dereferences it for every request with an Origin header.
func never() *regexp.Regexp { return regexp.MustCompile(`[^\s\S]`) }

// newAPI returns the handler of all paths below /api/v1. Administration and all writing are off.
func (s *Server) newAPI(p parser.Parser) http.Handler {
	cfg := *s.cfg
	registry := features.NewRegistry()
	api := apiv1.NewAPI(
		s.engine, &boundedStorage{s.db, s.memory.queryBytes()}, nil, nil, s.db,
		func(context.Context) apiv1.ScrapePoolsRetriever { return s.scraper },
		func(context.Context) apiv1.TargetRetriever { return s.scraper },
		func(context.Context) apiv1.AlertmanagerRetriever { return s.alertmanagers() },
		func() config.Config { return cfg },
		s.opts.Flags,
		// Targets on this host are shown under its name. No target has port 0, the port of this API.
		apiv1.GlobalURLOptions{ListenAddress: ":0", Host: s.opts.Instance, Scheme: "http"},
		func(h http.HandlerFunc) http.HandlerFunc { return h }, // the drainer checks this
		dbStatus{DB: s.db, stats: s.stats}, s.tsdbDir(),
		false,    // administration
		false, 0, // search endpoints, which are experimental
		quietlog.New(s.opts.Log, "api"),
		func(context.Context) apiv1.RulesRetriever { return s.rules },
		0, 0, 0, // remote read, which boundedRequests refuses
		false, // agent mode
		never(),
		s.runtimeInfo,
		&apiv1.PrometheusVersion{
			Version: s.opts.Version.Version, Revision: s.opts.Version.Revision, GoVersion: s.opts.Version.GoVersion,
		},
		func() []notifications.Notification { return []notifications.Notification{} },
		func() (<-chan notifications.Notification, func(), bool) { return nil, nil, false },
		s.metrics, s.metrics,
		nil,
		false, nil, // remote write
		false, false, false, // no OTLP
		false,
		lookbackDelta,
		false, false,
		nil,
		registry,
		apiv1.OpenAPIOptions{IncludePaths: []string{"/none"}}, // documented writes the whole document
		p,
	)
	mux := route.New().WithPrefix("/api/v1")
	api.Register(mux)
	return documented(mux, s.opts)
}

// laterAPI creates the API at its first request. For each API, Prometheus first writes parts of its OpenAPI document, which takes a tenth of
// a second and allocates 38 MB. A server whose data nobody looks at is smaller without it.
type laterAPI struct {
	once    sync.Once
	create  func() http.Handler
	handler http.Handler // nil if it was closed before the first request
}

func (a *laterAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.once.Do(func() { a.handler = a.create() }); a.handler == nil {
		http.Error(w, "teescope is stopping", http.StatusServiceUnavailable)
		return
	}
	a.handler.ServeHTTP(w, r)
}

// close waits until the API is created, if a request has begun it. Otherwise it is never created.
func (a *laterAPI) close() { a.once.Do(func() {}) }

// documented serves the OpenAPI document, which is written when it is first asked for. Writing it allocates 80 MB, which
// would enlarge the heap of a server without such requests.
func documented(api http.Handler, opts Options) http.Handler {
	document := sync.OnceValue(func() *apiv1.OpenAPIBuilder {
		options := apiv1.OpenAPIOptions{Version: opts.Version.Version}
		return apiv1.NewOpenAPIBuilder(options, quietlog.New(opts.Log, "api"))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/openapi.yaml" && r.Method == http.MethodGet {
			document().ServeOpenAPI(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

func (s *Server) runtimeInfo() (apiv1.RuntimeInfo, error) {
	wd, err := os.Getwd()
	if err != nil {
		wd = "" // The directory may have been removed. Nothing here depends on it.
	}
	gogc := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(gogc)
	reloaded, at := s.reloaded()
	retention := model.Duration(s.opts.RetentionTime).String()
	if s.opts.RetentionSize > 0 {
		retention += fmt.Sprintf(" or %dB", s.opts.RetentionSize)
	}
	return apiv1.RuntimeInfo{
		StartTime:           s.born,
		CWD:                 wd,
		Hostname:            s.opts.Instance,
		ServerTime:          time.Now().UTC(),
		ReloadConfigSuccess: reloaded,
		LastConfigTime:      at,
		CorruptionCount:     int64(counter(s.opts.Registry, "prometheus_tsdb_wal_corruptions_total")),
		GoroutineCount:      runtime.NumGoroutine(),
		GOMAXPROCS:          runtime.GOMAXPROCS(0),
		GOMEMLIMIT:          debug.SetMemoryLimit(-1),
		GOGC:                strconv.FormatUint(gogc[0].Value.Uint64(), 10),
		GODEBUG:             os.Getenv("GODEBUG"),
		StorageRetention:    retention,
	}, nil
}

// reloaded reports whether the last reload of the rules succeeded, and when the rules in use were read.
func (s *Server) reloaded() (success bool, at time.Time) {
	if s.ruler == nil {
		return true, s.born
	}
	return s.ruler.reloaded()
}

func (s *Server) alertmanagers() apiv1.AlertmanagerRetriever {
	if s.opts.Rules.Alerts == nil {
		return none{}
	}
	return s.opts.Rules.Alerts.manager
}

// none is the empty set of rules and Alertmanagers.
type none struct{}

// RuleGroups implements apiv1.RulesRetriever.
func (none) RuleGroups() []*rules.Group { return nil }

// AlertingRules implements apiv1.RulesRetriever.
func (none) AlertingRules() []*rules.AlertingRule { return nil }

// Alertmanagers implements apiv1.AlertmanagerRetriever.
func (none) Alertmanagers() []*url.URL { return nil }

// DroppedAlertmanagers implements apiv1.AlertmanagerRetriever.
func (none) DroppedAlertmanagers() []*url.URL { return nil }

// dbStatus adapts the database to the API's interface. Methods that change the database come from the embedded DB. The
// API calls them only when administration is on.
type dbStatus struct {
	*tsdb.DB
	stats *tsdb.DBStats
}

// BlockMetas lists the blocks.
func (d dbStatus) BlockMetas() ([]tsdb.BlockMeta, error) { return d.DB.BlockMetas(), nil }

// Stats counts the series of the head block by label.
func (d dbStatus) Stats(label string, limit int) (*tsdb.Stats, error) {
	return d.Head().Stats(label, limit), nil
}

// WALReplayStatus returns the progress of replaying the write-ahead log.
func (d dbStatus) WALReplayStatus() (tsdb.WALReplayStatus, error) {
	return d.stats.Head.WALReplayStatus.GetWALReplayStatus(), nil
}
