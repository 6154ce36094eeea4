// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/teescope/teescope/internal/app"
	"github.com/teescope/teescope/internal/lib/metric"
)

// around are families of which the page shows something too, and which no collector describes: what the Go client and
// Prometheus say of every process that is scraped, and what an analysis keeps of its window.
func around() []*metric.Desc {
	box := []string{"metric", "workload", "window", "instance"}
	kept := "kept by each analysis, not in /metrics"
	described := []metric.Desc{
		{
			Name: "process_cpu_seconds_total", Kind: metric.Counter, Unit: "seconds", Source: metric.Kernel, Origin: "/proc/self/stat",
			Help: "CPU time of the process that is scraped, in user and system mode.",
		},
		{
			Name: "process_resident_memory_bytes", Kind: metric.Gauge, Unit: "bytes", Source: metric.Kernel, Origin: "/proc/self/stat",
			Help: "Resident memory of the process that is scraped. That of its kernel maps is not in it.",
		},
		{
			Name: "process_start_time_seconds", Kind: metric.Gauge, Unit: "seconds", Source: metric.Kernel, Origin: "/proc/self/stat",
			Help: "When the process that is scraped was started, in seconds since 1970.",
		},
		{
			Name: "scrape_duration_seconds", Kind: metric.Gauge, Unit: "seconds", Source: metric.Agent, Origin: "the server's clock, not in /metrics",
			Help: "How long the server waited for all metrics of a target.",
		},
		{
			Name: "scrape_samples_post_metric_relabeling", Kind: metric.Gauge, Unit: "samples", Source: metric.Agent, Origin: "the server, not in /metrics",
			Help: "How many samples of a target the server stored of one scrape.",
		},
		{
			Name: "teescope:window_value", Kind: metric.Gauge, Source: metric.Agent, Labels: append([]string{"stat"}, box...), Origin: kept,
			Help: "The numbers of a box plot of a metric of a workload in the window of an analysis: least, whiskers, quartiles, median and greatest. Of counters in events per second, else in the metric's unit.",
		},
		{
			Name: "teescope:window_samples", Kind: metric.Gauge, Unit: "values", Source: metric.Agent, Labels: box, Origin: kept,
			Help: "How many values such a box plot is of.",
		},
		{
			Name: "teescope:window_outliers", Kind: metric.Gauge, Unit: "values", Source: metric.Agent, Labels: box, Origin: kept,
			Help: "How many values lie beyond the whiskers of such a box plot.",
		},
	}
	all := make([]*metric.Desc, len(described))
	for i, d := range described {
		all[i] = metric.New(d)
	}
	return all
}

// families are all that the reference has.
func families() []*metric.Desc { return append(app.Descriptions(), around()...) }
