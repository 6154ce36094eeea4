// SPDX-License-Identifier: Apache-2.0

// Package collector defines the interface of collectors and combines all collectors into one scrape.
//
// Each collector reports its own success and duration. A collector that fails never fails the scrape. The package does not
// depend on any collector: internal/app has the list.
package collector

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric"
)

// Collector converts a part of the machine's state into samples.
type Collector interface {
	// Name is the value of the label "collector": lower case, short, constant.
	Name() string
	// Describe lists every family that Collect can emit. It is constant.
	Describe() []*metric.Desc
	// Collect emits the samples of one scrape. On an error the samples emitted before it are kept,
	// the collector is marked as failed, and the other collectors continue.
	Collect(ctx context.Context, emit func(prometheus.Metric)) error
}
