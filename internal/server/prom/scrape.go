// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"fmt"
	"maps"
	"time"

	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/scrape"
	"go.yaml.in/yaml/v3"

	"github.com/teescope/teescope/internal/lib/quietlog"
)

// The names of the scrape jobs. Both carry the label job="teescope"; the first has a name of its
// own because Prometheus wants the names of jobs to differ.
const (
	jobSelf  = "teescope-self"
	jobLabel = "teescope"
	// jobEndpoints is the name of the job of all applications; the label job of each is its own.
	jobEndpoints = "teescope-endpoints"
)

// For warmUp the interval is half a second: a chart of a rate needs two samples, and nobody should wait
// for the second one of a 5 s, let alone a minute's, interval. The interval of a target is a label of
// it, so the targets are first handed over with a label of their own and then without; the samples
// are ordinary scrapes with ordinary labels. Appending samples of our own making would have to repeat
// the parsing, the labels, the staleness and the series "up" of the scraper.
const (
	warmUp         = 2250 * time.Millisecond // not a multiple of the interval: the two loops must not meet
	warmUpInterval = 500 * time.Millisecond
)

// spreadAbove is the number of targets from which on scrapes are spread over the interval, as
// Prometheus does. Below it every target is scraped at once when it starts.
const spreadAbove = 20

// Bounds of one scrape of a target over the network, so that a target gone wild cannot fill the
// database or the memory: the scrape fails, and says which of them. A sample is some 150 bytes of text.
const (
	sampleLimit     = 100_000
	bodyLimit       = "16MB"
	labelLimit      = 128
	labelNameLimit  = 512  // bytes
	labelValueLimit = 4096 // bytes
)

// Agents may send more: with as many workloads as can be asked for, 1024, and the time of system calls,
// there is room for 290 samples of each. A workload was seen to have up to 51 system calls, each with a
// count and a time, and 27 other samples, and a container has some 80. All system calls that exist in
// every workload would be 800,000 samples: that is refused.
const (
	agentSampleLimit = 300_000
	agentBodyLimit   = "64MB"
)

// bounded adds the bounds to the configuration of a job. Redirects are not followed: what is asked is
// what the user has named, and not what that points at.
func bounded(job map[string]any, samples int, body string) map[string]any {
	maps.Copy(job, map[string]any{
		"sample_limit":             samples,
		"body_size_limit":          body,
		"label_limit":              labelLimit,
		"label_name_length_limit":  labelNameLimit,
		"label_value_length_limit": labelValueLimit,
		"follow_redirects":         false,
	})
	return job
}

// config makes the configuration of Prometheus as text and lets Prometheus read it: what it checks
// and what it defaults is then as in any Prometheus, and /api/v1/status/config shows it.
func (s *Server) config() (*config.Config, error) {
	every := model.Duration(s.opts.Interval).String()
	timeout := model.Duration(min(s.opts.Interval, 10*time.Second)).String()
	jobs := []map[string]any{}
	if s.opts.Self != nil {
		jobs = append(jobs, map[string]any{
			"job_name":           jobSelf,
			"enable_compression": false, // it never leaves the process
			"static_configs": []map[string]any{{
				"targets": []string{selfAddress},
				"labels":  map[string]string{"job": jobLabel, "instance": s.opts.Instance},
			}},
		})
	}
	if len(s.opts.Targets) > 0 {
		jobs = append(jobs, bounded(map[string]any{
			"job_name":       jobLabel,
			"static_configs": []map[string]any{{"targets": s.opts.Targets}},
		}, agentSampleLimit, agentBodyLimit))
	}
	if len(s.opts.Endpoints) > 0 {
		jobs = append(jobs, bounded(map[string]any{
			"job_name":                 jobEndpoints,
			"fallback_scrape_protocol": "PrometheusText0.0.4", // for those that forget the Content-Type
			"static_configs":           endpointGroups(s.opts.Endpoints),
		}, sampleLimit, bodyLimit))
	}
	text, err := yaml.Marshal(map[string]any{
		"global":         map[string]any{"scrape_interval": every, "scrape_timeout": timeout},
		"scrape_configs": jobs,
	})
	if err != nil {
		return nil, err
	}
	return config.Load(string(text), s.opts.Log)
}

// endpointGroups gives each endpoint its own scheme, path and parameters, by the labels that Prometheus
// has for them.
func endpointGroups(endpoints []Endpoint) []map[string]any {
	var groups []map[string]any
	for _, e := range endpoints {
		labels := map[string]string{
			model.JobLabel: e.Job, model.SchemeLabel: e.URL.Scheme, model.MetricsPathLabel: e.URL.Path,
		}
		for name, values := range e.URL.Query() {
			labels[model.ParamLabelPrefix+name] = values[0]
		}
		groups = append(groups, map[string]any{"targets": []string{e.URL.Host}, "labels": labels})
	}
	return groups
}

func (s *Server) newScraper() (*scrape.Manager, error) {
	opts := &scrape.Options{
		DiscoveryReloadOnStartup: true, // the targets are known: do not wait for more of them
		DiscoveryReloadInterval:  model.Duration(time.Second),
		PassMetadataInContext:    true, // budgets asks it for the target
		HTTPClientOptions:        []commonconfig.HTTPClientOption{commonconfig.WithDialContextFunc(s.self.dial)},
	}
	if len(s.opts.Targets)+len(s.opts.Endpoints) < spreadAbove {
		// The scraper waits this long plus a share of the interval that is a hash of the target, and
		// not at all when the sum is negative. The share is at most an interval.
		opts.InitialScrapeOffset = -max(s.opts.Interval, warmUpInterval)
	}
	return scrape.NewManager(opts, quietlog.New(s.opts.Log, "scrape"), nil, nil, newBudgets(s.db, s.memory), s.metrics)
}

// Run scrapes until ctx ends. When the clock is set back, it takes out of the database what is ahead of
// the clock then, and goes on.
func (s *Server) Run(ctx context.Context) error {
	for {
		scraping, stop := context.WithCancel(ctx)
		behind := make(chan time.Duration, 1)
		go func() {
			behind <- watchClock(scraping, s.db)
			stop()
		}()
		err := s.scrape(scraping)
		stop()
		if ahead := <-behind; err == nil && ahead > 0 && ctx.Err() == nil {
			if err = s.rewind(ctx, ahead); err == nil {
				continue
			}
		}
		return err
	}
}

// scrape scrapes until ctx ends.
func (s *Server) scrape(ctx context.Context) error {
	go s.self.serve()
	if err := s.scraper.ApplyConfig(s.cfg); err != nil {
		return fmt.Errorf("configuring the scrape manager: %w", err)
	}
	groups, err := targetGroups(s.cfg)
	if err != nil {
		return fmt.Errorf("configuring the scrape manager: %w", err)
	}
	if s.ruler != nil {
		if err := s.ruler.run(); err != nil {
			return err
		}
		defer func() {
			s.giveUp()
			s.ruler.stop()
		}()
	}
	targets := make(chan map[string][]*targetgroup.Group, 1)
	done := make(chan error, 1)
	go func() { done <- s.scraper.Run(targets) }()
	if s.opts.Interval > warmUpInterval {
		targets <- withInterval(groups, warmUpInterval)
		select {
		case <-time.After(warmUp):
			// To the scraper these targets go away now. They do not: their series must not be marked so.
			for pool, old := range s.scraper.TargetsActive() {
				s.scraper.DisableEndOfRunStalenessMarkers(pool, old)
			}
		case <-ctx.Done():
		}
	}
	select {
	case targets <- groups:
	case <-ctx.Done():
	}
	<-ctx.Done()
	s.scraper.Stop()
	return <-done
}

// withInterval copies target groups and gives every target of them an interval of its own.
func withInterval(groups map[string][]*targetgroup.Group, interval time.Duration) map[string][]*targetgroup.Group {
	value := model.LabelValue(model.Duration(interval).String())
	out := make(map[string][]*targetgroup.Group, len(groups))
	for job, list := range groups {
		for _, g := range list {
			labels := model.LabelSet{model.ScrapeIntervalLabel: value, model.ScrapeTimeoutLabel: value}.Merge(g.Labels)
			out[job] = append(out[job], &targetgroup.Group{Targets: g.Targets, Labels: labels, Source: g.Source})
		}
	}
	return out
}

// targetGroups hands the static targets straight to the scraper, without a discovery manager.
func targetGroups(cfg *config.Config) (map[string][]*targetgroup.Group, error) {
	scrapes, err := cfg.GetScrapeConfigs()
	if err != nil {
		return nil, err
	}
	out := make(map[string][]*targetgroup.Group, len(scrapes))
	for _, sc := range scrapes {
		for _, d := range sc.ServiceDiscoveryConfigs {
			if static, ok := d.(discovery.StaticConfig); ok {
				out[sc.JobName] = append(out[sc.JobName], static...)
			}
		}
	}
	return out, nil
}
