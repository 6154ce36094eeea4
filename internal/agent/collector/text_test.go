// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/teescope/teescope/internal/lib/metric"
)

// listed emits samples that it was given.
type listed []prometheus.Metric

func (listed) Name() string             { return "listed" }
func (listed) Describe() []*metric.Desc { return nil }
func (l listed) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	for _, m := range l {
		emit(m)
	}
	return nil
}

func odd() listed {
	with := func(name string, k metric.Kind, help string, labels ...string) *metric.Desc {
		return metric.New(metric.Desc{Name: name, Kind: k, Help: help, Labels: labels})
	}
	plain := with("plain", metric.Gauge, "No labels.")
	total := with("calls_total", metric.Counter, "With \"quotes\", a \\ and\na line.", "a", "b", "c")
	bare := with("without_suffix", metric.Counter, "A counter of another exporter.", "a")
	untyped := with("node_vmstat", metric.Untyped, "")
	info := with("build_info", metric.Info, "Ünicode.", "version")
	all := listed{plain.Value(1), untyped.Value(math.Inf(-1)), info.Value(1, "1.0\n\"β\"\\")}
	for i, v := range []float64{0, 1, -1, 12, 0.1, 1e6, 1234567, 1 << 60, 1e21, -2.5e-7, math.NaN(), math.Inf(1)} {
		all = append(all, total.Value(v, fmt.Sprint(i), "", "x,}"), bare.Value(v, fmt.Sprint("\xc3\xa9", i)))
	}
	latency := metric.New(metric.Desc{
		Name: "latency_seconds", Kind: metric.Histogram, Help: "A histogram.", Labels: []string{"a", "b"}, Bounds: []float64{1e-6, 0.5, 1, 1e21},
	})
	waits := metric.New(metric.Desc{Name: "waits_seconds", Kind: metric.Histogram, Help: "Without labels.", Bounds: []float64{2}})
	for i, began := range []time.Time{{}, time.Now().Add(-time.Minute), time.Now().Add(-time.Hour)} {
		all = append(all, latency.Distribution(began, []uint64{0, 1, 1, 1 << 60}, 1<<60+7, 1.5e9, fmt.Sprint("\"\n\\é", i), ""))
	}
	return append(all, waits.Distribution(time.Time{}, []uint64{3}, 4, 12))
}

func written(t *testing.T, r *Registry, format expfmt.Format) string {
	t.Helper()
	var out bytes.Buffer
	if err := r.WriteText(&out, format); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The client library's writer is the reference: its text of the same samples has the same lines.
func TestTextIsWhatTheClientLibraryWrites(t *testing.T) {
	for _, format := range []expfmt.Format{expfmt.NewFormat(expfmt.TypeTextPlain), expfmt.NewFormat(expfmt.TypeOpenMetrics)} {
		beside := prometheus.NewRegistry()
		events := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "z_seconds", Help: "Others."})
		beside.MustRegister(events)
		r := NewRegistry(slog.New(slog.DiscardHandler), odd()).Beside(beside)
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		enc := expfmt.NewEncoder(&want, format)
		for _, f := range families {
			if err := enc.Encode(f); err != nil {
				t.Fatal(err)
			}
		}
		if c, ok := enc.(expfmt.Closer); ok {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		a, b := comparable(written(t, r, format)), comparable(want.String())
		if !slices.Equal(a, b) {
			t.Errorf("%s: we write\n%s\nthe library\n%s", format, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	}
}

// comparable splits a text into families, and sorts the families and their samples, because their order has no meaning.
func comparable(text string) []string {
	var families []string
	for _, family := range strings.Split(text, "# HELP ")[1:] {
		lines := strings.Split(strings.TrimSuffix(family, "\n"), "\n")
		if strings.HasPrefix(lines[0], "teescope_collector_duration") {
			continue // takes another time each time
		}
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "_created") || l == "# EOF" }) // have tests of their own
		if !strings.Contains(family, "le=") {
			slices.Sort(lines[2:])
		}
		families = append(families, strings.Join(lines, "\n"))
	}
	slices.Sort(families)
	return families
}

// The text is complete except for an invalid sample.
func TestUnfitSamples(t *testing.T) {
	a := metric.New(metric.Desc{Name: "test_a", Kind: metric.Gauge, Help: "A.", Labels: []string{"x"}})
	h := metric.New(metric.Desc{Name: "test_h", Kind: metric.Histogram, Help: "H.", Labels: []string{"x"}, Bounds: []float64{1}})
	again := metric.New(metric.Desc{Name: "test_a", Kind: metric.Gauge, Help: "A.", Labels: []string{"y"}})
	other := metric.New(metric.Desc{Name: "test_a", Kind: metric.Counter, Help: "A.", Labels: []string{"z"}})
	r := NewRegistry(slog.New(slog.DiscardHandler), listed{
		a.Value(1, "one"), a.Value(2, "one"), a.Value(3, "tw\xffo"), again.Value(4, "one"), other.Value(5, "one"),
		h.Distribution(time.Time{}, []uint64{1}, 2, 3, "one"), h.Distribution(time.Time{}, []uint64{7}, 7, 7, "one"),
	})
	var out bytes.Buffer
	err := r.WriteText(&out, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, reason := range []string{`test_a["one"] is collected twice`, "test_a is described twice and differently", `test_h["one"] is collected twice`} {
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("the error %v does not say that %s", err, reason)
		}
	}
	want := "# HELP test_a A.\n# TYPE test_a gauge\ntest_a{x=\"one\"} 1\ntest_a{x=\"tw\ufffdo\"} 3\ntest_a{y=\"one\"} 4\n" +
		"# HELP test_h H.\n# TYPE test_h histogram\ntest_h_bucket{x=\"one\",le=\"1\"} 1\ntest_h_bucket{x=\"one\",le=\"+Inf\"} 2\ntest_h_sum{x=\"one\"} 3\ntest_h_count{x=\"one\"} 2\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("wrote\n%s\nwant the end\n%s", out.String(), want)
	}
}

// Other metrics, such as a histogram, are written too.
func TestHistogramsAreWritten(t *testing.T) {
	h := prometheus.MustNewConstHistogram(prometheus.NewDesc("test_seconds", "H.", nil, nil), 3, 4.5, map[float64]uint64{1: 2})
	text := written(t, NewRegistry(slog.New(slog.DiscardHandler), listed{h}), expfmt.NewFormat(expfmt.TypeOpenMetrics))
	for _, line := range []string{`test_seconds_bucket{le="1.0"} 2`, "test_seconds_count 3", `teescope_collector_success{collector="listed"} 1.0`} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	if strings.Count(text, "# EOF\n") != 1 || !strings.HasSuffix(text, "# EOF\n") {
		t.Errorf("the text does not end once:\n%s", text)
	}
}

// gone is a client that has disconnected.
type gone struct{ writes int }

func (g *gone) Write([]byte) (int, error) { g.writes++; return 0, io.ErrClosedPipe }

func TestNothingIsWrittenAfterAnError(t *testing.T) {
	d := metric.New(metric.Desc{Name: "test_total", Kind: metric.Counter, Help: "A test.", Labels: []string{"workload", "syscall"}})
	var client gone
	if err := NewRegistry(slog.New(slog.DiscardHandler), many{d}).WriteText(&client, expfmt.NewFormat(expfmt.TypeTextPlain)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("WriteText() = %v", err)
	}
	if client.writes != 1 {
		t.Errorf("%d writes after the first has failed", client.writes-1)
	}
}

// A scrape of thousands of samples allocates two objects for each sample and little else. One more object for each sample would
// make scrapes slow.
func TestTextAllocatesLittle(t *testing.T) {
	d := metric.New(metric.Desc{Name: "test_total", Kind: metric.Counter, Help: "A test.", Labels: []string{"workload", "syscall"}})
	r := NewRegistry(slog.New(slog.DiscardHandler), many{d})
	perSample := testing.AllocsPerRun(5, func() {
		if err := r.WriteText(io.Discard, expfmt.NewFormat(expfmt.TypeOpenMetrics)); err != nil {
			t.Fatal(err)
		}
	}) / 5000
	if perSample > 2.1 {
		t.Errorf("%.2f allocations for each sample", perSample)
	}
}

// BenchmarkHistograms writes the histograms of 64 workloads with 19 bounds each, and the same number of histograms of the client
// library.
func BenchmarkHistograms(b *testing.B) {
	d := metric.New(metric.Desc{
		Name: "test_seconds", Kind: metric.Histogram, Help: "A test.", Labels: []string{"workload", "container", "pod", "namespace"}, Bounds: metric.Doubled(12, 19),
	})
	library := prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
	var own, theirs listed
	for w := range 64 {
		upTo, of := make([]uint64, 19), map[float64]uint64{}
		for i, bound := range d.Bounds {
			upTo[i] = uint64(1000 * i)
			of[bound] = upTo[i]
		}
		name := fmt.Sprint("workload", w)
		own = append(own, d.Distribution(time.Time{}, upTo, 20_000, 1.5, name, "", "", ""))
		theirs = append(theirs, prometheus.MustNewConstHistogram(library, 20_000, 1.5, of, name, "", "", ""))
	}
	for name, all := range map[string]listed{"none": nil, "own": own, "library": theirs} {
		b.Run(name, func(b *testing.B) {
			r := NewRegistry(slog.New(slog.DiscardHandler), all)
			b.ReportAllocs()
			for b.Loop() {
				if err := r.WriteText(io.Discard, expfmt.NewFormat(expfmt.TypeOpenMetrics)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkText5000(b *testing.B) {
	d := metric.New(metric.Desc{Name: "test_total", Kind: metric.Counter, Help: "A test.", Labels: []string{"workload", "syscall"}})
	r := NewRegistry(slog.New(slog.DiscardHandler), many{d})
	b.ReportAllocs()
	for b.Loop() {
		if err := r.WriteText(io.Discard, expfmt.NewFormat(expfmt.TypeOpenMetrics)); err != nil {
			b.Fatal(err)
		}
	}
}

// Only OpenMetrics has the start time of a counter or histogram. It is in the line after the sample, and only for series that are
// young and known to begin at that time.
func TestStartsOfCounters(t *testing.T) {
	calls := metric.New(metric.Desc{Name: "calls_total", Kind: metric.Counter, Help: "Calls.", Labels: []string{"workload"}})
	bare := metric.New(metric.Desc{Name: "calls", Kind: metric.Counter, Help: "Calls.", Labels: []string{"workload"}})
	size := metric.New(metric.Desc{Name: "size_bytes", Kind: metric.Gauge, Help: "Size.", Labels: []string{"workload"}})
	waits := metric.New(metric.Desc{Name: "waits_seconds", Kind: metric.Histogram, Help: "Waits.", Labels: []string{"workload"}, Bounds: []float64{1}})
	began := time.Now().Add(-time.Minute)
	r := NewRegistry(slog.New(slog.DiscardHandler), listed{
		calls.Since(began, 3, `yo"ung`), calls.Since(began.Add(-youth), 4, "old"), calls.Value(5, "unknown"),
		waits.Distribution(began, []uint64{9}, 9, 9, `yo"ung`), waits.Distribution(time.Time{}, []uint64{9}, 9, 9, "unknown"),
		calls.Since(time.Now().Add(time.Hour), 6, "future"), bare.Since(began, 7, "bare"), size.Since(began, 8, "gauge"),
	})
	text := written(t, r, expfmt.NewFormat(expfmt.TypeOpenMetrics))
	want := fmt.Sprintf("calls_total{workload=\"yo\\\"ung\"} 3.0\ncalls_created{workload=\"yo\\\"ung\"} %.3f\n", float64(began.UnixMilli())/1e3)
	ofHistogram := fmt.Sprintf("waits_seconds_count{workload=\"yo\\\"ung\"} 9\nwaits_seconds_created{workload=\"yo\\\"ung\"} %.3f\n", float64(began.UnixMilli())/1e3)
	if !strings.Contains(text, want) || !strings.Contains(text, ofHistogram) || strings.Count(text, "_created{") != 2 {
		t.Errorf("want only\n%s%s\ngot\n%s", want, ofHistogram, text)
	}
	if text := written(t, r, expfmt.NewFormat(expfmt.TypeTextPlain)); strings.Contains(text, "_created{") {
		t.Errorf("the text format has starts, which every scraper would take for gauges:\n%s", text)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, at := range []*timestamppb.Timestamp{m.GetCounter().GetCreatedTimestamp(), m.GetHistogram().GetCreatedTimestamp()} {
				if at != nil && at.AsTime().UnixMilli() == began.UnixMilli() {
					said[f.GetName()] = true
				}
			}
		}
	}
	if !said["calls_total"] || !said["waits_seconds"] {
		t.Errorf("the format of protocol buffers has starts of %v only", said)
	}
}

func TestStartsAreBounded(t *testing.T) {
	d := metric.New(metric.Desc{Name: "calls_total", Kind: metric.Counter, Help: "Calls.", Labels: []string{"workload"}})
	var all listed
	for i := range maxStarts + 10 {
		all = append(all, d.Since(time.Now(), 1, fmt.Sprint(i)))
	}
	r := NewRegistry(slog.New(slog.DiscardHandler), all)
	for range 2 {
		text := written(t, r, expfmt.NewFormat(expfmt.TypeOpenMetrics))
		if n, total := strings.Count(text, "_created{"), strings.Count(text, "_total{"); n != maxStarts || total != len(all) {
			t.Errorf("%d starts of %d counters", n, total)
		}
	}
}
