// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/teescope/teescope/internal/server/prom/rulefile"
)

// Reloader reads the rule files again on SIGHUP, and when one of them has changed. It is a service with Run.
type Reloader struct {
	ruler *ruler
	log   *slog.Logger
}

// Reloader returns the service that reloads the rules.
func (s *Server) Reloader() *Reloader { return &Reloader{ruler: s.ruler, log: s.opts.Log} }

// Name implements service.Service.
func (*Reloader) Name() string { return "reloader" }

// lookEvery is how often the files are checked for changes.
const lookEvery = 5 * time.Second

// Run implements service.Runner.
func (r *Reloader) Run(ctx context.Context) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	tick := time.NewTicker(min(lookEvery, r.ruler.opts.Interval))
	defer tick.Stop()
	known := r.stamp()
	for {
		asked := false
		select {
		case <-ctx.Done():
			return nil
		case <-hup:
			asked = true
		case <-tick.C:
		}
		now := r.stamp()
		if !asked && now == known {
			continue
		}
		known = now
		if err := r.ruler.reload(); err != nil {
			logProblems(r.log, err)
			continue
		}
		r.log.Info("rules reloaded")
	}
}

// stamp returns a text that changes when a file is changed, created or removed.
func (r *Reloader) stamp() string {
	names, err := rulefile.Find(r.ruler.opts.Files)
	if err != nil {
		return err.Error()
	}
	text := ""
	for _, name := range names {
		var size int64
		var at time.Time
		var mode fs.FileMode
		if info, err := os.Stat(name); err == nil {
			size, at, mode = info.Size(), info.ModTime(), info.Mode()
		}
		text += fmt.Sprintf("%s %d %d %s\n", name, size, at.UnixNano(), mode)
	}
	return text
}
