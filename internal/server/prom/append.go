// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/teescope/teescope/internal/analysis/query"
)

// Append stores samples next to scraped ones. It implements window.Appender. A sample that is not newer than its series
// is skipped. A sample ahead of the clock is an error, and nothing is stored: scraped samples would be refused until
// the clock had caught up. New series are not stored when memory is short, which is an error too. Existing series
// continue.
func (s *Server) Append(ctx context.Context, samples []query.Sample) error {
	next, end, reason := s.drainer.enter()
	if next == nil {
		return errors.New(reason)
	}
	defer s.drainer.active.Done()
	if err := errors.Join(ctx.Err(), end.Err(), s.health.err()); err != nil {
		return err
	}
	app := (&guardV2{s.db, s.health}).AppenderV2(ctx)
	refused, err := appendAll(app, samples, s.memory.near())
	if err != nil {
		return errors.Join(err, app.Rollback())
	}
	if err := app.Commit(); err != nil {
		return fmt.Errorf("storing %d samples: %w", len(samples), err)
	}
	if refused > 0 {
		return fmt.Errorf("%s; %d new series were not stored", s.memory.reason(), refused)
	}
	return nil
}

// appendAll appends samples. When memory is short, samples of new series are refused.
func appendAll(app storage.AppenderV2, samples []query.Sample, short bool) (refused int, err error) {
	latest := time.Now().Add(tolerance)
	known, _ := app.(storage.GetRef)
	for _, sample := range samples {
		ls := labels.FromMap(sample.Labels)
		if !ls.IsValid(model.UTF8Validation) || !ls.Has(model.MetricNameLabel) {
			return 0, fmt.Errorf("%s is not a valid series: its name or a label is invalid", ls)
		}
		if sample.Time.After(latest) {
			return 0, fmt.Errorf("%s has the time %s, which is in the future", ls, sample.Time.UTC().Format(time.RFC3339))
		}
		if short && known != nil {
			if there, _ := known.GetRef(ls, ls.Hash()); there == 0 {
				refused++
				continue
			}
		}
		_, err := app.Append(0, ls, 0, sample.Time.UnixMilli(), sample.Value, nil, nil, storage.AppendV2Options{RejectOutOfOrder: true})
		if err != nil && !tooLate(err) {
			return 0, fmt.Errorf("storing %s: %w", ls, err)
		}
	}
	return refused, nil
}

// tooLate reports whether a sample was refused because its series has a newer or a different value.
func tooLate(err error) bool {
	return errors.Is(err, storage.ErrOutOfOrderSample) || errors.Is(err, storage.ErrOutOfBounds) ||
		errors.Is(err, storage.ErrTooOldSample) || errors.Is(err, storage.ErrDuplicateSampleForTimestamp)
}
