// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/teescope/teescope/internal/agent/collector/sandbox"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/server/prom"
)

// dropper gives up what is only needed to start: capabilities, files and system calls.
type dropper struct {
	role    privilege.Role
	when    <-chan struct{} // closed when it is needed no more
	keeps   func() []string // capabilities that are needed for longer, besides those of the role
	dataDir string          // empty without a database
	sandbox *sandbox.Collector
	settled chan<- struct{} // closed when it is done
	log     *slog.Logger
}

// Name implements service.Service.
func (d *dropper) Name() string { return "privileges" }

// Run implements service.Runner.
func (d *dropper) Run(ctx context.Context) error {
	select {
	case <-d.when:
	case <-ctx.Done():
		return nil
	}
	left, err := privilege.Drop(d.role, d.keeps()...)
	if err != nil {
		return err
	}
	d.sandbox.Hold(sandbox.Capabilities)
	d.log.Info("privileges are dropped", "left", strings.Join(left, ","))
	d.confine()
	close(d.settled)
	// Root could write anywhere until now, and from here on only where it is the owner.
	if d.dataDir != "" {
		if err := prom.CheckWritable(d.dataDir); err != nil {
			return fmt.Errorf("after dropping privileges: %w", err)
		}
	}
	<-ctx.Done()
	return nil
}

// confine does what this kernel offers. What it does not is no reason to stop: it is logged and shown.
func (d *dropper) confine() {
	d.try(sandbox.Landlock, func() error { return privilege.Landlock(d.role, prom.Directories(d.dataDir)) })
	d.try(sandbox.Seccomp, func() error { return privilege.Seccomp(d.role) }) // last: it refuses the others
}

func (d *dropper) try(mechanism string, confine func() error) {
	if err := confine(); err != nil {
		d.log.Info("the process is not confined", "mechanism", mechanism, "reason", err)
		return
	}
	d.sandbox.Hold(mechanism)
	d.log.Info("the process is confined", "mechanism", mechanism)
}
