// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/teescope/teescope/internal/agent/collector"
	"github.com/teescope/teescope/internal/app"
	"github.com/teescope/teescope/internal/lib/metric"
)

// enclavesPerNode is the number of enclaves of a small agent. 1,000 of them have the 6,000 enclaves of TEEMon's section 5.4.
const enclavesPerNode = 6

// onNode lists the families of a small agent, and the values of the labels that are not those of a workload or an enclave.
var onNode = []struct {
	name   string
	values map[string]string
}{
	{"teescope_build_info", map[string]string{"version": "0.1.0", "revision": "bench", "goversion": "go"}},
	{"node_cpu_seconds_total", map[string]string{"cpu": "0 1 2 3", "mode": "user system idle iowait steal"}},
	{"sgx_epc_size_bytes", map[string]string{"node": "0"}},
	{"sgx_epc_free_bytes", nil},
	{"sgx_epc_pages_evicted_total", nil},
	{"sgx_epc_pages_loaded_back_total", nil},
	{"sgx_epc_faults_total", nil},
	{"sgx_enclaves", nil},
	{"teescope_workload_info", map[string]string{"kind": "program", "tee": "sgx", "runtime": "gramine-sgx"}},
	{"teescope_syscalls_total", map[string]string{"syscall": "read write futex epoll_wait recvfrom sendto openat close clock_gettime mmap poll fsync"}},
	{"teescope_context_switches_total", map[string]string{"kind": "voluntary involuntary"}},
	{"teescope_page_faults_total", map[string]string{"mode": "user kernel", "reason": "not_present sgx"}},
	{"teescope_cpu_seconds_total", map[string]string{"mode": "user system"}},
	{"teescope_run_queue_wait_seconds_total", nil},
	{"teescope_cpu_migrations_total", nil},
	{"teescope_processes", nil},
	{"teescope_threads", nil},
	{"teescope_resident_memory_bytes", nil},
	{"teescope_enclave_transitions_total", map[string]string{"kind": "eenter eexit aex", "source": "gramine"}},
	{"sgx_workload_enclaves", nil},
	{"sgx_workload_faults_total", nil},
	{"sgx_workload_paged_out_bytes", nil},
	{"sgx_workload_pages_added_total", nil},
	{"sgx_workload_pages_evicted_total", nil},
	{"sgx_workload_pages_loaded_back_total", nil},
	{"sgx_workload_resident_bytes", nil},
	{"sgx_workload_size_bytes", nil},
	{"sgx_workload_working_set_bytes", nil},
	{"sgx_enclave_info", map[string]string{"debug": "false", "seen": "created"}},
	{"sgx_enclave_resident_bytes", nil},
	{"sgx_enclave_size_bytes", nil},
	{"sgx_enclave_faults_total", nil},
	{"sgx_enclave_pages_evicted_total", nil},
	{"sgx_enclave_pages_loaded_back_total", nil},
}

// node is an agent on a machine with a few enclaves. Its families, HELP texts and their format are those of the product; only
// the values are made. It implements collector.Collector.
type node struct {
	*collector.Registry
	series []one
	born   time.Time
}

// one is a series of a node.
type one struct {
	of     *metric.Desc
	labels []string
	rate   float64 // per second; of a gauge its mean
}

// familiesOf returns the descriptions of the families of a node.
func familiesOf() ([]*metric.Desc, error) {
	all := app.Descriptions()
	var found []*metric.Desc
	for _, f := range onNode {
		i := slices.IndexFunc(all, func(d *metric.Desc) bool { return d.Name == f.name })
		if i < 0 {
			return nil, fmt.Errorf("the agent has no family %s", f.name)
		}
		for label := range f.values {
			if !slices.Contains(all[i].Labels, label) {
				return nil, fmt.Errorf("%s has no label %s", f.name, label)
			}
		}
		found = append(found, all[i])
	}
	return found, nil
}

func newNode(families []*metric.Desc) *node {
	n := &node{born: time.Now()}
	for i, d := range families {
		times := 1
		if slices.Contains(d.Labels, "workload") || slices.Contains(d.Labels, "enclave") {
			times = enclavesPerNode
		}
		for w := range times {
			for _, values := range combined(d.Labels, onNode[i].values, w) {
				rate := 1000 * rand.ExpFloat64() //nolint:gosec // no secret
				switch d.Unit {
				case "bytes":
					rate *= 1 << 16
				case "seconds":
					rate = rand.Float64() / 4 //nolint:gosec // no secret
				}
				n.series = append(n.series, one{d, values, rate})
			}
		}
	}
	n.Registry = collector.NewRegistry(slog.New(slog.DiscardHandler), n)
	return n
}

// combined returns the label values of all series of a family and a workload.
func combined(names []string, values map[string]string, w int) [][]string {
	all := [][]string{nil}
	for _, name := range names {
		var of []string
		switch name {
		case "workload":
			of = []string{fmt.Sprintf("shop-%d", w)}
		case "enclave":
			of = []string{fmt.Sprintf("%#x", 0x7f0000+w)}
		case "pid":
			of = []string{fmt.Sprint(1000 + w)}
		default:
			if of = strings.Fields(values[name]); len(of) == 0 {
				of = []string{""}
			}
		}
		var next [][]string
		for _, before := range all {
			for _, value := range of {
				next = append(next, append(slices.Clone(before), value))
			}
		}
		all = next
	}
	return all
}

// Name implements collector.Collector.
func (*node) Name() string { return "simulated" }

// Describe implements collector.Collector.
func (n *node) Describe() []*metric.Desc {
	var all []*metric.Desc
	for _, s := range n.series {
		if !slices.Contains(all, s.of) {
			all = append(all, s.of)
		}
	}
	return all
}

// Collect implements collector.Collector. Values vary, because regular ones would compress too well.
func (n *node) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	age := time.Since(n.born).Seconds()
	for _, s := range n.series {
		v := s.rate
		switch s.of.Kind {
		case metric.Info:
			v = 1
		case metric.Counter:
			v *= age + 0.1*rand.Float64()/(1+age) //nolint:gosec // no secret
		default:
			v *= 0.9 + 0.2*rand.Float64() //nolint:gosec // no secret
		}
		if s.of.Unit != "seconds" {
			v = float64(int64(v))
		}
		emit(s.of.Value(v, s.labels...))
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	format := expfmt.NegotiateAccept(r.Header, expfmt.NewFormat(expfmt.TypeOpenMetrics), expfmt.NewFormat(expfmt.TypeTextPlain))
	w.Header().Set("Content-Type", string(format))
	_ = n.WriteText(w, format) // the client has gone
}
