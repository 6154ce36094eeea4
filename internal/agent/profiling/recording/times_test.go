// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"reflect"
	"testing"
	"time"
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

// With as many different stacks as a recording keeps, all samples end up in one bucket, and one more sample of a known stack has room.
func TestTimesOfAsManyStacksAsAreKept(t *testing.T) {
	r := New(Options{})
	r.samples = make([]sample, maxStacks)
	began := time.Unix(1000, 0)
	for i := range 3 {
		r.Tick(began.Add(time.Duration(i) * bucket))
	}
	for i := range r.samples {
		r.at(&r.samples[i], 1, 1)
	}
	r.Tick(began.Add(3 * bucket))
	r.at(&r.samples[7], 1, 1)
	if got := r.samples[7].moments; len(got) != 1 || got[0].samples != 2 || r.clock.moments != maxStacks {
		t.Errorf("%v, %d moments", got, r.clock.moments)
	}
}
