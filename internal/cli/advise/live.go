// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/read"
	"github.com/teescope/teescope/internal/agent/live"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/text"
)

// thisMachine are the roots of the machine that the program runs on.
func thisMachine() live.Machine {
	const proc, groups = "/proc", "/sys/fs/cgroup"
	reads := reader.New(reader.Options{Proc: hostfs.At(proc), Cgroup: groups, Log: slog.New(slog.DiscardHandler)})
	return live.Machine{Roots: tee.Roots{Proc: proc, Dev: "/dev", Sys: "/sys"}, Cgroup: groups, Reads: reads}
}

// maxNamed bounds the programs that an error names.
const maxNamed = 10

// asRoot is what to do where processes of others may not be read.
const asRoot = "run teescope as root, which may read the processes of all users"

// loadLive finds the running program, and reads its manifest unless another one is named. It returns warnings.
func loadLive(f *advise.Facts, files Files) (warnings []string, err error) {
	finder := live.New(thisMachine(), read.SCONEVariables())
	all, err := finder.Find(files.PID)
	if err != nil {
		return nil, err
	}
	p, err := only(all, files.PID)
	if err != nil {
		return nil, err
	}
	finder.Read(p)
	f.Live, f.Gramine = &p.Live, p.Gramine
	known := files.Manifest != "" || p.Settings != nil && files.Config != ""
	switch {
	case known:
	case p.Err != nil:
		warnings = append(warnings, fmt.Sprintf("process %s: its settings are not known: %s", p, unreadable(p.Err)))
	case p.Settings != nil:
		c, err := read.SCONESettings(p.Settings)
		if err != nil {
			return nil, fmt.Errorf("reading the environment of process %s: %w", p, err)
		}
		f.Config, f.ConfigFile = &c, "environment of process "+p.String()
	default:
		m, err := parseManifest(p.Text, p.Manifest, files.Define)
		if err != nil {
			return []string{fmt.Sprintf("process %s: its settings are not known: %v", p, err)}, nil
		}
		f.Manifest, warnings = m, append(warnings, m.Warnings...)
	}
	if f.Manifest != nil && p.Settings == nil {
		finder.Encrypted(p, f.Manifest.EncryptedFiles())
	}
	if p.Processes[0].Files == 0 && os.Geteuid() != 0 {
		warnings = append(warnings, fmt.Sprintf("process %s: its open files and its enclave are not known: %s", p, asRoot))
	}
	return warnings, nil
}

// unreadable says why settings cannot be read, and what to do.
func unreadable(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return err.Error() + ": " + asRoot
	}
	return err.Error() + ": name its manifest with --manifest, or its settings with --config"
}

// only returns the program if there is one.
func only(all []live.Program, pid int) (*live.Program, error) {
	switch {
	case len(all) == 1:
		return &all[0], nil
	case len(all) > 1:
		var names []string
		for i := range all[:min(len(all), maxNamed)] {
			names = append(names, all[i].String())
		}
		if len(all) > maxNamed {
			names = append(names, "and others")
		}
		return nil, fmt.Errorf("%d programs run in Gramine or SCONE: name one with --pid: %s", len(all), strings.Join(names, ", "))
	case pid != 0:
		return nil, fmt.Errorf("process %d does not run, or not in Gramine or SCONE", pid)
	case os.Geteuid() != 0:
		return nil, errors.New("no program is seen to run in Gramine or SCONE: " + asRoot)
	}
	return nil, errors.New("no program runs in Gramine or SCONE on this machine")
}

// running says what the running program shows, and what an agent counted.
func (r *Report) running() []string {
	var all []string
	if r.Gramine != "" {
		all = append(all, "Gramine "+r.Gramine+".")
	}
	if r.Live == nil {
		return append(all, r.counted()...)
	}
	l := r.Live
	for i, p := range l.Processes[:min(len(l.Processes), maxNamed)] {
		line := fmt.Sprintf("Process %d of %s (%s): %s, %s", p.PID, l.App, l.Runtime,
			text.Plural(p.Threads, "thread", "threads"), text.Plural(p.Files, "open file", "open files"))
		if p.Pipes != nil {
			line += ", " + text.Plural(*p.Pipes, "socket", "sockets") + " of Gramine's pipes"
		}
		if p.Encrypted != nil {
			line += fmt.Sprintf(", %d open encrypted files", *p.Encrypted)
		}
		if p.Enclave > 0 {
			line += ", enclave of " + render.Value(float64(p.Enclave), "bytes")
		}
		if i == 0 && l.Workload != "" {
			line += ", workload " + l.Workload
		}
		all = append(all, line+".")
	}
	if more := len(l.Processes) - maxNamed; more > 0 {
		all = append(all, fmt.Sprintf("It has %d further processes.", more))
	}
	return append(all, r.counted()...)
}

// counted says what an agent counted of the workload, if that is known.
func (r *Report) counted() []string {
	return append(r.exits(), r.bursts()...)
}

// bursts says in which seconds most threads start, and which sockets are made in the same seconds.
func (r *Report) bursts() []string {
	b := r.Bursts
	if b == nil || b.Starts == 0 {
		return nil
	}
	return []string{fmt.Sprintf("In the busiest %g s, %s threads start, %s sockets are made and %s are bound.", b.Step, render.Value(b.Starts, "1/s"), render.Value(b.Sockets, "1/s"), render.Value(b.Binds, "1/s"))}
}

// exits says how often the enclave is left.
func (r *Report) exits() []string {
	if r.Rates == nil {
		return nil
	}
	line := render.Value(r.Rates.Exits, "1/s") + " enclave exits"
	if r.Rates.AEXs != nil {
		line += ", " + render.Value(*r.Rates.AEXs, "1/s") + " asynchronous exits (AEX)"
	}
	if r.Rates.Starts != nil {
		line += ", " + render.Value(*r.Rates.Starts, "1/s") + " starts of threads"
	}
	if r.Rates.Forks != nil {
		line += ", " + render.Value(*r.Rates.Forks, "1/s") + " forks"
	}
	return []string{"Counted by " + r.Rates.Source + ": " + line + "."}
}
