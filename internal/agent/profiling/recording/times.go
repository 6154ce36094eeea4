// SPDX-License-Identifier: Apache-2.0

package recording

import "time"

// Limits of the times of samples. Above one of them, buckets become twice as long.
const (
	maxBuckets = 1200
	maxMoments = 1 << 18 // of all samples, which have more only in a single bucket
	// bucket is the shortest bucket. The times of samples are those at which they are read, and the agent reads twice a second.
	bucket = 500 * time.Millisecond
)

// moment is how many samples were taken in a bucket.
type moment struct {
	bucket          uint32
	samples, events uint64
}

// clock divides the time of a recording into buckets.
type clock struct {
	began, last time.Time
	width       time.Duration
	now         uint32 // the bucket of the samples that are added
	moments     int
}

// Tick says that the samples that are added next were taken since the last Tick. Without a Tick, samples have no times.
func (r *Recording) Tick(now time.Time) {
	c := &r.clock
	if c.began.IsZero() {
		c.began, c.last, c.width = now, now, bucket
		return
	}
	for c.last.Sub(c.began) >= maxBuckets*c.width {
		r.coarsen()
	}
	c.now, c.last = uint32(c.last.Sub(c.began)/c.width), now
}

// at adds the time of samples.
func (r *Recording) at(s *sample, samples, events uint64) {
	c := &r.clock
	if c.began.IsZero() {
		return
	}
	for c.moments >= r.Moments && c.now > 0 && !endsIn(s.moments, c.now) { // in one bucket there are no more than stacks
		r.coarsen()
	}
	before := len(s.moments)
	s.moments = addMoment(s.moments, moment{c.now, samples, events})
	c.moments += len(s.moments) - before
}

// endsIn reports whether the last moment is of a bucket.
func endsIn(all []moment, bucket uint32) bool {
	return len(all) > 0 && all[len(all)-1].bucket == bucket
}

// addMoment adds to the last moment if it is of the same bucket, and otherwise a moment.
func addMoment(all []moment, m moment) []moment {
	if !endsIn(all, m.bucket) {
		return append(all, m)
	}
	last := &all[len(all)-1]
	last.samples += m.samples
	last.events += m.events
	return all
}

// coarsen makes buckets twice as long.
func (r *Recording) coarsen() {
	r.clock.width *= 2
	r.clock.now /= 2
	r.clock.moments = 0
	for i := range r.samples {
		kept := r.samples[i].moments[:0]
		for _, m := range r.samples[i].moments {
			m.bucket /= 2
			kept = addMoment(kept, m)
		}
		r.samples[i].moments = kept
		r.clock.moments += len(kept)
	}
}
