// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"
)

// guardV2 passes the outcome of each commit of scraped samples to the health. While the storage fails it refuses every
// sample with the reason, which the list of targets then shows.
type guardV2 struct {
	to     storage.AppendableV2
	health *health
}

// AppenderV2 implements storage.AppendableV2.
func (g *guardV2) AppenderV2(ctx context.Context) storage.AppenderV2 {
	if err := g.health.err(); err != nil {
		g.health.refuse()
		return refusingV2{err}
	}
	app := guardedV2{g.to.AppenderV2(ctx), g.health}
	if known, ok := app.AppenderV2.(storage.GetRef); ok {
		return &guardedRefV2{app, known}
	}
	return &app
}

type guardedV2 struct {
	storage.AppenderV2

	health *health
}

// guardedRefV2 also finds series, for which the limiter of series asks.
type guardedRefV2 struct {
	guardedV2

	known storage.GetRef
}

// GetRef implements storage.GetRef.
func (a *guardedRefV2) GetRef(ls labels.Labels, hash uint64) (storage.SeriesRef, labels.Labels) {
	return a.known.GetRef(ls, hash)
}

// Commit implements storage.AppenderV2.
func (a *guardedV2) Commit() error {
	if err := a.health.err(); err != nil {
		a.health.refuse()
		_ = a.AppenderV2.Rollback() // releases the appender
		return err
	}
	err := a.AppenderV2.Commit()
	a.health.committed(err)
	return err
}

// Rollback implements storage.AppenderV2. It writes the labels of new series to the log, which can fail.
func (a *guardedV2) Rollback() error {
	err := a.AppenderV2.Rollback()
	if err != nil {
		a.health.committed(err)
	}
	return err
}

// quietRefusals lowers the level of a library's log lines about refused samples. The beginning and the end are logged once.
type quietRefusals struct{ slog.Handler }

// Handle implements slog.Handler.
func (q quietRefusals) Handle(ctx context.Context, r slog.Record) error {
	refused := false
	r.Attrs(func(a slog.Attr) bool {
		var unstored *notStoredError
		err, ok := a.Value.Any().(error)
		refused = refused || ok && errors.As(err, &unstored)
		return true
	})
	if refused {
		r.Level = slog.LevelDebug
		if !q.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q quietRefusals) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietRefusals{q.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (q quietRefusals) WithGroup(name string) slog.Handler {
	return quietRefusals{q.Handler.WithGroup(name)}
}

// refusingV2 refuses all samples.
type refusingV2 struct{ err error }

// Append implements storage.AppenderV2.
func (r refusingV2) Append(
	storage.SeriesRef, labels.Labels, int64, int64, float64, *histogram.Histogram, *histogram.FloatHistogram, storage.AppendV2Options,
) (storage.SeriesRef, error) {
	return 0, r.err
}

// Commit implements storage.AppenderV2. Nothing was accepted.
func (refusingV2) Commit() error { return nil }

// Rollback implements storage.AppenderV2.
func (refusingV2) Rollback() error { return nil }

// GetRef implements storage.GetRef. A reference other than 0 keeps the limiter of series from counting new ones.
func (refusingV2) GetRef(ls labels.Labels, _ uint64) (storage.SeriesRef, labels.Labels) { return 1, ls }

// guard does the same as guardV2 for the results of rules.
type guard struct {
	to     storage.Appendable
	health *health
}

// Appender implements storage.Appendable.
func (g *guard) Appender(ctx context.Context) storage.Appender {
	if err := g.health.err(); err != nil {
		return refusing{err}
	}
	return &guarded{g.to.Appender(ctx), g.health}
}

type guarded struct {
	storage.Appender

	health *health
}

// Commit implements storage.Appender.
func (a *guarded) Commit() error {
	if err := a.health.err(); err != nil {
		_ = a.Appender.Rollback() // releases the appender
		return err
	}
	err := a.Appender.Commit()
	if err != nil { // a commit of rules does not show that targets are scraped
		a.health.committed(err)
	}
	return err
}

// Rollback implements storage.Appender.
func (a *guarded) Rollback() error {
	err := a.Appender.Rollback()
	if err != nil {
		a.health.committed(err)
	}
	return err
}

// refusing refuses all samples.
type refusing struct{ err error }

// SetOptions implements storage.Appender.
func (refusing) SetOptions(*storage.AppendOptions) {}

// Append implements storage.Appender.
func (r refusing) Append(storage.SeriesRef, labels.Labels, int64, float64) (storage.SeriesRef, error) {
	return 0, r.err
}

// AppendExemplar implements storage.Appender.
func (r refusing) AppendExemplar(storage.SeriesRef, labels.Labels, exemplar.Exemplar) (storage.SeriesRef, error) {
	return 0, r.err
}

// AppendHistogram implements storage.Appender.
func (r refusing) AppendHistogram(
	storage.SeriesRef, labels.Labels, int64, *histogram.Histogram, *histogram.FloatHistogram,
) (storage.SeriesRef, error) {
	return 0, r.err
}

// AppendHistogramSTZeroSample implements storage.Appender.
func (r refusing) AppendHistogramSTZeroSample(
	storage.SeriesRef, labels.Labels, int64, int64, *histogram.Histogram, *histogram.FloatHistogram,
) (storage.SeriesRef, error) {
	return 0, r.err
}

// AppendSTZeroSample implements storage.Appender.
func (r refusing) AppendSTZeroSample(storage.SeriesRef, labels.Labels, int64, int64) (storage.SeriesRef, error) {
	return 0, r.err
}

// UpdateMetadata implements storage.Appender.
func (r refusing) UpdateMetadata(storage.SeriesRef, labels.Labels, metadata.Metadata) (storage.SeriesRef, error) {
	return 0, r.err
}

// Commit implements storage.Appender. Nothing was accepted.
func (refusing) Commit() error { return nil }

// Rollback implements storage.Appender.
func (refusing) Rollback() error { return nil }
