// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// values are the samples by their direction; the last step has none.
func values(t *testing.T, c *Collector) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	err := c.Collect(t.Context(), func(m prometheus.Metric) {
		var d dto.Metric
		if err := m.Write(&d); err != nil {
			t.Fatal(err)
		}
		direction := ""
		for _, l := range d.Label {
			direction = l.GetValue()
		}
		all[direction] = d.GetCounter().GetValue() + d.GetGauge().GetValue()
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestStepsAreCountedAndTold(t *testing.T) {
	var log bytes.Buffer
	c := New(slog.New(slog.NewTextHandler(&log, nil)))
	c.note(0)
	if got := values(t, c); len(got) != 2 || got["forward"] != 0 || got["back"] != 0 || log.Len() > 0 {
		t.Errorf("without a change of the clock: %v, %q", got, log.String())
	}
	c.note(time.Hour)
	c.note(-2 * time.Hour)
	if got := values(t, c); got["forward"] != 1 || got["back"] != 1 || got[""] != -7200 {
		t.Errorf("values %v", got)
	}
	for _, want := range []string{"the clock of this machine was set", "by=1h0m0s", "by=-2h0m0s"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}

func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := New(slog.New(slog.DiscardHandler)).Run(ctx); err != nil {
		t.Error(err)
	}
}
