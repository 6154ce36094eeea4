// SPDX-License-Identifier: Apache-2.0

// Package build is the collector of teescope's version. It has no data about the machine.
package build

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric"
)

// Info is the build information of a binary.
type Info struct {
	Version   string // of the module, or "dev"
	Revision  string // of the source, or "unknown"
	GoVersion string
}

// Collector is the collector.
type Collector struct {
	info Info
	desc *metric.Desc
}

// New returns the collector.
func New(info Info) *Collector {
	return &Collector{info: info, desc: metric.New(metric.Desc{
		Name: "teescope_build_info", Kind: metric.Info, Labels: []string{"version", "revision", "goversion"}, Source: metric.Agent,
		Help: "Always 1. The labels give the version of teescope.", Origin: "the binary's build information",
	})}
}

// Name is "build".
func (c *Collector) Name() string { return "build" }

// Describe lists the family.
func (c *Collector) Describe() []*metric.Desc { return []*metric.Desc{c.desc} }

// Collect emits the one sample.
func (c *Collector) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	emit(c.desc.Value(1, c.info.Version, c.info.Revision, c.info.GoVersion))
	return nil
}
