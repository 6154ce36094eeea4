// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

func made(at time.Time, value float64, labels ...string) query.Sample {
	s := query.Sample{Labels: map[string]string{"__name__": "made"}, Time: at, Value: value}
	for i := 0; i+1 < len(labels); i += 2 {
		s.Labels[labels[i]] = labels[i+1]
	}
	return s
}

// TestAppend: appended samples are stored once next to scraped ones, also after a restart.
func TestAppend(t *testing.T) {
	var log logtest.Log
	o := options(t.TempDir(), &log)
	s := New(o)
	now := time.Now().Truncate(time.Second)
	if err := s.Append(t.Context(), []query.Sample{made(now, 1)}); err == nil || !strings.Contains(err.Error(), "being opened") {
		t.Errorf("before Init Append() = %v", err)
	}
	stop := run(t, s)
	put := func(samples ...query.Sample) {
		t.Helper()
		if err := s.Append(t.Context(), samples); err != nil {
			t.Fatal(err)
		}
	}
	put(made(now.Add(-2*time.Minute), 1, "a", "x"), made(now.Add(-2*time.Minute), 10, "a", "y"))
	put(made(now.Add(-time.Minute), 2, "a", "x"))
	put(made(now.Add(-time.Minute), 2, "a", "x"), made(now.Add(-time.Minute), 20, "a", "y")) // again, with one more
	put(made(now.Add(-time.Minute), 5, "a", "x"), made(now.Add(-90*time.Second), 5, "a", "x"), made(now.Add(-9*time.Hour), 5, "a", "z"))
	is := func(query, want string) {
		t.Helper()
		if _, _, values := samples(t, s, query); fmt.Sprint(values) != want {
			t.Errorf("%s has %v, want %s", query, values, want)
		}
	}
	is(`made{a="x"}[5m]`, "[1 2]")
	is(`made{a="y"}[5m]`, "[10 20]")
	waittest.Until(t, "scrapes go on beside it", func() bool {
		_, _, values := samples(t, s, "scrapes_total[1m]")
		return len(values) > 1
	})
	stop()
	if err := s.Append(t.Context(), []query.Sample{made(now, 9)}); err == nil {
		t.Error("after Shutdown something was appended")
	}
	o.Registry = options("", &log).Registry
	s = New(o)
	stop = run(t, s)
	put(made(now.Add(-time.Minute), 7, "a", "x"), made(now, 3, "a", "x")) // one exists already, one is newer
	is(`made{a="x"}[5m]`, "[1 2 3]")
	stop()
}

func TestAppendRefuses(t *testing.T) {
	var log logtest.Log
	s, _ := start(t, options(t.TempDir(), &log))
	now := time.Now()
	good := made(now, 1, "a", "good")
	for want, bad := range map[string]query.Sample{
		"is in the future":      made(now.Add(time.Hour), 1),
		"is not a valid series": {Labels: map[string]string{"a": "b"}, Time: now},
		"its name or a":         made(now, 1, "a", "\xff"),
	} {
		if err := s.Append(t.Context(), []query.Sample{good, bad}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Append() = %v, want %q", err, want)
		}
	}
	if _, _, values := samples(t, s, `made[5m]`); len(values) > 0 {
		t.Errorf("%v were stored of batches with a bad sample", values)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Append(gone, []query.Sample{good}); err == nil {
		t.Error("something was appended for an ended context")
	}
}

// TestAppendWhenMemoryIsShort: existing series continue, and no new series is stored.
func TestAppendWhenMemoryIsShort(t *testing.T) {
	var log logtest.Log
	s, _ := start(t, options(t.TempDir(), &log))
	now := time.Now().Truncate(time.Second)
	if err := s.Append(t.Context(), []query.Sample{made(now.Add(-time.Minute), 1, "a", "old")}); err != nil {
		t.Fatal(err)
	}
	s.memory = newMemoryLimiter(1, 1) // a byte
	err := s.Append(t.Context(), []query.Sample{made(now, 2, "a", "old"), made(now, 2, "a", "new")})
	if err == nil || !strings.Contains(err.Error(), "1 new series were not stored") {
		t.Errorf("Append() = %v", err)
	}
	s.memory = newMemoryLimiter(0, 1)
	if _, _, values := samples(t, s, `made{a="old"}[5m]`); fmt.Sprint(values) != "[1 2]" {
		t.Errorf("the series that was there has %v", values)
	}
	if _, _, values := samples(t, s, `made{a="new"}[5m]`); len(values) > 0 {
		t.Errorf("a new series has %v", values)
	}
}
