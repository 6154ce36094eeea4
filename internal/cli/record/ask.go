// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
)

// Families of the agent about its collectors. The first two are not recorded.
const (
	successOf  = "teescope_collector_success"
	durationOf = "teescope_collector_duration_seconds"
	// ageOf is above 0 if the collector counter has repeated counts of an earlier scrape.
	ageOf, counter = "teescope_enclave_counts_age_seconds", "tee"
)

const (
	// askAgain is the time before the second request for a sample at an end of a phase. It doubles with each further one.
	askAgain = 100 * time.Millisecond
	// failsFor is the time after which a collector that fails at once is taken for one that always fails. lateFor is that for a
	// collector that did not end in time, and for an agent that does not answer.
	failsFor, lateFor = 2 * time.Second, 30 * time.Second
	// lateAfter is the duration of a run of a collector that had no time, and did not fail at once.
	lateAfter = time.Second
	// maxFailed bounds the collectors whose failures are kept. An agent has about twenty.
	maxFailed = 64
	// lists is the collector of the agent that lists the workloads.
	lists = "system"
)

// lateError is the error of an agent that had no time to answer.
type lateError struct{ error }

// lateIf marks the error of an agent that had no time to answer.
func lateIf(err error, late bool) error {
	if late {
		return lateError{err}
	}
	return err
}

// Unwrap implements the interface of package errors.
func (e lateError) Unwrap() error { return e.error }

// failures are the samples in which a collector of the agent failed.
type failures struct {
	samples int
	atEnd   bool // at an end of the phase
}

// scraped is the metrics of an answer.
type scraped struct {
	answer
	all    []point
	failed []string // collectors
	late   bool     // one of them had no time
}

// ask requests all metrics. The totals of a phase are those between the samples at its ends. So at an end it asks again
// while a figure is missing that may be there later, because the agent or one of its collectors had no time. The user can
// end this.
func (s *sampler) ask(ctx context.Context, end bool) (got scraped, err error) {
	ctx, cancel := hurried(ctx, s.hurry)
	defer cancel()
	limit := failsFor
	for began, pause := time.Now(), askAgain; ; pause *= 2 {
		got, err = s.once(ctx)
		expected := slices.DeleteFunc(slices.Clone(got.failed), func(name string) bool { return s.failing[name] })
		late := errors.As(err, new(lateError))
		if !end || err != nil && !late || err == nil && len(expected) == 0 {
			break
		}
		if late || anyLate(got.all, expected) {
			limit = lateFor
		}
		if isClosed(s.hurry) || time.Since(began)+pause > limit {
			break
		}
		select {
		case <-ctx.Done():
			return got, err
		case <-s.hurry:
			return got, err
		case <-time.After(pause):
		}
	}
	if end && err == nil {
		s.failing = map[string]bool{} // and is not waited for again
		for _, name := range got.failed {
			s.failing[name] = true
		}
	}
	return got, err
}

// lastAnswer is the time that a request in flight has when the user ends the waiting.
const lastAnswer = 2 * time.Second

// hurried returns a context that ends lastAnswer after hurry is closed.
func hurried(ctx context.Context, hurry <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-hurry:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(lastAnswer):
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// once requests all metrics once.
func (s *sampler) once(ctx context.Context) (got scraped, err error) {
	if got.answer, err = s.source.scrape(ctx); err != nil {
		return got, err
	}
	got.all, err = s.reader.read(got.text)
	for _, p := range got.all {
		name := p.series.Labels["collector"]
		if p.series.Name == ageOf && p.value > 0 {
			name = counter
		} else if p.series.Name != successOf || p.value != 0 {
			continue
		}
		if len(got.failed) < maxFailed && !slices.Contains(got.failed, name) {
			got.failed = append(got.failed, name)
		}
	}
	got.late = anyLate(got.all, got.failed)
	return got, err
}

// anyLate reports whether one of these collectors did not end in time.
func anyLate(all []point, failed []string) bool {
	return slices.ContainsFunc(all, func(p point) bool {
		return p.series.Name == durationOf && p.value > lateAfter.Seconds() && slices.Contains(failed, p.series.Labels["collector"])
	})
}

// opening is the first sample of a phase.
type opening struct {
	base      map[string]float64 // the counters of workloads, by ID
	workloads map[string]bool    // those that were there
	complete  bool               // whether no other was
	failed    []string           // collectors
	late      bool               // one of them had no time
}

func openingOf(got scraped) opening {
	o := opening{base: map[string]float64{}, workloads: map[string]bool{}, failed: got.failed, late: got.late}
	for _, p := range got.all {
		if p.series.Name == successOf && p.series.Labels["collector"] == lists && p.value == 1 {
			o.complete = true
		}
		if w := p.workload(); w != "" {
			o.workloads[w] = true
			if p.series.Kind == run.Counter {
				o.base[p.id] = p.value
			}
		}
	}
	return o
}

// zero reports whether a counter of a workload that is in a later sample, and not in the first one, was zero then. An agent does not
// export a counter that is zero. If a collector failed in the first sample, the counter may have had any value, unless there was no such
// workload, or the collector fails in the same way again and so has not brought the counter.
func (o opening) zero(workload string, got scraped) bool {
	if o.complete && !o.workloads[workload] {
		return true
	}
	if len(o.failed) > 0 && (o.late || got.late) {
		return false
	}
	return !slices.ContainsFunc(o.failed, func(name string) bool { return !slices.Contains(got.failed, name) })
}

// fail notes the collectors that failed in a sample.
func (o *observed) fail(failed []string, end bool) {
	for _, name := range failed {
		f, known := o.failed[name]
		if known || len(o.failed) < maxFailed {
			o.failed[name] = failures{f.samples + 1, f.atEnd || end}
		}
	}
}

// note says which figures are missing because the collector failed.
func (f failures) note(name string, samples int) string {
	said := fmt.Sprintf("the collector %s of the agent failed in %d of %s, which may lack some of its figures", text.Terminal(name), f.samples, text.Plural(samples, "sample", "samples"))
	if f.atEnd {
		said += ": one is at the start or the end, and totals may be too low or missing"
	}
	return said
}
