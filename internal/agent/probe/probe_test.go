// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/bpf"
)

// Two objects that each have a probe emit into the same families, and nothing twice.
func TestTwoObjectsShareTheFamilies(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(emitter(func(ch chan<- prometheus.Metric) {
		emit := func(m prometheus.Metric) { ch <- m }
		NewFamilies("").Emit(&bpf.Object{}, []bpf.Status{{Probe: "fork", Mechanism: bpf.TypedTracepoint}}, emit)
		NewFamilies("more/").Emit(&bpf.Object{}, []bpf.Status{{Probe: "fault", Mechanism: bpf.NotAttached, Reason: "no such function"}}, emit)
	}))
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%v, %v", families, err)
	}
	for _, m := range families[0].Metric {
		text := m.String()
		if attached := m.Gauge.GetValue() == 1; attached == strings.Contains(text, "no such function") {
			t.Errorf("%s", text)
		}
	}
	for _, d := range NewFamilies("").All() {
		if !strings.HasPrefix(d.Name, "teescope_") || d.Help == "" {
			t.Errorf("%+v", d)
		}
	}
}

type emitter func(chan<- prometheus.Metric)

func (emitter) Describe(chan<- *prometheus.Desc)      {}
func (e emitter) Collect(ch chan<- prometheus.Metric) { e(ch) }
