// SPDX-License-Identifier: Apache-2.0

package userprobe

import (
	"slices"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/userprobe/probefile"
	"github.com/teescope/teescope/internal/agent/workload"
)

// The memory of a workload for ended groups is bounded, and no event is lost.
func TestKeptSeriesAreBounded(t *testing.T) {
	var ended counts
	for group := range 10 {
		of := counts{}
		for i := range 50 {
			of.at(seriesKey{Probe: 3, Key: [3]uint64{uint64(group*50 + i)}}).events = 2
		}
		ended.addEnded(of, 1)
	}
	events := uint64(0)
	for _, s := range ended {
		events += s.events
	}
	if len(ended) > mostEnded+1 || events != 1000 {
		t.Errorf("%d series with %d events, want at most %d with 1000", len(ended), events, mostEnded+1)
	}
	if rest := ended[seriesKey{Probe: 3, Folded: 1}]; rest == nil || rest.events != 2*(500-mostEnded) {
		t.Errorf("the rest has %+v", rest)
	}
}

// Different numeric keys may have the same text, for example "other". They share one series.
func TestSeriesWithTheSameLabelsAreOne(t *testing.T) {
	a := &active{Probe: &probefile.Probe{Keys: []probefile.Key{{Label: "command"}}}, keys: []fetch{{Origin: fromComm}}}
	other := seriesKey{}
	copy(other.Comm[:], "other")
	c := counts{}
	c.at(other).events = 3
	c.at(seriesKey{Folded: 1}).events = 4
	c.at(seriesKey{}).events = 5
	got := a.labelled(&workload.Workload[counts]{Identity: workload.Identity{Name: "w"}}, c)
	slices.SortFunc(got, func(a, b *labelled) int { return int(a.events) - int(b.events) })
	if len(got) != 2 || got[0].events != 5 || got[1].events != 7 || got[1].values[4] != "other" {
		t.Errorf("%d series: %+v", len(got), got)
	}
}

func TestValuesOfKeys(t *testing.T) {
	a := &active{keys: []fetch{{IsError: 1, IsSigned: 1}, {IsSigned: 1}, {}}}
	minus := ^uint64(0)
	for _, tt := range []struct {
		key  seriesKey
		want []string
	}{
		{seriesKey{Key: [3]uint64{2, minus, minus}}, []string{"ENOENT", "-1", "18446744073709551615"}},
		{seriesKey{Key: [3]uint64{0, 5, 5}}, []string{"0", "5", "5"}},
		{seriesKey{Key: [3]uint64{512, 0, 0}}, []string{"512", "0", "0"}},
		{seriesKey{Folded: 1}, []string{"other", "other", "other"}},
	} {
		if got := a.values(tt.key); !slices.Equal(got, tt.want) {
			t.Errorf("%v: %q, want %q", tt.key, got, tt.want)
		}
	}
}

// Bounds are the numbers that a user would write.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		first int
		scale float64
		want  float64
	}{{10, 1e-9, 1.024e-6}, {0, 1, 1}, {3, 512, 4096}, {34, 1e-9, 17.179869184}} {
		if got := bound(&probefile.Value{First: tt.first, Scale: tt.scale}, 0); got != tt.want {
			t.Errorf("2^%d times %g: %v, want %v", tt.first, tt.scale, got, tt.want)
		}
	}
}

// A probe is removed after three checks above half of the budget, and not after a burst.
func TestSpending(t *testing.T) {
	const tooMuch, enough = 11 * time.Millisecond, 9 * time.Millisecond // of 2 s of CPU time; half a percent is 10 ms
	now := time.Unix(1000, 0)
	s := spending{budget: 0.01, cpus: 2}
	var got []bool
	for _, took := range []time.Duration{0, tooMuch, tooMuch, enough, tooMuch, tooMuch, tooMuch, tooMuch, tooMuch, tooMuch} {
		_, over := s.exceeded(now, took)
		got = append(got, over)
		now = now.Add(time.Second)
	}
	if want := []bool{false, false, false, false, false, false, true, false, false, true}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	unlimited := spending{budget: 1, cpus: 2, at: now.Add(-time.Second), over: overBefore}
	if _, over := unlimited.exceeded(now, time.Second); over {
		t.Error("without a limit a probe must go")
	}
}

// The spent time of a probe never decreases, also when its program becomes faster.
func TestSpentNeverDecreases(t *testing.T) {
	a := &active{Probe: &probefile.Probe{Mechanism: probefile.Tracepoint}}
	a.spend(tally{Events: 100})
	if want := 100 * assumedProgram; a.took.program != want || a.took.path != 100*a.path() {
		t.Errorf("took %+v", a.took)
	}
	before := a.took.total()
	if s := a.spend(tally{Events: 101, Runs: 100, RunNS: 1000}); s.program != 10 || a.took.total() <= before {
		t.Errorf("took %v more, and %v after %v", s, a.took.total(), before)
	}
}
