// SPDX-License-Identifier: Apache-2.0

package count

import (
	"maps"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

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
	n := Causes[float64]{PageFault: 3, Device: 4}
	f.Leave(w, n, Causes[bool]{PageFault: true, Timer: true}, "interrupts")
	f.Leave(w, n, Causes[bool]{PageFault: true, Timer: true}, "interrupts")
	got := map[string]float64{}
	for s, n := range w.Data.calls {
		got[s.labels[0]] = n
	}
	if want := map[string]float64{"page_fault": 6, "timer": 0}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
