// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
)

// node answers queries for these metrics of a machine.
type node map[string]float64

func (n node) Instant(_ context.Context, text string, _ time.Time) ([]query.Sample, error) {
	for metric, value := range n {
		if strings.Contains(text, metric) {
			return []query.Sample{{Labels: map[string]string{"release": "6.1.0-52-amd64"}, Value: value}}, nil
		}
	}
	return nil, nil
}

func (node) Range(context.Context, string, time.Time, time.Time, time.Duration) ([]query.Series, error) {
	return nil, nil
}

// The server knows the machine of the workload. What it has no plausible figure of is not known.
func TestMachineOfAServer(t *testing.T) {
	result := func(n node) engine.Result { return engine.Result{Machines: []engine.Machine{{Source: n}}} }
	m := MachineOf(t.Context(), result(node{
		"node_cpu_seconds_total": 8, "node_cpu_frequency_max_hertz": 2.8e6, "node_memory_MemTotal_bytes": 16 << 30, "sgx_epc_size_bytes": 128 << 20, "node_uname_info": 1,
	}), Of{Source: "http://central"})
	cpus, _ := m.CPUs()
	memory, _ := m.Memory()
	epc, _ := m.EPC()
	if cpus != 8 || memory != 16<<30 || epc != 128<<20 || m.Clock().Low != 2.8e9 || m.Facts["kernel"].Value != "6.1.0-52-amd64" || m.Source("epc_bytes") != "http://central" {
		t.Errorf("%+v", m)
	}
	m = MachineOf(t.Context(), result(node{"node_cpu_seconds_total": 1 << 20, "node_memory_MemTotal_bytes": math.NaN(), "sgx_epc_size_bytes": 0, "node_memory_SwapTotal_bytes": math.Inf(1)}), Of{})
	if len(m.Facts) > 0 {
		t.Errorf("%+v", m)
	}
	if m = MachineOf(t.Context(), engine.Result{}, Of{}); len(m.Facts) > 0 {
		t.Errorf("%+v", m)
	}
}
