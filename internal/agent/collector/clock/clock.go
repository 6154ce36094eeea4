// SPDX-License-Identifier: Apache-2.0

// Package clock is the collector of changes of the machine's clock. They explain gaps in charts, and differences from
// timestamps of other machines. It does not decide which time is correct.
package clock

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/service"
)

// every is the interval between two checks of the clock.
const every = time.Second

// Collector is the collector. It is also a service: Run watches the clock.
type Collector struct {
	log   *slog.Logger
	steps *metric.Desc
	last  *metric.Desc

	mu            sync.Mutex // protects the fields below
	forward, back uint64
	by            time.Duration // size of the last step
}

// New returns the collector. It checks nothing before Run.
func New(log *slog.Logger) *Collector {
	const origin = "CLOCK_REALTIME against CLOCK_BOOTTIME, every second"
	return &Collector{
		log: log,
		steps: metric.New(metric.Desc{
			Name: "teescope_clock_steps_total", Kind: metric.Counter, Unit: "steps", Labels: []string{"direction"}, Source: metric.Kernel,
			Help: "Number of times that the machine's clock was set since the agent started.", Origin: origin,
		}),
		last: metric.New(metric.Desc{
			Name: "teescope_clock_last_step_seconds", Kind: metric.Gauge, Unit: "seconds", Source: metric.Kernel,
			Help: "Size of the last change of the machine's clock in seconds: positive when it was set forward, negative when it was set back. Absent before the first change.", Origin: origin,
		}),
	}
}

// Name is "clock".
func (c *Collector) Name() string { return "clock" }

// Describe lists the families.
func (c *Collector) Describe() []*metric.Desc { return []*metric.Desc{c.steps, c.last} }

// Collect emits the samples of one scrape.
func (c *Collector) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	emit(c.steps.Value(float64(c.forward), "forward"))
	emit(c.steps.Value(float64(c.back), "back"))
	if c.by != 0 {
		emit(c.last.Value(c.by.Seconds()))
	}
	return nil
}

// Run checks the clock until ctx ends.
func (c *Collector) Run(ctx context.Context) error {
	watch := clock.New()
	service.Every(ctx, every, func() { c.note(watch.Step()) })
	return nil
}

// note counts and logs a step.
func (c *Collector) note(step time.Duration) {
	if step == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by = step
	if step > 0 {
		c.forward++
	} else {
		c.back++
	}
	c.log.Warn("the clock of this machine was set", "by", step.Round(time.Millisecond))
}
