// SPDX-License-Identifier: Apache-2.0

// Package quietlog makes loggers for libraries whose info lines are details for users of teescope.
//
// It drops nothing: info lines become debug lines.
package quietlog

import (
	"context"
	"log/slog"
)

// New returns the logger of a part of the program. Info lines become debug lines; warnings and errors stay.
func New(log *slog.Logger, part string) *slog.Logger {
	return slog.New(demoted{log.Handler()}).With("part", part)
}

type demoted struct{ slog.Handler }

func demote(l slog.Level) slog.Level {
	if l == slog.LevelInfo {
		return slog.LevelDebug
	}
	return l
}

// Enabled implements slog.Handler.
func (d demoted) Enabled(ctx context.Context, l slog.Level) bool {
	return d.Handler.Enabled(ctx, demote(l))
}

// Handle implements slog.Handler.
func (d demoted) Handle(ctx context.Context, r slog.Record) error {
	r.Level = demote(r.Level)
	return d.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (d demoted) WithAttrs(attrs []slog.Attr) slog.Handler {
	return demoted{d.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (d demoted) WithGroup(name string) slog.Handler { return demoted{d.Handler.WithGroup(name)} }
