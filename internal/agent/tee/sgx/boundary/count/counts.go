// SPDX-License-Identifier: Apache-2.0

// Package count stores the counts of workloads at the enclave boundary, and describes their metric families. It does not depend
// on how anything was counted: the label source names the mechanism.
package count

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/tee/sgx/aex"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/metric"
)

// Workload is a workload with its counts.
type Workload = workload.Workload[Counts]

// Registry contains all workloads.
type Registry = workload.Registry[Counts]

// series is one sample of a workload.
type series struct {
	family *metric.Desc
	labels [3]string // after those of the workload; trailing empty labels do not exist
	older  bool      // see AddOlder
}

// histogram identifies a histogram of a workload.
type histogram struct {
	family       *metric.Desc
	call, source string
}

// Counts are the counters and durations of a workload.
type Counts struct {
	calls map[series]float64
	since map[series]time.Time // those that began after the workload
	times map[histogram]*Times
	// Exits is the number of exits by OCALLs that a runtime counts exactly without names, since exits were last divided among
	// OCALLs.
	Exits float64
}

// Add adds to a counter of a workload.
func Add(w *Workload, n float64, family *metric.Desc, labels ...string) {
	w.Data.add(series{family: family}, n, labels)
}

// AddSince adds events to a counter of a workload. attached is the time at which the probe that counted them was attached. A new
// counter begins at that time and not with its workload, because earlier events were not counted.
func AddSince(w *Workload, attached time.Time, n float64, family *metric.Desc, labels ...string) {
	s := series{family: family}
	copy(s.labels[:], labels)
	if _, known := w.Data.calls[s]; !known && attached.After(w.Began) && !w.Began.IsZero() {
		if w.Data.since == nil {
			w.Data.since = map[series]time.Time{}
		}
		w.Data.since[s] = attached
	}
	Add(w, n, family, labels...)
}

// AddOlder adds a value that may be older than the agent's knowledge of the workload, such as one that the workload counts
// itself. So the time from which the counter counts is unknown.
func AddOlder(w *Workload, n float64, family *metric.Desc, labels ...string) {
	w.Data.add(series{family: family, older: true}, n, labels)
}

func (c *Counts) add(s series, n float64, labels []string) {
	if c.calls == nil {
		c.calls = map[series]float64{}
	}
	copy(s.labels[:], labels)
	c.calls[s] += n
}

// Cross adds entries of an enclave, each with its exit, as AddSince.
func (f *Families) Cross(w *Workload, attached time.Time, n float64, source string) {
	AddSince(w, attached, n, f.Transitions, "eenter", source)
	AddSince(w, attached, n, f.Transitions, "eexit", source)
}

// Leave adds AEXs by cause. Causes that are not known are omitted.
func (f *Families) Leave(w *Workload, n aex.Causes[float64], known aex.Causes[bool], source string) {
	for cause, name := range aex.Names {
		if known[cause] {
			Add(w, n[cause], f.AEX, name, source)
		}
	}
}

// Spread adds the variance of sampled AEXs by cause.
func (f *Families) Spread(w *Workload, variance aex.Causes[float64], known aex.Causes[bool], source string) {
	for cause, name := range aex.Names {
		if known[cause] {
			Add(w, variance[cause], f.AEXVariance, name, source)
		}
	}
}

// maxTimed is the number of functions with their own histograms, by workload and family. Further functions are
// counted as "other".
const maxTimed = 32

// TimesOf returns the histogram of a workload's calls of one function. A new one begins when its probe was attached, as in AddSince.
func TimesOf(w *Workload, attached time.Time, family *metric.Desc, call, source string) *Times {
	if w.Data.times == nil {
		w.Data.times = map[histogram]*Times{}
	}
	h := histogram{family, call, source}
	if w.Data.times[h] == nil {
		n := 0
		for other := range w.Data.times {
			if other.family == family {
				n++
			}
		}
		if n >= maxTimed {
			h.call = "other"
		}
	}
	if w.Data.times[h] == nil {
		w.Data.times[h] = &Times{}
		if attached.After(w.Began) && !w.Began.IsZero() {
			w.Data.times[h].since = attached
		}
	}
	return w.Data.times[h]
}

// bucketCount is the number of buckets of durations. The first is for less than 1.024 us, each further one for twice
// as much, and the last for all longer durations.
const bucketCount = buckets

// Times is a histogram of durations. Its counts are fractional, because a sampled call stands for several.
type Times struct {
	Bucket  [bucketCount]float64
	Seconds float64

	since time.Time // if it began after the workload
}

// bounds are the buckets whose upper bounds are emitted: 1.024 us and twice as much each up to 262 us, then four
// times as much each up to 17 s.
var bounds = [...]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 22, 24}

// seconds returns the bounds in seconds.
func seconds() []float64 {
	all := metric.Doubled(bucketShift, bucketCount)
	for i, bucket := range bounds {
		all[i] = all[bucket]
	}
	return all[:len(bounds)]
}

func (s *Times) histogram(began time.Time, of *metric.Desc, labels ...string) prometheus.Metric {
	upTo := make([]uint64, 0, len(bounds))
	n := 0.0
	for i, in := range s.Bucket {
		n += in
		if next := len(upTo); next < len(bounds) && bounds[next] == i {
			upTo = append(upTo, uint64(math.Round(n)))
		}
	}
	return of.Distribution(began, upTo, uint64(math.Round(n)), s.Seconds, labels...)
}

// Emit emits the counts of all workloads.
func Emit(r *Registry, emit func(prometheus.Metric)) {
	r.Each(func(w *Workload) {
		own := []string{w.Name, w.Container, w.Pod, w.Namespace}
		for s, n := range w.Data.calls {
			labels := append(slices.Clone(own), s.labels[:]...)
			began := later(w.Began, w.Data.since[s])
			if s.older {
				began = time.Time{}
			}
			emit(s.family.Since(began, n, labels[:len(s.family.Labels)]...))
		}
		for h, t := range w.Data.times {
			emit(t.histogram(later(w.Began, t.since), h.family, append(slices.Clone(own), h.call, h.source)...))
		}
	})
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
