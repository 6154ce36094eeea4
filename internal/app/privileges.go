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

// privilegeDropper drops what only the start needs: capabilities, access to files, system calls.
type privilegeDropper struct {
	role    privilege.Role
	when    <-chan struct{} // closed when the start is over
	keeps   func() []string // capabilities to keep besides those of the role
	dataDir string          // empty without a database
	sandbox *sandbox.Collector
	done    chan<- struct{} // closed after the drop
	log     *slog.Logger
}

// Name implements service.Service.
func (d *privilegeDropper) Name() string { return "privileges" }

// Run implements service.Runner.
func (d *privilegeDropper) Run(ctx context.Context) error {
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
	d.log.Info("privileges dropped", "left", strings.Join(left, ","))
	d.confine()
	close(d.done)
	// Until now root could write anywhere. From here on it can write only where it is the owner.
	if d.dataDir != "" {
		if err := prom.CheckWritable(d.dataDir); err != nil {
			return fmt.Errorf("after dropping privileges: %w", err)
		}
	}
	<-ctx.Done()
	return nil
}

// confine uses the mechanisms that this kernel offers. A missing mechanism is logged and exported as a metric.
func (d *privilegeDropper) confine() {
	d.try(sandbox.Landlock, func() error { return privilege.Landlock(d.role, prom.Directories(d.dataDir)) })
	d.try(sandbox.Seccomp, func() error { return privilege.Seccomp(d.role) }) // last: the filter refuses the other mechanisms' system calls
}

func (d *privilegeDropper) try(mechanism string, confine func() error) {
	if err := confine(); err != nil {
		d.log.Info("process not confined", "mechanism", mechanism, "reason", err)
		return
	}
	d.sandbox.Hold(mechanism)
	d.log.Info("process confined", "mechanism", mechanism)
}
