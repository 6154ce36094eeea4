// SPDX-License-Identifier: Apache-2.0

// Command cadvisor serves cAdvisor's metrics of control groups and of the machine. It uses cAdvisor's library with the
// settings of cAdvisor's own program without flags. It omits that program's page, its API and its lookups in container
// runtimes. It is a peer for comparison, in its own module, and no part of teescope.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/google/cadvisor/lib/cache/memory"
	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/manager"
	"github.com/google/cadvisor/lib/metrics"
	info "github.com/google/cadvisor/lib/model"
	"github.com/google/cadvisor/lib/utils/sysfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/utils/clock"
)

// cAdvisor's defaults (docs/runtime_options.md): housekeeping_interval and storage_duration.
const (
	housekeeping = time.Second
	kept         = 2 * time.Minute
)

func main() {
	addr := flag.String("listen", "127.0.0.1:8080", "address to serve on")
	flag.Parse()
	if err := serve(*addr); err != nil {
		fmt.Fprintln(os.Stderr, "cadvisor:", err)
		os.Exit(1)
	}
}

func serve(addr string) error {
	// The default of -disable_metrics.
	included := container.AllMetrics.Difference(container.MetricSet{
		container.NetworkAdvancedTcpUsageMetrics: {}, container.CPUTopologyMetrics: {}, container.CPUSetMetrics: {},
		container.HugetlbUsageMetrics: {}, container.MemoryNumaMetrics: {}, container.ProcessMetrics: {},
		container.ReferencedMemoryMetrics: {}, container.ResctrlMetrics: {}, container.ProcessSchedulerMetrics: {},
		container.NetworkTcpUsageMetrics: {}, container.NetworkUdpUsageMetrics: {},
	})
	interval, dynamic := housekeeping, true
	m, err := manager.New(memory.New(kept, nil), sysfs.NewRealSysFs(),
		manager.HousekeepingConfig{Interval: &interval, AllowDynamic: &dynamic}, included, nil, nil, "", 0)
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := m.Start(); err != nil {
		return fmt.Errorf("starting the manager: %w", err)
	}
	all := prometheus.NewRegistry()
	all.MustRegister(
		metrics.NewPrometheusCollector(m, metrics.DefaultContainerLabels, included, clock.RealClock{},
			info.RequestOptions{IdType: info.TypeName, Count: 1, Recursive: true}),
		metrics.NewPrometheusMachineCollector(m, included),
	)
	server := &http.Server{Addr: addr, Handler: promhttp.HandlerFor(all, promhttp.HandlerOpts{}), ReadHeaderTimeout: 5 * time.Second}
	return server.ListenAndServe()
}
