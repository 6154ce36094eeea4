// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
)

// Families of the agent about its collectors. They are not recorded.
const (
	successOf  = "teescope_collector_success"
	durationOf = "teescope_collector_duration_seconds"
)

const (
	// askAgain is the time before the second request for a sample at an end of a phase. It doubles with each further one.
	askAgain = 100 * time.Millisecond
	// failsFor is the time after which a collector that fails at once is taken for one that always fails. lateFor is that for a
	// collector that did not end in time, and for an agent that does not answer.
	failsFor, lateFor = 2 * time.Second, 30 * time.Second
	// lateAfter is the duration of a run of a collector that had no time, and did not fail at once.
	lateAfter = time.Second
)

// lateError is the error of an agent that did not answer in time.
type lateError struct{ error }

// Unwrap implements the interface of package errors.
func (e lateError) Unwrap() error { return e.error }

// failures are the samples in which a collector of the agent failed.
type failures struct {
	samples int
	atEnd   bool // at an end of the phase
}

// ask requests all metrics. The totals of a phase are those between the samples at its ends. So at an end it asks again
// while a figure is missing that may be there later, because the agent or one of its collectors had no time.
func (s *sampler) ask(ctx context.Context, end bool) (got answer, all []point, failed []string, err error) {
	limit := failsFor
	for began, pause := time.Now(), askAgain; ; pause *= 2 {
		got, all, failed, err = s.once(ctx)
		expected := slices.DeleteFunc(slices.Clone(failed), func(name string) bool { return s.failing[name] })
		late := errors.As(err, new(lateError))
		if !end || err != nil && !late || err == nil && len(expected) == 0 {
			break
		}
		if late || anyLate(all, expected) {
			limit = lateFor
		}
		if time.Since(began)+pause > limit {
			break
		}
		select {
		case <-ctx.Done():
			return got, all, failed, err
		case <-time.After(pause):
		}
	}
	if end && err == nil {
		s.failing = map[string]bool{} // and is not waited for again
		for _, name := range failed {
			s.failing[name] = true
		}
	}
	return got, all, failed, err
}

// once requests all metrics once. It returns which collectors failed.
func (s *sampler) once(ctx context.Context) (got answer, all []point, failed []string, err error) {
	if got, err = s.source.scrape(ctx); err != nil {
		return got, nil, nil, err
	}
	all, err = s.reader.read(got.text)
	for _, p := range all {
		if p.series.Name == successOf && p.value == 0 {
			failed = append(failed, p.series.Labels["collector"])
		}
	}
	return got, all, failed, err
}

// anyLate reports whether one of these collectors did not end in time.
func anyLate(all []point, failed []string) bool {
	return slices.ContainsFunc(all, func(p point) bool {
		return p.series.Name == durationOf && p.value > lateAfter.Seconds() && slices.Contains(failed, p.series.Labels["collector"])
	})
}

// fail notes the collectors that failed in a sample.
func (o *observed) fail(failed []string, end bool) {
	for _, name := range failed {
		f := o.failed[name]
		o.failed[name] = failures{f.samples + 1, f.atEnd || end}
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
