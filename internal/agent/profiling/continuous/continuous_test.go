// SPDX-License-Identifier: Apache-2.0

package continuous

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/lib/logtest"
)

// A server gets each profile once and in order, also after a restart of the agent. A server that was away for a while finds the
// newest profiles.
func TestEachProfileIsFetchedOnce(t *testing.T) {
	p := New(Options{Log: slog.New(slog.DiscardHandler)})
	next := func(after string) (body, name string, status int) {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/profiles/next?after="+after, nil))
		return w.Body.String(), w.Header().Get(header), w.Code
	}
	if _, _, status := next(""); status != http.StatusNoContent {
		t.Errorf("the status without a profile is %d", status)
	}
	for i := range maxWaiting + 3 {
		p.profiles.add(fmt.Appendf(nil, "profile %d", i+1))
	}
	after := "another/99"
	for i := range maxWaiting {
		body, name, _ := next(after)
		if want := fmt.Sprintf("profile %d", i+4); body != want {
			t.Fatalf("got %q after %q, want %q", body, after, want)
		}
		after = name
	}
	if _, _, status := next(after); status != http.StatusNoContent || p.profiles.dropped != 3 {
		t.Errorf("the status after the last one is %d, %d are dropped", status, p.profiles.dropped)
	}
	p.profiles.add(make([]byte, maxBytes+1))
	if n := len(p.profiles.waiting); n != 0 || p.profiles.bytes != 0 {
		t.Errorf("%d profiles of %d bytes wait, although one is larger than all may be", n, p.profiles.bytes)
	}
}

// Samples are read ten times a second. What fails each time is logged once in a profile.
func TestAnErrorIsLoggedOnceInAProfile(t *testing.T) {
	var log logtest.Log
	p := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for profiles := range 3 {
		for i := range 10 {
			p.say("reading samples", fmt.Errorf("failure %d", i))
			p.say("making a profile", nil)
		}
		clear(p.said) // as the next profile
		if lines := strings.Count(log.String(), "reading samples"); lines != profiles+1 || strings.Contains(log.String(), "failure 1") {
			t.Errorf("%d lines in %d profiles: %s", lines, profiles+1, log.String())
		}
	}
}

// An agent that was not told to take samples reports this, takes no samples, and has no metrics of samples.
func TestAnAgentTakesNoSamplesUnlessItIsTold(t *testing.T) {
	p := New(Options{Log: slog.New(slog.DiscardHandler)})
	if err := p.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if hertz, event := p.wanted(); p.Lacks("") == nil || p.Lacks(profiling.OCalls) == nil || p.cpu != nil || hertz != 0 || event != "" {
		t.Errorf("%v, %v", p.Lacks(""), p.cpu)
	}
	if err := p.Collect(t.Context(), func(m prometheus.Metric) { t.Errorf("it has the sample %v", m.Desc()) }); err != nil {
		t.Error(err)
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// The frequency is that of the configuration, unless more is demanded. An event is another profile.
func TestDemandedSamplesAreForAWhile(t *testing.T) {
	for _, tt := range []struct {
		always bool
		demand Demand
		hertz  int
	}{
		{false, Demand{}, 0}, {true, Demand{}, usual}, {false, Demand{More: true}, demanded}, {true, Demand{More: true}, demanded},
		{false, Demand{Event: profiling.OCalls}, 0}, {true, Demand{Event: profiling.AEX}, usual}, {true, Demand{true, profiling.SystemCalls}, demanded},
	} {
		p := New(Options{Always: tt.always, OnDemand: true})
		p.Demand(tt.demand)
		p.Demand(tt.demand)
		if hertz, event := p.wanted(); hertz != tt.hertz || event != tt.demand.Event || len(p.changed) != map[bool]int{true: 1}[tt.demand != Demand{}] {
			t.Errorf("%+v: %d, %s and %d changes", tt, hertz, event, len(p.changed))
		}
	}
}
