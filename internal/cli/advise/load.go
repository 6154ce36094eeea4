// SPDX-License-Identifier: Apache-2.0

// Package advise is teescope advise without its flags: it reads the files that the user names, and writes advice as text,
// JSON or Markdown, and the changed manifest beside the original.
//
// It does not evaluate settings.
package advise

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/machine"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/advise/read"
	"github.com/teescope/teescope/internal/advise/rules"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/condition"
)

// maxTable bounds files of stats and of strace -c, in bytes.
const maxTable = 64 << 20

// maxConfig bounds the configuration of another runtime, in bytes.
const maxConfig = 1 << 20

// ThisMachine as a name of a file stands for the machine that the program runs on.
const ThisMachine = "this"

// Files has the files to read. All are optional.
type Files struct {
	Manifest, Stats, Strace, Log, Profile, Scaling, Config, Run string
	Define                                                      []string // k=v, the variables of a template
	Machine                                                     []string // files with facts, or [ThisMachine]
	Elapsed                                                     time.Duration
	Live                                                        bool   // find the running program
	PID                                                         int    // of the running program; 0 is the only one
	Gramine                                                     string // its version, or a file of the installed package
}

// Report is the advice with what it is based on.
type Report struct {
	advise.Result
	Machine  machine.Machine   `json:"machine"`
	Manifest string            `json:"manifest,omitempty"`
	Signed   bool              `json:"signed"` // the manifest is signed: changes belong into its source
	Warnings []string          `json:"warnings"`
	WhatIf   []advise.Estimate `json:"what_if,omitempty"`
	Gramine  string            `json:"gramine,omitempty"` // its version, and where that was read
	Live     *advise.Live      `json:"live,omitempty"`
	Rates    *advise.Rates     `json:"rates,omitempty"`
	Bursts   *advise.Bursts    `json:"bursts,omitempty"`
	Locks    *advise.Locks     `json:"locks,omitempty"`

	source *manifest.Manifest
}

// Load reads the files. The findings of an analysis are added by the caller.
func Load(files Files) (*advise.Facts, []string, error) {
	f := &advise.Facts{Elapsed: files.Elapsed, StatsFile: files.Stats, CallsFile: files.Strace, LogFile: files.Log, ProfileFile: files.Profile, ScalingFile: files.Scaling, ConfigFile: files.Config}
	var warnings []string
	if files.Manifest != "" {
		m, err := loadManifest(files)
		if err != nil {
			return nil, nil, err
		}
		f.Manifest, warnings = m, append(warnings, m.Warnings...)
	}
	if files.Live {
		notes, err := loadLive(f, files)
		if err != nil {
			return nil, nil, err
		}
		warnings = append(warnings, notes...)
	}
	if files.Stats != "" {
		s, err := load(files.Stats, "SGX stats", maxTable, read.ParseStats)
		if err != nil {
			return nil, nil, err
		}
		f.Stats = &s
	}
	if files.Strace != "" {
		if err := loadStrace(f, files.Strace); err != nil {
			return nil, nil, err
		}
	}
	if files.Log != "" {
		l, err := load(files.Log, "log of Gramine", read.MaxBytes, read.ParseLog)
		if err != nil {
			return nil, nil, err
		}
		f.Log = &l
	}
	if files.Config != "" {
		c, err := load(files.Config, "configuration of the enclave", maxConfig, read.ParseConfig)
		if err != nil {
			return nil, nil, err
		}
		f.Config = &c
	}
	if files.Scaling != "" {
		s, err := load(files.Scaling, "throughput", maxTable, read.ParseScaling)
		if err != nil {
			return nil, nil, err
		}
		f.Scaling = s
	}
	if files.Profile != "" {
		p, notes, err := loadProfile(files.Profile, f.Manifest)
		if err != nil {
			return nil, nil, err
		}
		f.Profile, warnings = p, append(warnings, notes...)
	}
	notes, err := loadVersion(f, files)
	if err != nil {
		return nil, nil, err
	}
	warnings = append(warnings, notes...)
	m, err := loadMachine(files)
	if f.Machine = &m; err != nil {
		return nil, nil, err
	}
	if f.Stats != nil {
		for _, note := range f.Stats.Notes {
			warnings = append(warnings, files.Stats+": "+note)
		}
	}
	return f, warnings, nil
}

// load reads one file. The error names it.
func load[T any](name, what string, most int64, parse func([]byte) (T, error)) (T, error) {
	var zero T
	data, err := inputfile.Read(name, most)
	if err != nil {
		return zero, fmt.Errorf("reading the %s: %w", what, err)
	}
	parsed, err := parse(data)
	if err != nil {
		return zero, fmt.Errorf("reading the %s: %s: %w", what, name, err)
	}
	return parsed, nil
}

// loadStrace reads the table of strace -c, or a trace with what each call moved.
func loadStrace(f *advise.Facts, name string) error {
	_, err := load(name, "output of strace", maxTable, func(data []byte) (struct{}, error) {
		calls, table := read.ParseCalls(data)
		if table == nil {
			f.Calls = &calls
			return struct{}{}, nil
		}
		traffic, err := read.ParseTraffic(data)
		if err == nil {
			f.Traffic = &traffic
			return struct{}{}, nil
		}
		return struct{}{}, errors.Join(table, err)
	})
	return err
}

func loadManifest(files Files) (*manifest.Manifest, error) {
	data, err := inputfile.Read(files.Manifest, manifest.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	return parseManifest(data, files.Manifest, files.Define)
}

// parseManifest parses a manifest with variables of its template, each NAME=VALUE.
func parseManifest(data []byte, name string, variables []string) (*manifest.Manifest, error) {
	define := make(map[string]string)
	for _, d := range variables {
		k, v, ok := strings.Cut(d, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("--define %q: write NAME=VALUE, such as --define log_level=error", text.Short(d, 100))
		}
		define[k] = v
	}
	m, err := manifest.Parse(data, manifest.Options{Name: name, Define: define})
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	if !manifest.OfGramine(m) {
		return nil, fmt.Errorf("reading the manifest: %s: the content is not recognized: a manifest of Gramine has keys such as libos.entrypoint and sgx.enclave_size", m.Name)
	}
	return m, nil
}

// WithoutEffect says which variables of a template its marks do not have.
func WithoutEffect(f *advise.Facts, files Files) (warnings []string) {
	if f.Manifest == nil {
		return nil
	}
	var names []string
	for _, d := range files.Define {
		name, _, _ := strings.Cut(d, "=")
		names = append(names, name)
	}
	for _, name := range manifest.Unused(f.Manifest, names) {
		warnings = append(warnings, fmt.Sprintf("--define %s has no effect: no mark {{ ... }} of %s has this name", text.Terminal(text.Short(name, 100)), f.Manifest.Name))
	}
	return warnings
}

// ForgetMachine removes the facts about the machine, which are of another one than the workload's.
func ForgetMachine(f *advise.Facts) { f.Machine = &machine.Machine{} }

// loadMachine reads the facts about the machine. Without a file, those of the run count.
func loadMachine(files Files) (machine.Machine, error) {
	var all machine.Machine
	for _, name := range files.Machine {
		if name == ThisMachine {
			all.Merge(machine.This(condition.ThisHost()))
			continue
		}
		data, err := inputfile.Read(name, machine.MaxBytes)
		if err != nil {
			return all, fmt.Errorf("reading the facts about the machine: %w", err)
		}
		m, err := machine.Parse(data, name)
		if err != nil {
			return all, fmt.Errorf("reading the facts about the machine: %w", err)
		}
		all.Merge(m)
	}
	if files.Run != "" {
		r, err := run.Open(files.Run)
		if err != nil {
			return all, text.Remedy(err, "name a file that teescope record wrote")
		}
		conditions := make([]condition.Condition, len(r.Meta.Conditions))
		for i, c := range r.Meta.Conditions {
			conditions[i] = condition.Condition{Name: c.Name, Value: c.Value, Kind: condition.Kind(c.Kind)}
		}
		all.Merge(machine.FromConditions(conditions, files.Run))
	}
	return all, nil
}

// Make evaluates all rules.
func Make(f *advise.Facts, warnings []string) *Report {
	r := &Report{Result: advise.Evaluate(f, rules.All()), Machine: *f.Machine, Warnings: append([]string{}, warnings...), Live: f.Live, Rates: f.Rates, Bursts: f.Bursts, Locks: f.Locks, source: f.Manifest}
	if f.Gramine != nil {
		r.Gramine = fmt.Sprintf("%s (%s)", f.Gramine, f.Gramine.Source)
	}
	if f.Manifest != nil {
		r.Manifest, r.Signed = f.Manifest.Name, f.Manifest.Signed
		if r.Signed {
			r.Warnings = append(r.Warnings, f.Manifest.Name+": it is signed: make the changes in the manifest that it was made from, and sign it again")
		}
	}
	return r
}

// Ask adds the estimates of what settings would do, each KEY=VALUE.
func (r *Report) Ask(f *advise.Facts, questions []string) error {
	for _, q := range questions {
		e, err := rules.WhatIf(f, q)
		if err != nil {
			return fmt.Errorf("--what-if %s: %w", text.Terminal(text.Short(q, 100)), err)
		}
		r.WhatIf = append(r.WhatIf, e)
	}
	return nil
}

// Apply writes the changed manifest to a new file beside the original, NAME.advised. It never replaces a file and follows no
// link. It returns the name and the rules whose changes the file has; without changes the name is empty.
func (r *Report) Apply(name string) (written string, applied []string, err error) {
	changed, applied, err := advise.Apply(r.source, r.Advice)
	if err != nil {
		return "", nil, fmt.Errorf("changing the manifest: %w", err)
	}
	if len(applied) == 0 {
		return "", nil, nil
	}
	perm := os.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		perm = info.Mode().Perm() & 0o666
	}
	written = name + ".advised"
	f, err := os.OpenFile(written, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, perm)
	if err != nil {
		if errors.Is(err, os.ErrExist) {
			err = fmt.Errorf("%w: remove or rename it first, because --apply replaces no file", err)
		}
		return "", nil, fmt.Errorf("writing the changed manifest: %w", err)
	}
	_, err = f.Write(changed)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", nil, fmt.Errorf("writing the changed manifest: %w", errors.Join(err, os.Remove(written)))
	}
	return written, applied, nil
}
