// SPDX-License-Identifier: Apache-2.0

package count

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/agent/tee/sgx/aex"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/metric"
)

// Counts of weighted calls are fractional, and the emitted buckets must still add up.
func TestHistogramsOfSampledCallsAddUp(t *testing.T) {
	of := metric.New(metric.Desc{Name: "x_seconds", Kind: metric.Histogram, Bounds: seconds(), Labels: []string{"l"}})
	s := &Times{Seconds: 1.5}
	for i := range s.Bucket {
		s.Bucket[i] = 10.0 / 3
	}
	var d dto.Metric
	if err := s.histogram(time.Time{}, of, "v").Write(&d); err != nil {
		t.Fatal(err)
	}
	h, last := d.Histogram, uint64(0)
	if h.GetSampleCount() != 87 || h.GetSampleSum() != 1.5 || len(h.Bucket) != len(bounds) {
		t.Errorf("%v", h)
	}
	for _, b := range h.Bucket {
		if b.GetCumulativeCount() < last || b.GetCumulativeCount() > h.GetSampleCount() {
			t.Errorf("%v calls up to %v after %v", b.GetCumulativeCount(), b.GetUpperBound(), last)
		}
		last = b.GetCumulativeCount()
	}
}

// A cause whose tracepoint the kernel lacks is absent, and one that was not seen is zero.
func TestUnknownCausesAreAbsent(t *testing.T) {
	f, w := NewFamilies(), &Workload{}
	n := aex.Causes[float64]{aex.PageFault: 3, aex.Device: 4}
	f.Leave(w, n, aex.Causes[bool]{aex.PageFault: true, aex.Timer: true}, "interrupts")
	f.Leave(w, n, aex.Causes[bool]{aex.PageFault: true, aex.Timer: true}, "interrupts")
	got := map[string]float64{}
	for s, n := range w.Data.calls {
		got[s.labels[0]] = n
	}
	if want := map[string]float64{"page_fault": 6, "timer": 0}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// What a probe has counted that was attached late began then. The counter of another workload, and what exists, does not begin again.
func TestCountersBeginWithTheirProbes(t *testing.T) {
	began := time.Unix(1000, 0)
	f, r := NewFamilies(), workload.NewRegistry[Counts](4)
	w := r.Join(workload.Identity{Name: "a"}, began, began)
	AddSince(w, began.Add(-time.Minute), 3, f.ECalls, "early", "normal", "x")
	AddSince(w, began.Add(time.Minute), 4, f.ECalls, "late", "normal", "x")
	AddSince(w, began.Add(2*time.Minute), 5, f.ECalls, "late", "normal", "x")
	TimesOf(w, began.Add(time.Minute), f.ECallTime, "late", "x").Bucket[0] = 1
	Emit(r, func(m prometheus.Metric) {
		var d dto.Metric
		if err := m.Write(&d); err != nil {
			t.Fatal(err)
		}
		want, is := began, d.GetCounter().GetCreatedTimestamp()
		if d.Histogram != nil {
			is = d.Histogram.GetCreatedTimestamp()
		}
		if d.Histogram != nil || d.GetCounter().GetValue() == 9 {
			want = began.Add(time.Minute)
		}
		if !is.AsTime().Equal(want) {
			t.Errorf("%v began at %v, want %v", &d, is.AsTime(), want)
		}
	})
}
