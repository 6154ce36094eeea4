// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/lib/metric"
)

// fake emits one sample, calls a function and emits another sample.
type fake struct {
	name string
	desc *metric.Desc
	do   func(context.Context) error
}

func newFake(name string, do func(context.Context) error) *fake {
	return &fake{name: name, do: do, desc: metric.New(metric.Desc{
		Name: "test_" + name, Kind: metric.Gauge, Labels: []string{"when"}, Help: "A test.",
	})}
}

func (f *fake) Name() string             { return f.name }
func (f *fake) Describe() []*metric.Desc { return []*metric.Desc{f.desc} }

func (f *fake) Collect(ctx context.Context, emit func(prometheus.Metric)) error {
	emit(f.desc.Value(1, "before"))
	if f.do != nil {
		if err := f.do(ctx); err != nil {
			return err
		}
	}
	emit(f.desc.Value(1, "after"))
	return nil
}

// lines formats what was gathered as NAME{label values} VALUE. It omits the values of durations.
func lines(t *testing.T, families []*dto.MetricFamily) []string {
	t.Helper()
	var out []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			value := " 0"
			if m.GetGauge().GetValue() == 1 {
				value = " 1"
			}
			if strings.HasSuffix(f.GetName(), "_seconds") {
				value = ""
			}
			out = append(out, f.GetName()+"{"+strings.Join(labels, ",")+"}"+value)
		}
	}
	return out
}

func gather(t *testing.T, r *Registry) []string {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return lines(t, families)
}

func TestOneFailureCostsOnlyItself(t *testing.T) {
	var log bytes.Buffer
	r := NewRegistry(slog.New(slog.NewTextHandler(&log, nil)),
		newFake("bad", func(context.Context) error { return errors.New("no such file") }),
		newFake("good", nil),
		newFake("panics", func(context.Context) error { panic("a bug") }),
	)
	want := []string{
		"teescope_collector_duration_seconds{bad}", "teescope_collector_duration_seconds{good}", "teescope_collector_duration_seconds{panics}",
		"teescope_collector_success{bad} 0", "teescope_collector_success{good} 1", "teescope_collector_success{panics} 0",
		"test_bad{before} 1", "test_good{after} 1", "test_good{before} 1", "test_panics{before} 1",
	}
	if got := gather(t, r); !slices.Equal(got, want) {
		t.Errorf("gathered:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, s := range []string{"collector=bad", "no such file", "collector=panics", "panic: a bug"} {
		if !strings.Contains(log.String(), s) {
			t.Errorf("the log lacks %q:\n%s", s, log.String())
		}
	}
}

// TestSlowCollector checks that a hanging collector ends at the timeout, loses only later samples, is
// not started a second time, and runs again after it has ended.
func TestSlowCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var running atomic.Int32
		var log bytes.Buffer
		r := NewRegistry(slog.New(slog.NewTextHandler(&log, nil)),
			newFake("good", nil),
			newFake("slow", func(context.Context) error { // ignores its context, as a stuck read does
				if running.Add(1) > 1 {
					t.Error("runs twice at a time")
				}
				<-release
				running.Add(-1)
				return nil
			}),
		)
		start := time.Now()
		got := gather(t, r)
		if d := time.Since(start); d != timeout {
			t.Errorf("the scrape took %v, want %v", d, timeout)
		}
		for _, s := range []string{"teescope_collector_success{good} 1", "teescope_collector_success{slow} 0", "test_slow{before} 1", "test_good{after} 1"} {
			if !slices.Contains(got, s) {
				t.Errorf("lacks %s: %q", s, got)
			}
		}
		start = time.Now()
		got = gather(t, r)
		if d := time.Since(start); d != 0 || !slices.Contains(got, "teescope_collector_success{slow} 0") || slices.Contains(got, "test_slow{before} 1") {
			t.Errorf("while busy the scrape took %v and gave %q", d, got)
		}
		time.Sleep(time.Second)
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "teescope_collector_duration_seconds" && m.GetLabel()[0].GetValue() == "slow" && m.GetGauge().GetValue() != (timeout+time.Second).Seconds() {
					t.Errorf("a run that has not ended after %v has the duration %v s", timeout+time.Second, m.GetGauge().GetValue())
				}
			}
		}
		if n := strings.Count(log.String(), "collector failed"); n != 1 {
			t.Errorf("one run that hangs is logged %d times:\n%s", n, &log)
		}
		if err := r.Hangs(); err != nil {
			t.Errorf("after %v: %v", timeout, err)
		}
		time.Sleep(hangsAfter)
		if err := r.Hangs(); err == nil || !strings.HasSuffix(err.Error(), ": slow") {
			t.Errorf("after a minute Hangs() = %v, want the name of the collector", err)
		}
		close(release)
		synctest.Wait()
		if err := r.Hangs(); err != nil {
			t.Errorf("after its end: %v", err)
		}
		if got = gather(t, r); !slices.Contains(got, "teescope_collector_success{slow} 1") || !slices.Contains(got, "test_slow{after} 1") {
			t.Errorf("afterwards: %q", got)
		}
	})
}

func TestScrapesAreSerialised(t *testing.T) {
	var running atomic.Int32
	r := NewRegistry(slog.New(slog.DiscardHandler), newFake("one", func(context.Context) error {
		if running.Add(1) > 1 {
			t.Error("runs twice at a time")
		}
		time.Sleep(time.Millisecond)
		running.Add(-1)
		return nil
	}))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := r.Gather(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestDescriptions(t *testing.T) {
	r := NewRegistry(slog.New(slog.DiscardHandler), newFake("a", nil))
	var names []string
	for _, d := range r.Descriptions() {
		names = append(names, d.Name)
	}
	if want := []string{"teescope_collector_success", "teescope_collector_duration_seconds", "test_a"}; !slices.Equal(names, want) {
		t.Errorf("Descriptions() = %v, want %v", names, want)
	}
}

func BenchmarkGather5000(b *testing.B) {
	desc := metric.New(metric.Desc{Name: "test_total", Kind: metric.Counter, Help: "A test.", Labels: []string{"workload", "syscall"}})
	r := NewRegistry(slog.New(slog.DiscardHandler), many{desc})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

// many emits 5000 samples, and allocates nothing else.
type many struct{ desc *metric.Desc }

func (many) Name() string               { return "many" }
func (m many) Describe() []*metric.Desc { return []*metric.Desc{m.desc} }

func (m many) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	letters := strings.Repeat("x", 100)
	for i := range 100 {
		for j := range 50 {
			emit(m.desc.Value(1, letters[:i+1], letters[:j+1]))
		}
	}
	return nil
}
