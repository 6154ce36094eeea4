// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"reflect"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/run/profile"
)

// TestTimesAreBounded adds a sample of one thread each second for a day, and one of another thread at the end. The number of buckets is
// bounded, and no sample is lost.
func TestTimesAreBounded(t *testing.T) {
	r := New(Options{})
	r.samples = make([]sample, 2)
	began := time.Unix(1000, 0)
	r.Tick(began)
	const seconds = 24 * 3600
	for i := range seconds {
		r.Tick(began.Add(time.Duration(i+1) * time.Second))
		r.at(&r.samples[0], 1, 10)
	}
	r.at(&r.samples[1], 3, 30)
	var samples, events uint64
	for _, m := range r.samples[0].moments {
		samples, events = samples+m.samples, events+m.events
	}
	if n := len(r.samples[0].moments); n > maxBuckets || n < maxBuckets/2 || samples != seconds || events != 10*seconds {
		t.Errorf("%d buckets with %d samples and %d events", n, samples, events)
	}
	last := r.samples[1].moments
	if len(last) != 1 || last[0].samples != 3 || r.clock.moments != len(r.samples[0].moments)+1 {
		t.Errorf("%v, %d moments", last, r.clock.moments)
	}
	if at := time.Duration(last[0].bucket) * r.clock.width; at > seconds*time.Second || at < (seconds-1)*time.Second-r.clock.width {
		t.Errorf("the last sample is at %s", at)
	}
}

// A sample belongs to the bucket in which the time since the last reading began. Without a Tick it has no time.
func TestSamplesBelongToTheTimeBeforeTheyAreRead(t *testing.T) {
	r := New(Options{})
	r.samples = make([]sample, 1)
	r.at(&r.samples[0], 1, 1)
	if r.samples[0].moments != nil {
		t.Error("a sample without a Tick has a time")
	}
	began := time.Unix(1000, 0)
	for _, ms := range []int{0, 100, 500, 600, 1600} {
		r.Tick(began.Add(time.Duration(ms) * time.Millisecond))
		r.at(&r.samples[0], 1, 2)
	}
	if want := []moment{{0, 3, 6}, {1, 2, 4}}; !reflect.DeepEqual(r.samples[0].moments, want) {
		t.Errorf("%v, want %v", r.samples[0].moments, want)
	}
}

// With more stacks than times are kept, all samples end up in one bucket, and all have a time.
func TestTimesOfMoreStacksThanTimes(t *testing.T) {
	const most, stacks = 100, 250
	r := New(Options{Moments: most})
	r.samples = make([]sample, stacks)
	began := time.Unix(1000, 0)
	for tick := range 4 {
		r.Tick(began.Add(time.Duration(tick) * bucket))
		for i := range r.samples {
			r.at(&r.samples[i], 1, 1)
		}
	}
	for _, s := range r.samples {
		if len(s.moments) != 1 || s.moments[0].samples != 4 {
			t.Fatalf("%v", s.moments)
		}
	}
	if r.clock.moments != stacks {
		t.Errorf("%d times", r.clock.moments)
	}
}

// The times of a sample share its stack and labels: a profile of a busy machine has 120 times of each stack.
func TestTimesShareTheirStack(t *testing.T) {
	proc := hostfs.At(t.TempDir())
	r := New(Options{Table: symbol.New(symbol.Options{Proc: proc, Sys: proc}), All: true})
	began := time.Unix(1000, 0)
	for i := range 3 {
		r.Tick(began.Add(time.Duration(i) * bucket))
		r.add(&profiling.Sample{Samples: 1, Events: 1, Call: -1, Cause: -1, Thread: "thread"}, &symbol.Process{}, nil, false, &use{})
	}
	p, _ := r.Profile(About{Event: profiling.Cycles, Frequency: 99})
	if len(p.Sample) != 2 || p.Sample[0].Value[0] != 2 || p.Sample[1].Value[0] != 1 {
		t.Fatal(p)
	}
	one, other := p.Sample[0], p.Sample[1]
	if at := [2]int64{one.NumLabel[profile.Time][0], other.NumLabel[profile.Time][0]}; at != [2]int64{began.UnixNano(), began.Add(bucket).UnixNano()} {
		t.Errorf("the times are %v", at)
	}
	same := func(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	if !same(one.Location, other.Location) || !same(one.Label, other.Label) || !same(one.NumUnit, other.NumUnit) {
		t.Error("each time has a stack or labels of its own")
	}
}
