// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/server/spool"
)

// forwardDescs are the metrics of a [Forwarder].
type forwardDescs struct{ sent, dropped, waiting, bytes, oldest *metric.Desc }

func newForwardDescs() forwardDescs {
	own := metric.Own("teescope server")
	receiver := []string{"receiver"}
	return forwardDescs{
		sent: own(metric.Desc{
			Name: "teescope_forward_sent_samples_total", Kind: metric.Counter, Unit: "samples", Labels: receiver,
			Help: "Samples that a receiver has taken, with remote-write.only.",
		}),
		dropped: own(metric.Desc{
			Name: "teescope_forward_dropped_samples_total", Kind: metric.Counter, Unit: "samples", Labels: []string{"receiver", "reason"},
			Help: "Samples that a receiver will never get, with remote-write.only. reason is full (retention.size was reached), old (retention.time was reached), " +
				"refused (the receiver refuses them), damaged (the file could not be read), disk (it could not be written) or unconfigured (the receiver was removed from the configuration, so receiver is empty). The log has their times.",
		}),
		waiting: own(metric.Desc{
			Name: "teescope_forward_waiting_samples", Kind: metric.Gauge, Unit: "samples", Labels: receiver,
			Help: "Samples on disk that a receiver does not have yet, with remote-write.only.",
		}),
		bytes: own(metric.Desc{
			Name: "teescope_forward_waiting_bytes", Kind: metric.Gauge, Unit: "bytes", Labels: receiver,
			Help: "Disk space of the samples that a receiver does not have yet, with remote-write.only. All receivers share retention.size.",
		}),
		oldest: own(metric.Desc{
			Name: "teescope_forward_oldest_timestamp_seconds", Kind: metric.Gauge, Unit: "seconds", Labels: receiver,
			Help: "Unix time of the oldest sample that a receiver does not have yet, with remote-write.only. Absent if none waits.",
		}),
	}
}

// Describe implements collector.Collector.
func (f *Forwarder) Describe() []*metric.Desc {
	d := f.descs
	return []*metric.Desc{d.sent, d.dropped, d.waiting, d.bytes, d.oldest}
}

// Collect implements collector.Collector.
func (f *Forwarder) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	senders, discarded := f.receivers()
	emit(f.descs.dropped.Value(float64(discarded), "", spool.Unconfigured))
	for _, s := range senders {
		state := s.Queue.State()
		emit(f.descs.sent.Value(float64(state.Sent), s.Name))
		for _, why := range spool.Reasons() {
			emit(f.descs.dropped.Value(float64(state.Dropped[why]), s.Name, why))
		}
		emit(f.descs.waiting.Value(float64(state.Samples), s.Name))
		emit(f.descs.bytes.Value(float64(state.Bytes), s.Name))
		if !state.Oldest.IsZero() {
			emit(f.descs.oldest.Value(float64(state.Oldest.UnixMilli())/1e3, s.Name))
		}
	}
	return nil
}
