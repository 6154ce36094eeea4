// SPDX-License-Identifier: Apache-2.0

package cardinality

import (
	"context"
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/lib/exposition"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/server/prom"
)

// maxExposition is the maximum size of an exposition, in bytes. An agent with 128 workloads has half a MiB.
const maxExposition = 64 << 20

// OfAgent counts the series of one scrape of an agent.
func OfAgent(ctx context.Context, s *remote.Server) (*Count, error) {
	s = s.TrimPath("/metrics")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL("metrics"), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("querying %s: %w", s.Target(), err)
	}
	req.Header.Set("Accept", exposition.Accept)
	resp, err := s.Client().Do(req)
	if err != nil {
		return nil, s.Explain(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxExposition+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the response of %s: %w", s.Target(), err)
	case resp.StatusCode != http.StatusOK:
		return nil, s.ExplainStatus(resp.StatusCode, body)
	case len(body) > maxExposition:
		return nil, fmt.Errorf("the response of %s is larger than %d MiB", s.Target(), maxExposition>>20)
	}
	return ofText(s.Target(), body)
}

// ofText counts the series of an exposition in Prometheus' text format.
func ofText(target string, body []byte) (*Count, error) {
	families, err := exposition.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of %s: %w", target, err)
	}
	if len(families) == 0 {
		return nil, fmt.Errorf("%s answers without metrics: name an agent with --connect, or a database with --server", target)
	}
	t := tally{metrics: map[string]*tallied{}, values: map[string]map[string]bool{}}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			t.add(f.GetName(), m)
		}
	}
	metrics, values := make(map[string]*Metric, len(t.metrics)), make(map[string]int, len(t.values))
	for name, m := range t.metrics {
		labels := make(map[string]int, len(m.values))
		for label, all := range m.values {
			labels[label] = len(all)
		}
		metrics[name] = &Metric{Name: name, Series: m.series, Labels: labels}
	}
	for label, all := range t.values {
		values[label] = len(all)
	}
	c := newCount(target, metrics, values)
	stored := c.Series - t.merged
	c.Workloads, c.Stored = values[byWorkload], &stored
	return c, nil
}

// tally counts the series of an exposition while it is read.
type tally struct {
	metrics map[string]*tallied
	values  map[string]map[string]bool // by label
	merged  int                        // series that a teescope server saves by its native histograms
}

type tallied struct {
	series int
	values map[string]map[string]bool // by label
}

// add counts the series of one sample of a family.
func (t *tally) add(name string, m *dto.Metric) {
	switch {
	case m.GetHistogram() != nil:
		buckets := m.GetHistogram().GetBucket()
		for _, b := range buckets {
			t.one(name+"_bucket", m, "le", fmt.Sprint(b.GetUpperBound()))
		}
		t.one(name+"_sum", m, "", "")
		t.one(name+"_count", m, "", "")
		if prom.StoresAsNative(name) {
			t.merged += len(buckets) + 1
		}
	case m.GetSummary() != nil:
		for _, q := range m.GetSummary().GetQuantile() {
			t.one(name, m, "quantile", fmt.Sprint(q.GetQuantile()))
		}
		t.one(name+"_sum", m, "", "")
		t.one(name+"_count", m, "", "")
	default:
		t.one(name, m, "", "")
	}
}

// one counts one series. It may have a label more than its sample.
func (t *tally) one(name string, m *dto.Metric, label, value string) {
	of := t.metrics[name]
	if of == nil {
		of = &tallied{values: map[string]map[string]bool{}}
		t.metrics[name] = of
	}
	of.series++
	for _, l := range m.GetLabel() {
		t.label(of, l.GetName(), l.GetValue())
	}
	t.label(of, label, value)
}

// label counts a value of a label. An empty value is not a label.
func (t *tally) label(of *tallied, name, value string) {
	if name == "" || value == "" {
		return
	}
	for _, in := range []map[string]map[string]bool{of.values, t.values} {
		if in[name] == nil {
			in[name] = map[string]bool{}
		}
		in[name][value] = true
	}
}
