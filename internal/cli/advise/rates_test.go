// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
)

// owned is a source in which each counter belongs to one workload.
type owned map[string]string

func (owned) Instant(context.Context, string, time.Time) ([]query.Sample, error) { return nil, nil }

func (o owned) Range(_ context.Context, text string, _, at time.Time, _ time.Duration) ([]query.Series, error) {
	for counter, workload := range o {
		if strings.Contains(text, counter) {
			return []query.Series{{Labels: map[string]string{"workload": workload, "instance": "host"}, Points: []query.Point{{Time: at, Value: 100}}}}, nil
		}
	}
	return nil, nil
}

// With several machines the counts are of the one that is named.
func TestRatesAreOfOneMachine(t *testing.T) {
	two := engine.Result{Machines: []engine.Machine{{Name: "a", Source: owned{}}, {Name: "b", Source: owned{}}}}
	one := engine.Result{Machines: []engine.Machine{{Source: owned{}}}} // which has no name
	for _, tt := range []struct {
		of     string
		result engine.Result
		want   bool
	}{{"a", two, true}, {"", two, false}, {"c", two, false}, {"", one, true}, {"a", one, true}, {"a", engine.Result{}, false}} {
		if got := (Of{Machine: tt.of}).asker(t.Context(), tt.result) != nil; got != tt.want {
			t.Errorf("%q of %d machines: %v", tt.of, len(tt.result.Machines), got)
		}
	}
}

// Threads of a workload are not joined with sockets of another, if only one has each.
func TestBurstsAreOfOneWorkload(t *testing.T) {
	for sockets, want := range map[string]bool{"a": true, "b": false} {
		source := owned{"thread_starts": "a", `"socket"`: sockets, `"bind"`: sockets}
		got := bursts(query.NewAsker(t.Context(), source, time.Second), time.Minute, time.Unix(1000, 0), Of{})
		if (got != nil) != want {
			t.Errorf("threads of a and sockets of %s: %+v", sockets, got)
		}
	}
}

// Starts of threads are joined with the sockets of the same seconds: a burst of sockets at another time is none of theirs.
func TestBurstsAreJoined(t *testing.T) {
	for name, tt := range map[string]struct {
		starts, sockets, binds map[int64]float64
		want                   *advise.Bursts
	}{
		"together":       {map[int64]float64{1: 0, 2: 100, 3: 9}, map[int64]float64{1: 0, 2: 200, 3: 18}, map[int64]float64{1: 0, 2: 100, 3: 9}, &advise.Bursts{Starts: 100, Sockets: 200, Binds: 100, Step: 15, Steps: 3, Many: 1, Joined: 1}},
		"apart":          {map[int64]float64{1: 0, 2: 100}, map[int64]float64{1: 200, 2: 0}, map[int64]float64{1: 100, 2: 0}, &advise.Bursts{Starts: 100, Step: 15, Steps: 2, Many: 1}},
		"two of three":   {map[int64]float64{1: 10, 2: 20, 3: 30}, map[int64]float64{1: 15, 2: 30, 3: 44}, map[int64]float64{1: 7.5, 2: 15, 3: 30}, &advise.Bursts{Starts: 20, Sockets: 30, Binds: 15, Step: 15, Steps: 3, Many: 3, Joined: 2}},
		"most elsewhere": {map[int64]float64{1: 1000, 2: 10, 3: 1000}, map[int64]float64{1: 0, 2: 20, 3: 0}, map[int64]float64{1: 0, 2: 10, 3: 0}, &advise.Bursts{Starts: 10, Sockets: 20, Binds: 10, Step: 15, Steps: 3, Many: 3, Joined: 1}},
		"no binds there": {map[int64]float64{1: 10, 2: 20}, map[int64]float64{1: 15, 2: 30}, map[int64]float64{1: 10}, &advise.Bursts{Starts: 10, Sockets: 15, Binds: 10, Step: 15, Steps: 1, Many: 1, Joined: 1}},
		"not counted":    {map[int64]float64{1: 10}, nil, nil, nil},
	} {
		got := joined(tt.starts, tt.sockets, tt.binds, 15*time.Second, "")
		if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// The time in futex is absent unless an agent measured it, and of one workload only.
func TestLocksNeedTheTime(t *testing.T) {
	one := func(v float64) []query.Sample { return []query.Sample{{Value: v}} }
	if got := locksOf(one(2000), one(3), one(4), "server"); got == nil || *got != (advise.Locks{Calls: 2000, Futex: 3, All: 4, Source: "server"}) {
		t.Errorf("%+v", got)
	}
	for name, got := range map[string]*advise.Locks{
		"no time":       locksOf(one(2000), nil, nil, ""),
		"no calls":      locksOf(nil, one(3), one(4), ""),
		"no time spent": locksOf(one(0), one(0), one(0), ""),
		"not a number":  locksOf(one(0), one(0), one(math.NaN()), ""),
		"two workloads": locksOf(append(one(1), one(2)...), one(3), one(4), ""),
	} {
		if got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A query that failed is no measurement of zero: what its rules find is not known.
func TestUnanswered(t *testing.T) {
	failed := func(error string, rules ...string) query.Problem {
		return query.Problem{Kind: query.Failed, Error: error, Rules: rules}
	}
	for _, tt := range []struct {
		problems []query.Problem
		want     string
	}{
		{nil, ""},
		{[]query.Problem{{Kind: query.Absent, Error: "no samples", Rules: []string{"a"}}, {Kind: query.Bounded, Error: "many"}}, ""},
		{[]query.Problem{failed("timeout\x1b[1m", "b", "a"), failed("other", "b", "c")}, "queries failed, so what these rules of teescope analyze find is not known: a, b, c: timeout�[1m"},
		{[]query.Problem{failed("timeout")}, "queries failed, so what these rules of teescope analyze find is not known: any: timeout"},
	} {
		if got := strings.Join(Unanswered(tt.problems), "\n"); got != tt.want {
			t.Errorf("%+v gives %q, want %q", tt.problems, got, tt.want)
		}
	}
}
