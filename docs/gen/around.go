// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"

	"github.com/teescope/teescope/internal/agent/userprobe"
	"github.com/teescope/teescope/internal/agent/userprobe/probefile"
	"github.com/teescope/teescope/internal/app"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/operation"
)

// around lists families that the page also shows and no collector describes: metrics that the Go client and Prometheus
// add for every scraped process, and the results that an analysis stores.
func around() []*metric.Desc {
	box := []string{"metric", "workload", "window", "instance"}
	kept := "stored by each analysis, not in /metrics"
	described := []metric.Desc{
		{
			Name: "process_cpu_seconds_total", Kind: metric.Counter, Unit: "seconds", Source: metric.Kernel, Origin: "/proc/self/stat",
			Help: "CPU time of the scraped process, in user and system mode.",
		},
		{
			Name: "process_resident_memory_bytes", Kind: metric.Gauge, Unit: "bytes", Source: metric.Kernel, Origin: "/proc/self/stat",
			Help: "Resident memory of the scraped process, without its BPF maps.",
		},
		{
			Name: "process_start_time_seconds", Kind: metric.Gauge, Unit: "seconds", Source: metric.Kernel, Origin: "/proc/self/stat",
			Help: "Start time of the scraped process, in seconds since 1970.",
		},
		{
			Name: "scrape_duration_seconds", Kind: metric.Gauge, Unit: "seconds", Source: metric.Agent, Origin: "the server's clock, not in /metrics",
			Help: "Time that the server waited for all metrics of a target.",
		},
		{
			Name: "scrape_samples_post_metric_relabeling", Kind: metric.Gauge, Unit: "samples", Source: metric.Agent, Origin: "the server, not in /metrics",
			Help: "Number of samples that the server stored from one scrape of a target.",
		},
		{
			Name: operation.Family, Kind: metric.Counter, Unit: "operations", Source: metric.Agent,
			Labels: []string{"workload", operation.Counter, operation.Basis, operation.Series}, Origin: "the application, which can forge it; stored by the server and not in /metrics",
			Help: "Operations of a workload: copies of the samples of the counter that scrape names for it (counter). instance is the machine of the workload. basis is configured, or guessed if no counter was named. series distinguishes several series of the counter apart.",
		},
		{
			Name: operation.Durations, Kind: metric.Histogram, Source: metric.Agent,
			Labels: []string{"workload", operation.Counter, operation.Unit, operation.Series}, Origin: "the application, which can forge it; stored by the server and not in /metrics",
			Help: "Durations of the operations of a workload: copies of the buckets of the histogram that scrape names as latency, or of a native histogram. They are in the unit of the label unit.",
		},
		{
			Name: "teescope:window_value", Kind: metric.Gauge, Source: metric.Agent, Labels: append([]string{"stat"}, box...), Origin: kept,
			Help: "Numbers of the box plot of a metric of a workload in the window of an analysis: minimum, whiskers, quartiles, median and maximum; also medians of the same time some weeks before (median_2w and median_4w). Box plots are stored for at most 128 workloads of all machines, and medians for all. Counters are in events per second, other metrics in their unit.",
		},
		{
			Name: "teescope:window_samples", Kind: metric.Gauge, Unit: "values", Source: metric.Agent, Labels: box, Origin: kept,
			Help: "Number of values in the box plot.",
		},
		{
			Name: "teescope:window_outliers", Kind: metric.Gauge, Unit: "values", Source: metric.Agent, Labels: box, Origin: kept,
			Help: "Number of values beyond the whiskers of the box plot.",
		},
	}
	all := make([]*metric.Desc, len(described))
	for i, d := range described {
		all[i] = metric.New(d)
	}
	return all
}

// shipped lists the families of a file of probes that the page shows.
func shipped(top, file, proven string) ([]*metric.Desc, error) {
	probes, err := probefile.Read(filepath.Join(top, file))
	if err != nil {
		return nil, err
	}
	var all []*metric.Desc
	for i := range probes {
		d := *userprobe.Family(&probes[i])
		d.Help += fmt.Sprintf(" Only with --probes.file %s.", file)
		d.Proven = proven
		all = append(all, metric.New(d))
	}
	return all, nil
}

// families lists all families of the reference. top is the directory of the repository.
func families(top string) ([]*metric.Desc, error) {
	probes, err := shipped(top, "deploy/probes/libcuda.yaml", "run on a stand-in for libcuda, not on a GPU")
	return append(append(app.Descriptions(), around()...), probes...), err
}
