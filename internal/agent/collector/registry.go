// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/lib/metric"
)

// timeout limits the time of each collector in each scrape. It is below the smallest scrape timeout that a
// Prometheus is likely to have, so that a hanging collector loses only its own samples.
const timeout = 4 * time.Second

// Registry combines several collectors into one scrape. It implements prometheus.Gatherer.
type Registry struct {
	log        *slog.Logger
	collectors []Collector
	beside     prometheus.Gatherers
	timeout    time.Duration
	families   own
	spare      spare

	began []atomic.Pointer[time.Time] // by collector: when the run that has not ended began, else nil

	mu    sync.Mutex      // one scrape at a time
	busy  []chan struct{} // by collector: closed when its last run has ended, nil before the first
	count []int           // by collector: the number of samples of its last run
}

// own are the families of the registry itself.
type own struct {
	success, duration *metric.Desc
}

func newOwn() own {
	return own{
		success: metric.New(metric.Desc{
			Name: "teescope_collector_success", Kind: metric.Gauge, Labels: []string{"collector"}, Source: metric.Agent,
			Help: "1 when the collector's last run was complete, 0 when it failed. After a failure samples may be missing.",
		}),
		duration: metric.New(metric.Desc{
			Name: "teescope_collector_duration_seconds", Kind: metric.Gauge, Unit: "seconds", Labels: []string{"collector"}, Source: metric.Agent,
			Help: "Duration of the collector's last run in seconds. For a run that has not ended, the time since it began.",
		}),
	}
}

// NewRegistry returns a registry of collectors, which emit in their order.
func NewRegistry(log *slog.Logger, collectors ...Collector) *Registry {
	return &Registry{
		log: log, collectors: collectors, timeout: timeout, families: newOwn(),
		began: make([]atomic.Pointer[time.Time], len(collectors)),
		busy:  make([]chan struct{}, len(collectors)), count: make([]int, len(collectors)),
	}
}

// Beside adds metrics that are exposed besides those of the collectors.
func (r *Registry) Beside(all ...prometheus.Gatherer) *Registry {
	r.beside = append(r.beside, all...)
	return r
}

// Descriptions lists every family of the collectors and of the registry itself.
func (r *Registry) Descriptions() []*metric.Desc {
	out := []*metric.Desc{r.families.success, r.families.duration}
	for _, c := range r.collectors {
		out = append(out, c.Describe()...)
	}
	return out
}

// Gather makes a scrape. It implements prometheus.Gatherer.
func (r *Registry) Gather() ([]*dto.MetricFamily, error) {
	return append(prometheus.Gatherers{gathering(slices.Concat(r.scrape()...))}, r.beside...).Gather()
}

// gathering checks and sorts samples as the client library does.
func gathering(samples []prometheus.Metric) prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	registry.MustRegister(samplesOf(samples))
	return registry
}

type samplesOf []prometheus.Metric

// Describe implements prometheus.Collector. It describes nothing, so the client library does not check the families:
// they depend on the kernel.
func (samplesOf) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s samplesOf) Collect(out chan<- prometheus.Metric) {
	for _, m := range s {
		out <- m
	}
}

// scrape runs every collector once and returns the samples of each. Concurrent calls wait for each other, so that no collector
// runs twice at a time.
func (r *Registry) scrape() [][]prometheus.Metric {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := make([][]prometheus.Metric, len(r.collectors))
	var wg sync.WaitGroup
	for i, c := range r.collectors {
		wg.Go(func() { of[i] = r.one(i, c) })
	}
	wg.Wait()
	return of
}

// errBusy is returned while an earlier run of a collector has not ended.
var errBusy = errors.New("still busy with an earlier scrape")

// one runs a collector and returns the samples that it emitted within the timeout, and its success and duration.
func (r *Registry) one(i int, c Collector) []prometheus.Metric {
	start := time.Now()
	samples, err := r.run(i, c)
	if earlier := r.began[i].Load(); earlier != nil { // it has not ended
		start = *earlier
	}
	success := 1.0
	if err != nil {
		success = 0
		level := slog.LevelWarn
		if errors.Is(err, errBusy) { // the earlier run is in the log
			level = slog.LevelDebug
		}
		r.log.Log(context.Background(), level, "collector failed", "collector", c.Name(), "err", err)
	}
	return append(samples,
		r.families.success.Value(success, c.Name()),
		r.families.duration.Value(time.Since(start).Seconds(), c.Name()))
}

// run returns the samples that the collector has emitted when it ends or its time is up, whichever is
// first. A collector whose run has not ended is not started again.
func (r *Registry) run(i int, c Collector) ([]prometheus.Metric, error) {
	if last := r.busy[i]; last != nil {
		select {
		case <-last:
		default:
			return nil, errBusy
		}
	}
	done := make(chan struct{})
	r.busy[i] = done
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
	defer cancel()
	now := time.Now()
	r.began[i].Store(&now)
	var err error
	b := buffer{samples: make([]prometheus.Metric, 0, r.count[i]+r.count[i]/8+8)}
	go func() {
		defer close(done)
		defer r.began[i].Store(nil)
		err = contained(ctx, c, b.add)
	}()
	select {
	case <-done:
		samples := b.take()
		r.count[i] = len(samples)
		return samples, err
	case <-ctx.Done():
		return b.take(), fmt.Errorf("did not end within %v", r.timeout)
	}
}

// hangsAfter is the duration of one run of a collector after which the agent should be restarted.
const hangsAfter = 15 * timeout

// Hangs returns an error that names the collectors whose run has not ended for a minute, or nil. It never waits.
func (r *Registry) Hangs() error {
	var names []string
	for i, c := range r.collectors {
		if began := r.began[i].Load(); began != nil && time.Since(*began) > hangsAfter {
			names = append(names, c.Name())
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("collectors have not ended for %s: %s", hangsAfter, strings.Join(names, ", "))
}

// contained converts a panic of a collector into an error, because a bug in a collector must not end the agent.
func contained(ctx context.Context, c Collector, emit func(prometheus.Metric)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return c.Collect(ctx, emit)
}

// buffer collects samples until take is called, and drops later ones.
type buffer struct {
	mu      sync.Mutex
	samples []prometheus.Metric
	taken   bool
}

func (b *buffer) add(m prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.taken {
		b.samples = append(b.samples, m)
	}
}

func (b *buffer) take() []prometheus.Metric {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken = true
	return b.samples
}
