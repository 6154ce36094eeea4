// SPDX-License-Identifier: Apache-2.0

// Package check reports what this machine supports and what is missing: TEEs, kernel features, each probe, and privileges.
// For each missing item it says what to do. It tries what can be tried and reads the rest. It does not change anything, and
// leaves nothing attached.
package check

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/agent/collector/system"
	"github.com/teescope/teescope/internal/agent/probe"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/tee/cvm/guest"
	"github.com/teescope/teescope/internal/agent/tee/sgx/driver"
	"github.com/teescope/teescope/internal/agent/tee/vm"
	"github.com/teescope/teescope/internal/agent/userprobe"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/privilege"
)

// schema is the version of the JSON report. It changes when a field is removed or changes its meaning, not when one is
// added.
const schema = 1

// Status is the result of a check.
type Status string

// The statuses.
const (
	OK      Status = "ok"
	Limited Status = "limited" // it works with restrictions
	Missing Status = "missing"
	Unknown Status = "unknown" // it could not be checked
)

// Check is the result for one item.
type Check struct {
	Group    string `json:"group"` // tee, kernel, privilege, probe or control
	Name     string `json:"name"`
	Status   Status `json:"status"`
	Required bool   `json:"required"` // the agent cannot run without it
	Detail   string `json:"detail"`
	Advice   string `json:"advice,omitempty"` // what to do about it
	// For a probe: the mechanism by which it attaches, and all ways that were tried.
	Mechanism string `json:"mechanism,omitempty"`
	Ways      []Way  `json:"ways,omitempty"`
}

// Way is one way of attaching a probe.
type Way struct {
	Mechanism string `json:"mechanism"`
	Target    string `json:"target"`
	Attaches  bool   `json:"attaches"`
	Reason    string `json:"reason,omitempty"` // the reason why it does not work
}

// Report is the result of all checks.
type Report struct {
	Schema int     `json:"schema"`
	CanRun bool    `json:"can_run"` // nothing required is missing
	Kernel string  `json:"kernel"`  // release, empty when unknown
	CPU    string  `json:"cpu"`     // model name, empty when unknown
	Checks []Check `json:"checks"`
}

// Options configure what is checked. Tests set a fake machine.
type Options struct {
	Roots  tee.Roots
	Cgroup string // root of the cgroup file systems
	Binary string // the binary that advice refers to
	Held   func(capability string) bool
	Try    func() ([]probe.Trial, error)
	// Landlock returns the version of the kernel's Landlock interface.
	Landlock func() (int, error)
	// Hidden is the reason why the files of the machine cannot be read in this container. It is nil if they can, and outside.
	Hidden error
	// Control returns whether the configuration of this machine lets measuring be switched on while the agent runs, and for how
	// long at most. It may be nil.
	Control func() (allowed bool, longest time.Duration, err error)
}

// Machine returns the options for this machine. The user's probes of a file are tried too, if it has a name.
func Machine(binary, probes string) Options {
	root, hidden := hostfs.At("/proc").MachineRoot() // another one in a container
	roots, cgroup := tee.Roots{Proc: "/proc", Dev: filepath.Join(root, "dev"), Sys: filepath.Join(root, "sys")}, filepath.Join(root, "sys/fs/cgroup")
	if hidden != nil {
		roots.Sys = "/sys" // as the agent does
	}
	return Options{
		Roots: roots, Cgroup: cgroup, Hidden: hidden, Binary: binary, Held: privilege.Held, Landlock: privilege.LandlockVersion,
		Try: func() ([]probe.Trial, error) {
			quiet := slog.New(slog.DiscardHandler)
			all, err := system.Try(system.Options{
				MaxWorkloads: 8, SyscallTime: true, Proc: roots.Proc, Sys: roots.Sys, Cgroup: cgroup, Log: quiet,
			})
			if err != nil {
				return nil, err
			}
			more, err := driver.Try(driver.Options{Roots: roots, Cgroup: cgroup, MaxWorkloads: 8, Log: quiet})
			if err != nil {
				return nil, err
			}
			machines, err := vm.Try(roots)
			if err != nil {
				return slices.Concat(all, more, machines), err
			}
			confidential, err := guest.Try(roots, cgroup)
			if err != nil || probes == "" {
				return slices.Concat(all, more, machines, confidential), err
			}
			own, err := userprobe.Try(userprobe.Options{File: probes, Proc: roots.Proc, Sys: roots.Sys, Cgroup: cgroup, Root: root, MaxWorkloads: 8, Log: quiet})
			return slices.Concat(all, more, machines, confidential, own), err
		},
	}
}

// Run makes all checks.
func Run(o Options) *Report {
	cpu := o.cpu()
	r := &Report{Schema: schema, Kernel: printable(o.release()), CPU: printable(cpu.Name), CanRun: true}
	t := o.try()
	r.Checks = append(r.Checks, o.tees(cpu, t)...)
	r.Checks = append(r.Checks, o.kernel(r.Kernel, t)...)
	r.Checks = append(r.Checks, o.privileges()...)
	r.Checks = append(r.Checks, o.probes(t)...)
	r.Checks = append(r.Checks, o.control()...)
	for _, c := range r.Checks {
		if c.Required && c.Status != OK && c.Status != Limited {
			r.CanRun = false
		}
	}
	return r
}

// Err returns nil when the agent can run here. Otherwise the error names what is missing.
func (r *Report) Err() error {
	if r.CanRun {
		return nil
	}
	var names []string
	for _, c := range r.Checks {
		if c.Required && c.Status != OK && c.Status != Limited {
			names = append(names, c.Group+" "+c.Name)
		}
	}
	return fmt.Errorf("the agent cannot run on this machine because of: %s", strings.Join(names, ", "))
}

// trials holds the results of trying the probes.
type trials struct {
	all []probe.Trial
	err error
	not string // why nothing was tried
}

// try attaches the probes. Without privileges it tries none, because each would fail for the same reason.
func (o Options) try() trials {
	if missing := o.missing(); len(missing) > 0 {
		return trials{not: "not tried without " + strings.Join(missing, " and ")}
	}
	all, err := o.Try()
	return trials{all: all, err: err}
}
