// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/collector/sandbox"
	"github.com/teescope/teescope/internal/agent/userprobe/probefile"
	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/lib/supervisor"
	"github.com/teescope/teescope/internal/server/prom"
)

// mayWatch returns an error if an agent must not start: it lacks capabilities, would see only some processes, or the file of the
// user's probes has problems. A part of up checks again, with the same result.
func mayWatch(o Options, proc string) error {
	if err := privilege.Check(o.Binary); err != nil {
		return err
	}
	if all, namespace := hostfs.At(proc).SeesAllProcesses(); !all && !o.Config.AnyPIDNamespace {
		return fmt.Errorf("this process is in a PID namespace (%s) that hides the processes of the host: most workloads would have no names, "+
			"and the process IDs that the kernel reports would stand for other processes.\n"+
			"Start it in the host's: hostPID: true in a pod of Kubernetes, --pid=host with docker and podman.\n"+
			"To start it nevertheless, set --pid-namespace any", namespace)
	}
	if name := o.Config.Probes.File; name != "" {
		_, err := probefile.Read(name)
		return err
	}
	return nil
}

// privilegeDropper drops the privileges that only the start needs: the user root, capabilities, access to files, system calls.
type privilegeDropper struct {
	role         privilege.Role
	wanted       config.Sandbox
	account      privilege.Account // set by Init
	when         <-chan struct{}   // closed when the start is over
	capabilities func() []string   // capabilities to keep besides those of the role
	dataDir      string            // empty without a database
	sandbox      *sandbox.Collector
	done         chan<- struct{}  // closed after the drop
	link         *supervisor.Link // nil in a process of its own
	log          *slog.Logger
}

// Name implements service.Service.
func (d *privilegeDropper) Name() string { return "privileges" }

// Init finds the user. With sandbox=required it also returns an error about missing mechanisms, before anything is served.
func (d *privilegeDropper) Init(context.Context) (err error) {
	if d.account, err = privilege.FindAccount(d.wanted.User); err != nil || !d.wanted.Required {
		return err
	}
	missing := []error{privilege.SeccompAvailable(d.role)}
	if d.role == privilege.Server {
		_, err := privilege.LandlockVersion()
		missing = append(missing, err)
	}
	if privilege.Own().UID == 0 && d.account.UID == 0 {
		missing = append(missing, fmt.Errorf("changing the user: %w", privilege.ErrRoot))
	}
	return required(errors.Join(missing...))
}

// required returns an error that explains why the process does not start without a mechanism.
func required(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("with sandbox=required the process does not run without all its sandboxes:\n%w\n"+
		"to run with what there is, set --sandbox available", err)
}

// Run implements service.Runner.
func (d *privilegeDropper) Run(ctx context.Context) error {
	select {
	case <-d.when:
	case <-ctx.Done():
		return nil
	}
	if err := d.drop(); err != nil {
		return err
	}
	close(d.done)
	// Until now root could write anywhere. From here on the process can write only where its user may.
	if err := d.mayWrite(ctx); err != nil {
		return fmt.Errorf("after dropping privileges: %w", err)
	}
	if d.link != nil {
		d.link.Started()
	}
	<-ctx.Done()
	return nil
}

// mayWrite returns an error if the process's user may not write to the data directory. If no more files can be opened, the answer
// is not known, and it tries again each second.
func (d *privilegeDropper) mayWrite(ctx context.Context) error {
	if d.dataDir == "" {
		return nil
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		err := prom.CheckWritable(d.dataDir)
		if !errors.Is(err, unix.EMFILE) && !errors.Is(err, unix.ENFILE) {
			return err
		}
		d.log.Warn("it is not known whether the data directory can be written; trying again in a second", "err", err)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// drop uses the mechanisms that this kernel offers. A missing one is logged and exported as a metric, or ends the
// process if all are required.
func (d *privilegeDropper) drop() error {
	if err := d.try(sandbox.User, d.leaveRoot); err != nil {
		return err
	}
	left, err := privilege.Drop(d.role, d.capabilities()...)
	if err != nil {
		return err
	}
	d.sandbox.Hold(sandbox.Capabilities)
	d.log.Info("privileges dropped", "left", strings.Join(left, ","))
	var writable []string
	if d.dataDir != "" {
		writable = prom.Directories(d.dataDir)
	}
	if err := d.try(sandbox.Landlock, func() error { return privilege.Landlock(d.role, writable) }); err != nil {
		return err
	}
	return d.try(sandbox.Seccomp, func() error { return privilege.Seccomp(d.role) }) // last: the filter refuses the other mechanisms' system calls
}

// leaveRoot changes the user. The data directory follows afterwards, because the database creates files at any moment.
func (d *privilegeDropper) leaveRoot() error {
	root := privilege.Own().UID == 0
	err := privilege.Become(d.account)
	if d.link != nil { // the kernel forgets it when the user changes
		err = errors.Join(err, privilege.DieWithParent())
	}
	if err != nil || !root || d.dataDir == "" {
		return err
	}
	return prom.Give(d.dataDir, d.account.UID, d.account.GID)
}

func (d *privilegeDropper) try(mechanism string, confine func() error) error {
	err := confine()
	switch {
	case err == nil:
		d.sandbox.Hold(mechanism)
		d.log.Info("process confined", "mechanism", mechanism)
		return nil
	case d.wanted.Required && !errors.Is(err, privilege.ErrWatches):
		return required(err)
	}
	d.log.Info("process not confined", "mechanism", mechanism, "reason", err)
	return nil
}
