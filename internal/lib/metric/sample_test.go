// SPDX-License-Identifier: Apache-2.0

package metric

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// A start that is too late makes a rate too high. So after a change of the clock the earlier of two times counts.
func TestStarted(t *testing.T) {
	d := New(Desc{Name: "a_total", Kind: Counter, Help: "A."})
	now := time.Now()
	began := now.Add(-time.Minute)
	start := func(now time.Time) time.Duration {
		return Started(d.Since(began, 1).(*Sample).Began, now).Sub(began.Round(0))
	}
	if got := start(now); got != 0 {
		t.Errorf("the start is %v off", got)
	}
	// Round removes the monotonic time, which is how a clock that jumped looks from here.
	if got := start(now.Add(time.Hour).Round(0)); got != 0 {
		t.Errorf("with the clock ahead the start is %v off", got)
	}
	if s := New(Desc{Name: "a", Kind: Gauge, Help: "A."}).Since(began, 1).(*Sample); !s.Began.IsZero() {
		t.Error("a gauge has a start")
	}
}

// Samples that share the values of all labels but the last one are those that have a list of their own.
func TestTheLastLabelMayBeApart(t *testing.T) {
	d, began := New(Desc{Name: "a_total", Kind: Counter, Help: "A.", Labels: []string{"of", "call"}}), time.Unix(1000, 0)
	shared := []string{"redis"}
	for _, call := range []string{"read", "write"} {
		var own, apart dto.Metric
		for m, to := range map[prometheus.Metric]*dto.Metric{d.Since(began, 7, "redis", call): &own, d.With(began, 7, shared, call): &apart} {
			if err := m.Write(to); err != nil {
				t.Fatal(err)
			}
		}
		if !proto.Equal(&own, &apart) {
			t.Errorf("%v, want %v", &apart, &own)
		}
	}
	if len(shared) != 1 {
		t.Errorf("the shared list is %q", shared)
	}
	defer func() {
		if recover() == nil {
			t.Error("a sample has a label too many")
		}
	}()
	d.With(began, 7, []string{"redis", "read"}, "write")
}
