// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// sample is one line of the exposition.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

// samples is one scrape.
type samples struct {
	t        *testing.T
	families map[string]*dto.MetricFamily
	all      []sample
}

// scrape reads /metrics once and parses it with Prometheus' own parser.
func (s *teescope) scrape(t *testing.T) samples {
	t.Helper()
	body, err := get("http://" + s.addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatalf("parsing the exposition: %v", err)
	}
	got := samples{t: t, families: families}
	for name, family := range families {
		for _, m := range family.Metric {
			one := sample{name: name, labels: map[string]string{}, value: value(m)}
			for _, l := range m.Label {
				one.labels[l.GetName()] = l.GetValue()
			}
			if m.Histogram != nil {
				got.all = append(got.all, parts(one, m.Histogram)...)
				continue
			}
			got.all = append(got.all, one)
		}
	}
	return got
}

// answers scrapes until no collector fails. On a busy machine one may have no time in a scrape.
func (s *teescope) answers(t *testing.T) (at samples) {
	t.Helper()
	eventually(t, testLimit, "a scrape in which no collector fails", func() error {
		at = s.scrape(t)
		return at.failed()
	})
	return at
}

// failed returns an error if a collector failed in a scrape.
func (s samples) failed() error {
	if !s.has("teescope_collector_success") {
		return errors.New("no teescope_collector_success")
	}
	for _, one := range s.all {
		if one.name == "teescope_collector_success" && one.value != 1 {
			return fmt.Errorf("the collector %s failed", one.labels["collector"])
		}
	}
	return nil
}

// parts returns the series of a histogram. Bounds have four digits.
func parts(of sample, h *dto.Histogram) []sample {
	all := []sample{
		{name: of.name + "_count", labels: of.labels, value: float64(h.GetSampleCount())},
		{name: of.name + "_sum", labels: of.labels, value: h.GetSampleSum()},
	}
	for _, b := range h.Bucket {
		labels := maps.Clone(of.labels)
		labels["le"] = fmt.Sprintf("%.4g", b.GetUpperBound())
		all = append(all, sample{name: of.name + "_bucket", labels: labels, value: float64(b.GetCumulativeCount())})
	}
	return all
}

func value(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	case m.Untyped != nil:
		return m.Untyped.GetValue()
	}
	return math.NaN()
}

func (s sample) matches(name string, pairs []string) bool {
	if s.name != name {
		return false
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if s.labels[pairs[i]] != pairs[i+1] {
			return false
		}
	}
	return true
}

// sum adds up the samples of a family with these labels: name, value, name, value.
func (s samples) sum(name string, pairs ...string) float64 {
	var total float64
	for _, one := range s.all {
		if one.matches(name, pairs) {
			total += one.value
		}
	}
	return total
}

// has reports whether there is such a sample.
func (s samples) has(name string, pairs ...string) bool {
	return slices.ContainsFunc(s.all, func(one sample) bool { return one.matches(name, pairs) })
}

// by adds up a family by one label and omits zeros.
func (s samples) by(label, name string, pairs ...string) map[string]float64 {
	sums := map[string]float64{}
	for _, one := range s.all {
		if one.matches(name, pairs) && one.value != 0 {
			sums[one.labels[label]] += one.value
		}
	}
	return sums
}

// delta returns the growth of a family between two scrapes.
func delta(before, after samples, name string, pairs ...string) float64 {
	return after.sum(name, pairs...) - before.sum(name, pairs...)
}

// table formats sums for a message, sorted by name.
func table(sums map[string]float64) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&b, " %s=%v", name, sums[name])
	}
	return b.String()
}

// wantExactly requires equal counts.
func wantExactly(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want exactly %v (%+v)", what, got, want, got-want)
	}
}

// wantWithin requires a relative difference of at most a share, plus an absolute difference.
func wantWithin(t *testing.T, what string, got, want, share, absolute float64) {
	t.Helper()
	off := math.Abs(got - want)
	if off > math.Abs(want)*share+absolute || math.IsNaN(off) {
		t.Errorf("%s: got %v, want %v within %v %%: off by %.2f %%", what, got, want, share*100, off/want*100)
		return
	}
	t.Logf("%s: %v against %v (%+.3f %%)", what, got, want, (got-want)/want*100)
}

// wantBetween requires low <= got <= high.
func wantBetween(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if got < low || got > high || math.IsNaN(got) {
		t.Errorf("%s: got %v, want between %v and %v", what, got, low, high)
		return
	}
	t.Logf("%s: %v in [%v, %v]", what, got, low, high)
}
