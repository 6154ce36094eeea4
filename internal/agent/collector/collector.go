// SPDX-License-Identifier: Apache-2.0

// Package collector defines what a collector is and wraps the collectors into one scrape.
//
// Each collector reports its own success and duration, and one that fails never fails the scrape.
// The package refuses to know any collector: internal/app holds the list.
package collector

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric"
)

// Collector turns a part of the machine's state into samples.
type Collector interface {
	// Name is the value of the label collector: lower case, short, constant.
	Name() string
	// Describe lists every family that Collect can emit. It is constant.
	Describe() []*metric.Desc
	// Collect emits the samples of one scrape. On an error what was emitted before it is kept,
	// the collector is marked as failed, and the other collectors go on.
	Collect(ctx context.Context, emit func(prometheus.Metric)) error
}
