// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
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

// Names of the scrape jobs. Both have the label job="teescope". The first needs its own name because Prometheus
// requires unique job names.
const (
	jobSelf  = "teescope-self"
	jobLabel = "teescope"
	// jobAgents is the prefix of the names of the jobs of agents with an HTTP client of their own. Their label is jobLabel.
	jobAgents = "teescope-agents-"
	// jobEndpoints is the name of the job of all applications without credentials, and the prefix of the names of the
	// others. Each application has its own label job.
	jobEndpoints = "teescope-endpoints"
	// jobLatencies is the same for those with a histogram of durations, which may be a native one.
	jobLatencies = "teescope-latencies"
)

// During warmUp the interval is half a second. A chart of a rate needs two samples, and should not have to wait a whole
// interval for the second one. The interval of a target is a label, so the targets are first passed with a label of
// their own and later without. The samples are ordinary scrapes with ordinary labels. Appending them here instead would
// repeat the scraper's parsing, labels, staleness handling and the series "up".
const (
	warmUp         = 2250 * time.Millisecond // not a multiple of the interval: the two scrape loops must not coincide
	warmUpInterval = 500 * time.Millisecond
)

// spreadAbove is the number of targets above which scrapes are spread over the interval, as in Prometheus. With fewer
// targets, all are scraped immediately after the start.
const spreadAbove = 20

// Bounds of one scrape over the network, so that a faulty target cannot fill the database or the memory. The scrape
// fails and names the bound. A sample is about 150 bytes of text.
//
// The scraper reads a body into a buffer that doubles when less than bytes.MinRead is free. A body of a whole power of two would
// take twice its size, beside the half that it is copied from.
const (
	sampleLimit     = 100_000
	bodyLimit       = 16<<20 - bytes.MinRead
	labelLimit      = 128
	labelNameLimit  = 512  // bytes
	labelValueLimit = 4096 // bytes
	// Above it, the resolution of a native histogram is reduced. client_golang recommends 160 for the application itself.
	nativeBucketLimit = 320
)

// Agents may send more. With the maximum of 1024 workloads and with system call times, 290 samples remain for each
// workload. A workload was observed with up to 51 system calls, each with a count and a time, and 27 other samples. A
// container has about 80. All existing system calls in every workload would be 800,000 samples, which is refused.
const (
	agentSampleLimit = 300_000
	agentBodyLimit   = 64<<20 - bytes.MinRead
)

// bounded adds the bounds and the reserved names to the configuration of a job.
func bounded(job map[string]any, samples int, body int64, reserved string) map[string]any {
	maps.Copy(job, map[string]any{
		"metric_relabel_configs":   renaming(reserved),
		"sample_limit":             samples,
		"body_size_limit":          fmt.Sprintf("%dB", body),
		"label_limit":              labelLimit,
		"label_name_length_limit":  labelNameLimit,
		"label_value_length_limit": labelValueLimit,
	})
	return job
}

// config writes the configuration of Prometheus as text, and Prometheus parses it. Checks and defaults are then the
// same as in any Prometheus, and /api/v1/status/config shows the text.
func (s *Server) config() (*config.Config, error) {
	every := model.Duration(s.opts.Interval).String()
	timeout := model.Duration(min(s.opts.Interval, 10*time.Second)).String()
	jobs := []map[string]any{}
	files := map[string]string{} // by job: the configuration of its HTTP client
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
	if len(s.opts.Targets) > 0 || s.opts.Discovery != nil {
		groups := agentGroups(s.opts.Targets, s.opts.TargetsConfig)
		for name, file := range agentJobs(s.opts.TargetsConfig) {
			jobs = append(jobs, bounded(map[string]any{
				"job_name":       name,
				"static_configs": groups[name],
				// Agents state none. Those of another clock would shift its series, and the delay of remote write.
				"honor_timestamps": false,
			}, agentSampleLimit, s.memory.mostBody(agentBodyLimit), reservedNames))
			files[name] = file
		}
	}
	byJob := endpointJobs(s.opts.Endpoints)
	for _, name := range slices.Sorted(maps.Keys(byJob)) {
		endpoints := byJob[name]
		job := bounded(map[string]any{
			"job_name":                 name,
			"fallback_scrape_protocol": "PrometheusText0.0.4", // for targets without a Content-Type
			"static_configs":           endpointGroups(endpoints, s.opts.Endpoints),
		}, sampleLimit, s.memory.mostBody(bodyLimit), reservedForAgents)
		if strings.HasPrefix(name, jobLatencies) {
			job["scrape_native_histograms"], job["always_scrape_classic_histograms"] = true, true
			job["native_histogram_bucket_limit"] = nativeBucketLimit
		}
		jobs = append(jobs, job)
		files[name] = endpoints[0].Config
	}
	text, err := yaml.Marshal(map[string]any{
		"global":         map[string]any{"scrape_interval": every, "scrape_timeout": timeout, "external_labels": s.opts.RemoteWrite.Labels},
		"scrape_configs": jobs,
		"remote_write":   s.opts.RemoteWrite.configs(s.opts.Interval),
	})
	if err != nil {
		return nil, err
	}
	c, err := config.Load(string(text), s.opts.Log)
	if err != nil {
		return nil, err
	}
	// Not as text: a secret that a file contains would be in it. The API shows "<secret>" for those in the result.
	for _, job := range c.ScrapeConfigs {
		if job.HTTPClientConfig, err = scrapeClient(files[job.JobName]); err != nil {
			return nil, fmt.Errorf("%s: %w", clientKey(job.JobName), err)
		}
	}
	return c, s.opts.RemoteWrite.setClient(c)
}

// clientKey is the configuration key of the HTTP client of a job.
func clientKey(job string) string {
	if job == jobLabel || strings.HasPrefix(job, jobAgents) {
		return "targets-config-file"
	}
	return "scrape-config-file"
}

// agentGroups sets the scheme and the label job of each agent. The result is by the name of the scrape job.
func agentGroups(targets []string, clients []AgentClient) map[string][]map[string]any {
	groups := map[string][]map[string]any{}
	for _, target := range targets {
		labels := map[string]string{model.JobLabel: jobLabel}
		address, secure := strings.CutPrefix(target, "https://")
		if secure {
			labels[model.SchemeLabel] = "https"
		}
		name := jobOf(address, clients)
		groups[name] = append(groups[name], map[string]any{"targets": []string{address}, "labels": labels})
	}
	return groups
}

// endpointJobs returns the endpoints by the name of their job. Those with an HTTP client of their own have a job of
// their own.
func endpointJobs(endpoints []Endpoint) map[string][]Endpoint {
	jobs := map[string][]Endpoint{}
	for _, e := range endpoints {
		name := jobEndpoints
		if e.Workload.Latency != "" {
			name = jobLatencies
		}
		if e.Config != "" {
			name += "-" + e.Job
		}
		jobs[name] = append(jobs[name], e)
	}
	return jobs
}

// endpointLabel numbers the endpoints with a workload.
const endpointLabel = "__teescope_endpoint__"

// endpointGroups sets the scheme, path and parameters of each endpoint, by Prometheus' labels for them, and the workload. A
// label workload that the target sends becomes exported_workload then.
func endpointGroups(endpoints, all []Endpoint) []map[string]any {
	var groups []map[string]any
	for _, e := range endpoints {
		labels := map[string]string{
			model.JobLabel: e.Job, model.SchemeLabel: e.URL.Scheme, model.MetricsPathLabel: e.URL.Path,
		}
		for name, values := range e.URL.Query() {
			labels[model.ParamLabelPrefix+name] = values[0]
		}
		if e.Workload.Name != "" {
			labels["workload"] = e.Workload.Name
			labels[endpointLabel] = strconv.Itoa(slices.IndexFunc(all, func(o Endpoint) bool { return o.URL == e.URL }))
		}
		groups = append(groups, map[string]any{"targets": []string{e.URL.Host}, "labels": labels})
	}
	return groups
}

func (s *Server) newScraper() (*scrape.Manager, error) {
	opts := &scrape.Options{
		DiscoveryReloadOnStartup: true, // the targets are known; do not wait for more
		DiscoveryReloadInterval:  model.Duration(time.Second),
		PassMetadataInContext:    true, // seriesLimiter reads the target from it
		HTTPClientOptions:        []commonconfig.HTTPClientOption{commonconfig.WithDialContextFunc(boundedDialer{s.self, s.memory, s.opts}.dial)},
	}
	if s.opts.targets() < spreadAbove {
		// The scraper waits this long plus a share of the interval that is a hash of the target. It does not wait when
		// the sum is negative. The share is at most one interval.
		opts.InitialScrapeOffset = -max(s.opts.Interval, warmUpInterval)
	}
	limiter := newSeriesLimiter(&guardV2{s.db, s.health}, s.memory, newAccounts(s.opts.MemoryLimit, s.opts.targets()))
	limiter.oldest, limiter.native = s.db.Head().AppendableMinValidTime, s.opts.RemoteWrite.StoresAsNative
	var err error
	if limiter.operations, err = operationsOfAll(s.opts); err != nil {
		return nil, err
	}
	s.limiter.Store(limiter)
	return scrape.NewManager(opts, slog.New(quietRefusals{quietlog.New(s.opts.Log, "scrape").Handler()}), nil, nil, limiter, s.metrics)
}

// Run scrapes until ctx ends. When the clock is set back, it removes newer samples from the database and continues. After
// a write error it opens the database again as soon as the disk can be written.
func (s *Server) Run(ctx context.Context) error {
	for {
		scraping, stop := context.WithCancel(ctx)
		watch, events := watcher{s.db, s.health, s.reserve, s.metrics}, make(chan event, 1)
		go func() {
			events <- watch.wait(scraping)
			stop()
		}()
		err := s.scrape(scraping)
		stop()
		switch happened := <-events; {
		case err != nil || ctx.Err() != nil:
			return err
		case happened.reopen:
			err = s.reopen(ctx)
		case happened.ahead > 0:
			err = s.rewind(ctx, happened.ahead)
		default:
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
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
			// To the scraper, these targets disappear now. They are scraped again, so their series must not be marked
			// as stale.
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
	again := func(groups map[string][]*targetgroup.Group) { targets <- groups }
	found, ended := discover(ctx, s.opts.Discovery)
	s.limiter.Load().run(ctx, s.db.Head(), s.scraper, s.opts, groups, found, again)
	<-ended
	s.scraper.Stop()
	return <-done
}

// withInterval copies target groups and sets an interval for each target.
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

// targetGroups passes the static targets to the scraper directly, without a discovery manager.
func targetGroups(cfg *config.Config) (map[string][]*targetgroup.Group, error) {
	scrapes, err := cfg.GetScrapeConfigs()
	if err != nil {
		return nil, err
	}
	out, n := make(map[string][]*targetgroup.Group, len(scrapes)), 0
	for _, sc := range scrapes {
		for _, d := range sc.ServiceDiscoveryConfigs {
			static, _ := d.(discovery.StaticConfig)
			for _, g := range static { // Each has one target.
				n++
				number := model.LabelSet{numberLabel: model.LabelValue(strconv.Itoa(n))}
				out[sc.JobName] = append(out[sc.JobName], &targetgroup.Group{Targets: g.Targets, Labels: number.Merge(g.Labels), Source: g.Source})
			}
		}
	}
	return out, nil
}
