// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func collect(t *testing.T, c *Collector) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	err := c.Collect(t.Context(), func(m prometheus.Metric) {
		var pb dto.Metric
		if err := m.Write(&pb); err != nil {
			t.Fatal(err)
		}
		got[pb.GetLabel()[0].GetValue()] = pb.GetGauge().GetValue()
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestOnlyWhatHoldsIsOne(t *testing.T) {
	c := New()
	if got, want := collect(t, c), map[string]float64{"capabilities": 0, "landlock": 0, "seccomp": 0, "user": 0}; !maps.Equal(got, want) {
		t.Errorf("at first: %v, want %v", got, want)
	}
	c.Hold(Capabilities)
	c.Hold(Seccomp)
	if got, want := collect(t, c), map[string]float64{"capabilities": 1, "landlock": 0, "seccomp": 1, "user": 0}; !maps.Equal(got, want) {
		t.Errorf("confined: %v, want %v", got, want)
	}
	if c.Name() != "sandbox" || len(c.Describe()) != 1 {
		t.Errorf("the collector is %q with %d families", c.Name(), len(c.Describe()))
	}
}
