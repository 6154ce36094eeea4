// SPDX-License-Identifier: Apache-2.0

package build

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func TestCollect(t *testing.T) {
	c := New(Info{Version: "1.2.3", Revision: "abc", GoVersion: "go1"})
	var got []string
	err := c.Collect(t.Context(), func(m prometheus.Metric) {
		var pb dto.Metric
		if err := m.Write(&pb); err != nil {
			t.Fatal(err)
		}
		for _, l := range pb.GetLabel() {
			got = append(got, l.GetName()+"="+l.GetValue())
		}
	})
	want := []string{"goversion=go1", "revision=abc", "version=1.2.3"}
	if err != nil || len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("Collect() = %v, %v; want %v", got, err, want)
	}
	if c.Name() != "build" || len(c.Describe()) != 1 {
		t.Errorf("the collector is %q with %d families", c.Name(), len(c.Describe()))
	}
}
