// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// agentText is one answer of an agent. %s are lines of counters and their starts.
const agentText = "# TYPE calls counter\n%s# TYPE up_to gauge\nup_to 1\n# EOF\n"

// scrapedOnce returns what a server stores of one answer of itself or of an agent, as samples from the oldest on.
func scrapedOnce(t *testing.T, remote bool, lines string) *Server {
	t.Helper()
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0")
		fmt.Fprintf(w, agentText, lines)
	})
	o := options(t.TempDir(), &logtest.Log{})
	o.Self = answer
	if remote {
		srv := httptest.NewServer(answer)
		t.Cleanup(srv.Close)
		o.Self, o.Targets = nil, []string{strings.TrimPrefix(srv.URL, "http://")}
	}
	s, _ := start(t, o)
	waittest.Until(t, "three samples", func() bool {
		_, times, _ := samples(t, s, "up_to[1m]")
		return len(times) >= 3
	})
	return s
}

func TestStartsOfCountersAreStored(t *testing.T) {
	began := float64(time.Now().Add(-20*time.Second).UnixMilli()) / 1e3
	lines := fmt.Sprintf(`calls_total{w="new"} 10000
calls_created{w="new"} %.3f
calls_total{w="unknown"} 7
calls_total{w="future"} 8
calls_created{w="future"} %.3f
calls_total{w="other"} 9
calls_created{w="nobody"} %.3f
calls_total{w="nonsense"} 10
calls_created{w="nonsense"} NaN
calls_total{w="ancient"} 11
calls_created{w="ancient"} 1.5
`, began, began+1e6, began)
	for name, remote := range map[string]bool{"own": false, "remote": true} {
		t.Run(name, func(t *testing.T) {
			s := scrapedOnce(t, remote, lines)
			for w, want := range map[string]float64{"unknown": 7, "future": 8, "other": 9, "nonsense": 10, "ancient": 11} {
				_, _, values := samples(t, s, fmt.Sprintf(`calls_total{w=%q}[1m]`, w))
				if len(values) < 3 || slices.Min(values) != want {
					t.Errorf("%s: %v, want only %v", w, values, want)
				}
			}
			_, times, values := samples(t, s, `calls_total{w="new"}[1m]`)
			if len(values) < 4 || values[0] != 0 || times[0] != began || slices.Min(values[1:]) != 10000 {
				t.Errorf("at %v: %v, want 0 at %v and then 10000", times, values, began)
			}
			if _, _, values := samples(t, s, `calls_created{w!="nobody"}[1m]`); values != nil {
				t.Errorf("a start is stored as a series: %v", values)
			}
		})
	}
}

// What a new histogram has counted before its first scrape is in its rates, and in its quantiles the same as those of the classic
// series. A histogram without a start has none.
func TestStartsOfNativeHistogramsAreStored(t *testing.T) {
	const name = "teescope_block_io_latency_seconds"
	began := float64(time.Now().Add(-20*time.Second).UnixMilli()) / 1e3
	var lines strings.Builder
	for _, w := range []string{"new", "unknown"} {
		for _, metric := range []string{name, "sgx_classic_seconds"} {
			fmt.Fprintf(&lines, "%s_bucket{w=%q,le=\"1.6384e-05\"} 10\n%[1]s_bucket{w=%[2]q,le=\"3.2768e-05\"} 90\n%[1]s_bucket{w=%[2]q,le=\"+Inf\"} 100\n", metric, w)
			fmt.Fprintf(&lines, "%s_sum{w=%q} 0.5\n%[1]s_count{w=%[2]q} 100\n", metric, w)
			if w == "new" && metric == name {
				fmt.Fprintf(&lines, "%s_created{w=%q} %.3f\n", metric, w, began)
			}
		}
	}
	s := scrapedOnce(t, false, "# TYPE "+name+" histogram\n"+lines.String())
	for expr, want := range map[string]float64{
		// 80 of 100 are from 16 to 33 us: the middle one is the 40th of them.
		`histogram_quantile(0.5, increase(` + name + `{w="new"}[5m]))`: 1.6384e-05 * 1.5,
		`histogram_quantile(0.5, sgx_classic_seconds_bucket{w="new"})`: 1.6384e-05 * 1.5,
		`histogram_count(` + name + `{w="unknown"})`:                   100,
		`histogram_count(` + name + ` offset 10s)`:                     0, // of the new one only
		`increase(sgx_classic_seconds_count{w="new"}[5m])`:             0,
	} {
		var data struct{ Result []struct{ Value [2]any } }
		get(t, s.api, "/query?query="+url.QueryEscape(expr), &data)
		if len(data.Result) != 1 {
			t.Errorf("%s has %d values, want one", expr, len(data.Result))
			continue
		}
		text, _ := data.Result[0].Value[1].(string)
		if got, err := strconv.ParseFloat(text, 64); err != nil || math.Abs(got-want) > 1e-9*max(1, want) {
			t.Errorf("%s is %v, want %v", expr, text, want)
		}
	}
	if _, _, values := samples(t, s, name+`_created[1m]`); values != nil {
		t.Errorf("a start is stored as a series: %v", values)
	}
}

// A series that is there gets no zero, also when the clock of an agent is ahead.
func TestAKnownCounterGetsNoStart(t *testing.T) {
	s, _ := start(t, options(t.TempDir(), &logtest.Log{}))
	now := time.Now().UnixMilli()
	for _, one := range []struct{ t, start int64 }{{now - 2000, now - 1000}, {now, now - 500}} {
		app := s.db.AppenderV2(t.Context())
		a := &startsAppender{AppenderV2: app, known: app.(storage.GetRef)}
		for _, sample := range []struct {
			name string
			v    float64
		}{{"calls_total", 5}, {"calls_created", float64(one.start) / 1e3}} {
			if _, err := a.Append(0, labels.FromStrings("__name__", sample.name, "w", "it"), 0, one.t, sample.v, nil, nil, storage.AppendV2Options{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, values := samples(t, s, "calls_total[1m]"); !slices.Equal(values, []float64{5, 5}) {
		t.Errorf("%v, want no zero", values)
	}
}

// An answer of counters without any start takes time in proportion to its size. The scraper's own option would read the rest
// of the family for each, so eight times as many would take 64 times as long.
//
// False alarms: none. The shortest of all scrapes are compared, until they agree.
func TestCountersWithoutStartTakeLinearTime(t *testing.T) {
	o := options(t.TempDir(), &logtest.Log{})
	o.Self, o.Interval = nil, 2*time.Second
	sizes := [2]int{2_500, 20_000}
	for _, n := range sizes {
		var lines bytes.Buffer
		for i := range n {
			fmt.Fprintf(&lines, "calls_total{w=\"%d\"} 1\n", i)
		}
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0")
			fmt.Fprintf(w, agentText, lines.String())
		}))
		defer srv.Close()
		o.Targets = append(o.Targets, strings.TrimPrefix(srv.URL, "http://"))
	}
	s, _ := start(t, o)
	var shortest [2]float64
	waittest.Until(t, "scrapes in linear time", func() bool {
		for i, address := range o.Targets {
			_, _, took := samples(t, s, fmt.Sprintf("scrape_duration_seconds{instance=%q}[10m]", address))
			_, _, scraped := samples(t, s, fmt.Sprintf("scrape_samples_scraped{instance=%q}[10m]", address))
			shortest[i] = math.Inf(1)
			for j := range min(len(took), len(scraped)) {
				if int(scraped[j]) > sizes[i] {
					shortest[i] = min(shortest[i], took[j])
				}
			}
			if math.IsInf(shortest[i], 1) {
				return false
			}
		}
		return shortest[1] < 24*shortest[0]
	})
	t.Logf("%d counters take %v s", sizes, shortest)
}
