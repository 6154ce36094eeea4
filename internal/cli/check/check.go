// SPDX-License-Identifier: Apache-2.0

// Package check says what this machine supports and what is missing: TEEs, features of the kernel, each
// probe, privileges, and for each missing thing what to do. It tries what can be tried and reads the
// rest; it refuses to change anything, and leaves nothing attached.
package check

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/teescope/teescope/internal/agent/collector/system"
	"github.com/teescope/teescope/internal/agent/probe"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/tee/sgx/driver"
	"github.com/teescope/teescope/internal/lib/privilege"
)

// Schema is the version of the JSON report: it changes when a field goes or changes its meaning, and
// not when one is added.
const Schema = 1

// Status is what came of a check.
type Status string

// The statuses.
const (
	OK      Status = "ok"
	Limited Status = "limited" // it works, and something is less than it could be
	Missing Status = "missing"
	Unknown Status = "unknown" // it could not be looked at
)

// Check is one thing that was looked at.
type Check struct {
	Group    string `json:"group"` // tee, kernel, privilege or probe
	Name     string `json:"name"`
	Status   Status `json:"status"`
	Required bool   `json:"required"` // the agent cannot run while it is missing
	Detail   string `json:"detail"`
	Advice   string `json:"advice,omitempty"` // what to do about it
	// Of a probe: the mechanism that it attaches by, and all ways that were tried.
	Mechanism string `json:"mechanism,omitempty"`
	Ways      []Way  `json:"ways,omitempty"`
}

// Way is one way of attaching a probe.
type Way struct {
	Mechanism string `json:"mechanism"`
	Target    string `json:"target"`
	Attaches  bool   `json:"attaches"`
	Reason    string `json:"reason,omitempty"` // why not
}

// Report is the whole answer.
type Report struct {
	Schema int     `json:"schema"`
	CanRun bool    `json:"can_run"` // nothing that is required is missing
	Kernel string  `json:"kernel"`  // release, empty when unknown
	CPU    string  `json:"cpu"`     // model name, empty when unknown
	Checks []Check `json:"checks"`
}

// Options are what is looked at, and how. Tests put a fake machine there.
type Options struct {
	Roots  tee.Roots
	Cgroup string // root of the cgroup file systems
	Binary string // what advice about the binary names
	Held   func(capability string) bool
	Try    func() ([]probe.Trial, error)
	// Landlock tells the version of the kernel's interface.
	Landlock func() (int, error)
}

// Machine is this machine.
func Machine(binary string) Options {
	roots, cgroup := tee.Roots{Proc: "/proc", Dev: "/dev", Sys: "/sys"}, "/sys/fs/cgroup"
	return Options{
		Roots: roots, Cgroup: cgroup, Binary: binary, Held: privilege.Held, Landlock: privilege.LandlockVersion,
		Try: func() ([]probe.Trial, error) {
			quiet := slog.New(slog.DiscardHandler)
			all, err := system.Try(system.Options{
				MaxWorkloads: 8, SyscallTime: true, Proc: roots.Proc, Cgroup: cgroup, Log: quiet,
			})
			if err != nil {
				return nil, err
			}
			more, err := driver.Try(driver.Options{Roots: roots, Cgroup: cgroup, MaxWorkloads: 8, Log: quiet})
			return append(all, more...), err
		},
	}
}

// Run looks at everything.
func Run(o Options) *Report {
	cpu := o.cpu()
	r := &Report{Schema: Schema, Kernel: printable(o.release()), CPU: cpu.model, CanRun: true}
	t := o.try()
	r.Checks = append(r.Checks, o.tees(cpu, t)...)
	r.Checks = append(r.Checks, o.kernel(r.Kernel, t)...)
	r.Checks = append(r.Checks, o.privileges()...)
	r.Checks = append(r.Checks, o.probes(t)...)
	for _, c := range r.Checks {
		if c.Required && c.Status != OK && c.Status != Limited {
			r.CanRun = false
		}
	}
	return r
}

// Err is nil when the agent can run here, and else names what is in the way.
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

// trials is what came of trying the probes.
type trials struct {
	all []probe.Trial
	err error
	not string // why nothing was tried
}

// try attaches the probes, if there is a chance: without privileges each would say so.
func (o Options) try() trials {
	if missing := o.missing(); len(missing) > 0 {
		return trials{not: "not tried without " + strings.Join(missing, " and ")}
	}
	all, err := o.Try()
	return trials{all: all, err: err}
}
