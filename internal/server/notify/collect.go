// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric"
)

// outcomes counts the deliveries to a webhook by outcome.
type outcomes struct {
	delivered, failed, refused, expired, dropped uint64
}

// families are the metrics of deliveries.
type families struct {
	deliveries, queued, firing, saved *metric.Desc
}

func newFamilies() families {
	own := metric.Own("teescope")
	return families{
		deliveries: own(metric.Desc{
			Name: "teescope_webhook_deliveries_total", Kind: metric.Counter, Unit: "deliveries", Labels: []string{"webhook", "outcome"},
			Help: "Deliveries of alerts to a webhook, by the webhook's host. outcome is delivered, failed (it will be retried), refused, " +
				"expired (after a day), or dropped (from a full queue).",
		}),
		queued: own(metric.Desc{
			Name: "teescope_webhook_queued", Kind: metric.Gauge, Unit: "deliveries", Labels: []string{"webhook"},
			Help: "Number of deliveries that wait for a webhook.",
		}),
		firing: own(metric.Desc{
			Name: "teescope_alerts_firing", Kind: metric.Gauge, Unit: "alerts", Labels: []string{"severity"},
			Help: "Number of alerts that fire on this server, by severity. Absent when no alert of the severity fires.",
		}),
		saved: own(metric.Desc{
			Name: "teescope_alert_state_saved", Kind: metric.Gauge,
			Help: "1 when the state of sent alerts is saved on disk. 0 when saving failed; a restart would then send some alerts again.",
		}),
	}
}

// Describe implements collector.Collector.
func (h *Hub) Describe() []*metric.Desc {
	return []*metric.Desc{h.families.deliveries, h.families.queued, h.families.firing, h.families.saved}
}

// Collect implements collector.Collector.
func (h *Hub) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	hosts := map[string]*outcomes{}
	waiting := map[string]int{}
	for _, w := range h.opts.Webhooks { // two webhooks may have the same host
		sum := hosts[w.name]
		if sum == nil {
			sum = &outcomes{}
			hosts[w.name] = sum
		}
		o := h.outs[w.key]
		sum.delivered, sum.failed, sum.refused = sum.delivered+o.delivered, sum.failed+o.failed, sum.refused+o.refused
		sum.expired, sum.dropped = sum.expired+o.expired, sum.dropped+o.dropped
		waiting[w.name] += len(h.queues[w.key])
	}
	for host, o := range hosts {
		for outcome, n := range map[string]uint64{
			"delivered": o.delivered, "failed": o.failed, "refused": o.refused, "expired": o.expired, "dropped": o.dropped,
		} {
			emit(h.families.deliveries.Value(float64(n), host, outcome))
		}
		emit(h.families.queued.Value(float64(waiting[host]), host))
	}
	by := map[string]int{}
	for _, e := range h.open {
		if !e.watchdog() {
			by[e.Labels["severity"]]++
		}
	}
	for severity, n := range by {
		emit(h.families.firing.Value(float64(n), severity))
	}
	saved := 0.0
	if h.saved {
		saved = 1
	}
	emit(h.families.saved.Value(saved))
	return nil
}
