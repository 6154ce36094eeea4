// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/storage/remote"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// receiver takes samples by remote write, version 1.0, unless it is down.
type receiver struct {
	mu      sync.Mutex
	down    bool
	status  int // of answers while it is down
	refused int
	got     map[int64]float64 // samples of scrapes_total
	twice   int
	labels  string
	headers http.Header
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		r.refused++
		w.WriteHeader(r.status)
		return
	}
	all, err := remote.DecodeWriteRequest(req.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.headers = req.Header
	for _, series := range all.Timeseries {
		name, labels := "", ""
		for _, l := range series.Labels {
			if l.Name == "__name__" {
				name = l.Value
			} else {
				labels += l.Name + "=" + l.Value + " "
			}
		}
		for _, s := range series.Samples {
			if name == "scrapes_total" && s.Value == s.Value { // a stale marker is not a number
				if _, twice := r.got[s.Timestamp]; twice {
					r.twice++
				}
				r.got[s.Timestamp], r.labels = s.Value, labels
			}
		}
	}
}

func (r *receiver) state() (n, refused int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got), r.refused
}

func (r *receiver) set(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

// TestRemoteWriteSurvivesAnOutage: a receiver refuses for longer than a queue holds samples. Afterwards it has every sample
// that the database has, each once. Mimir answers 429 to samples beyond the rate of a tenant.
func TestRemoteWriteSurvivesAnOutage(t *testing.T) {
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		t.Run(http.StatusText(status), func(t *testing.T) { survivesAnOutage(t, status) })
	}
}

func survivesAnOutage(t *testing.T, status int) {
	r := &receiver{got: map[int64]float64{}, status: status}
	server := httptest.NewServer(r)
	defer server.Close()
	u, err := url.Parse(server.URL + "/api/v1/write")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "http.yml")
	if err := os.WriteFile(config, []byte("basic_auth: {username: tee, password: secret}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.Interval = 100 * time.Millisecond
	o.RemoteWrite = RemoteWrite{URLs: []*url.URL{u}, Config: config, Labels: map[string]string{"cluster": "eu"}}
	s, _ := start(t, o)
	waittest.Until(t, "the first samples", func() bool { n, _ := r.state(); return n > 3 })
	r.set(true)
	before, _ := r.state()
	waittest.Until(t, "refused requests", func() bool { _, refused := r.state(); return refused > 5 })
	stored := func() (times, values []float64) {
		_, times, values = samples(t, s, `scrapes_total[1h]`)
		return times, values
	}
	waittest.Until(t, "samples during the outage", func() bool { times, _ := stored(); return len(times) > before+20 })
	times, values := stored() // what must arrive
	r.set(false)
	missing := func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		for i, at := range times {
			if v, ok := r.got[int64(at*1000+0.5)]; ok && v != values[i] {
				t.Fatalf("the sample at %v is %v, stored as %v", at, v, values[i])
			} else if !ok && at*1000 > float64(first(r.got)) {
				return fmt.Sprint(at)
			}
		}
		return ""
	}
	waittest.Until(t, "all samples of the outage", func() bool { return missing() == "" })
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.twice > 0 {
		t.Errorf("%d samples came twice", r.twice)
	}
	if want := "cluster=eu instance=here job=teescope "; r.labels != want {
		t.Errorf("the labels are %q, want %q", r.labels, want)
	}
	if user, password, _ := (&http.Request{Header: r.headers}).BasicAuth(); user != "tee" || password != "secret" {
		t.Errorf("the user is %q with %q", user, password)
	}
}

// first returns the time of the first sample. The sender begins with the time of its start.
func first(got map[int64]float64) int64 {
	least := int64(1 << 62)
	for at := range got {
		least = min(least, at)
	}
	return least
}

// TestHangingReceiversDelayNoStop: several receivers never answer, and the server still stops in time.
func TestHangingReceiversDelayNoStop(t *testing.T) {
	asked := make(chan struct{}, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.Interval = 100 * time.Millisecond
	const receivers = 12
	for i := range receivers {
		u, err := url.Parse(fmt.Sprintf("%s/%d", server.URL, i))
		if err != nil {
			t.Fatal(err)
		}
		o.RemoteWrite.URLs = append(o.RemoteWrite.URLs, u)
	}
	_, stop := start(t, o)
	for range receivers {
		<-asked
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > receivers/2*lastFlush { // one after the other they would take twice as long
		t.Errorf("the stop took %s", took)
	}
}
