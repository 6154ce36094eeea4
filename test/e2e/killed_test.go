// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// stored holds every stored sample of the last minutes: value by time, by series.
type stored map[string]map[float64]string

// allSamples reads the samples that were stored until a moment.
func allSamples(t *testing.T, base string, at time.Time) stored {
	t.Helper()
	const expr = `{__name__=~".+"}[10m]`
	all := stored{}
	for _, series := range storedSeries(t, base, expr, at) {
		its := map[float64]string{}
		for _, v := range series.Values {
			its[v[0].(float64)] = v[1].(string)
		}
		all[fmt.Sprint(series.Metric)] = its
	}
	return all
}

// count returns the number of samples.
func (s stored) count() int {
	n := 0
	for _, its := range s {
		n += len(its)
	}
	return n
}

// missing returns the samples that are absent or different.
func (s stored) missing(from stored) []string {
	var lost []string
	for series, its := range from {
		for at, value := range its {
			if got, ok := s[series][at]; !ok || got != value {
				lost = append(lost, fmt.Sprintf("%s at %v: %q, was %q", series, at, got, value))
			}
		}
	}
	return lost
}

// A server that is killed while it stores thousands of samples a second still has every sample that could be read
// before, after a restart.
func TestKilledServerLosesNothingOld(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(1)
		for i := range 2000 {
			fmt.Fprintf(w, "busy{i=\"%d\"} %d\n", i, n*int64(i))
		}
	}))
	defer busy.Close()
	args := []string{"--data-dir", t.TempDir(), "--interval", "200ms", "--scrape", "busy=" + busy.URL}
	began := time.Now()
	s := start(t, "up", args...)
	first := time.Since(began)
	scrapes := 0.0
	for range 3 {
		more := scrapes + 15
		eventually(t, testLimit, "some scrapes", func() error {
			got, err := query("http://"+s.addr, `sum(count_over_time(busy{i="1"}[1h]))`, time.Now())
			if scrapes = got["{}"]; err == nil && scrapes < more {
				err = fmt.Errorf("%v scrapes", scrapes)
			}
			return err
		})
		at := time.Now()
		before := allSamples(t, "http://"+s.addr, at)
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = s.ended(t, testLimit) // with the signal's status
		began = time.Now()
		s = start(t, "up", args...)
		took := time.Since(began)
		after := allSamples(t, "http://"+s.addr, at)
		lost := after.missing(before)
		t.Logf("%d samples of %d series before, %d lost; ready again after %s", before.count(), len(before), len(lost), took)
		if len(before) < 2000 || before.count() < 15*2000 {
			t.Fatal("too few samples were stored for the test")
		}
		if len(lost) > 0 {
			t.Errorf("%d samples are lost, the first is %s", len(lost), lost[0])
		}
		if took > 10*time.Second+4*first {
			t.Errorf("it took %s until it was ready again, and %s at first", took, first)
		}
	}
}
