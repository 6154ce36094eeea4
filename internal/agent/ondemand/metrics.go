// SPDX-License-Identifier: Apache-2.0

package ondemand

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric"
)

// event is what happened to a change. It is a label value.
type event string

const (
	begun   event = "begun"
	ended   event = "ended"   // by a request
	expired event = "expired" // by its time
	refused event = "refused"
)

// counted is the labels of one sample of the counter.
type counted struct {
	kind  Kind
	event event
}

type families struct{ active, changes *metric.Desc }

func newFamilies() families {
	own := metric.Own("changes through /api/control")
	return families{
		active: own(metric.Desc{
			Name: "teescope_control_active", Kind: metric.Gauge, Unit: "changes", Labels: []string{"kind"},
			Help: "Number of changes that are on now, besides the configuration: watch, timing, exact, profile or pause (a probe is switched off).",
		}),
		changes: own(metric.Desc{
			Name: "teescope_control_changes_total", Kind: metric.Counter, Unit: "changes", Labels: []string{"kind", "event"},
			Help: "Number of changes since the agent started that have begun, have been ended by a request, have expired at their time, or were refused.",
		}),
	}
}

// Describe implements collector.Collector.
func (c *Control) Describe() []*metric.Desc {
	return []*metric.Desc{c.families.active, c.families.changes}
}

// Collect implements collector.Collector. An agent that allows no changes has no samples.
func (c *Control) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	if !c.opts.Allowed {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	active := map[Kind]int{}
	for _, one := range c.current(time.Now()) {
		active[one.kind]++
	}
	for _, kind := range kinds() {
		emit(c.families.active.Value(float64(active[kind]), string(kind)))
		for _, e := range []event{begun, ended, expired, refused} {
			emit(c.families.changes.Value(float64(c.counts[counted{kind, e}]), string(kind), string(e)))
		}
	}
	return nil
}
