// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"errors"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/functions"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// filesOf is the key of the read of a process's files.
type filesOf struct{ runtime teelabel.Runtime }

// fileReading is a file of a runtime that was opened and examined while no lock was held.
type fileReading struct {
	path    string
	runtime string
	opened  *window.Opened
	probe   []func(*window.File) error // nil if the file was known
	err     error
}

// readings are the files of a process.
type readings []fileReading

// Close closes files that are not taken.
func (all readings) Close() error {
	var errs []error
	for _, f := range all {
		if f.opened != nil {
			errs = append(errs, f.opened.Close())
		}
	}
	return errors.Join(errs...)
}

// readFiles reads the files of processes. It uses nothing that a lock protects.
type readFiles struct {
	runtime    teelabel.Runtime
	mechanisms mechanisms
	known      func(hostfs.FileID) bool
}

// of opens and examines the files of a process that have functions of its runtime.
func (r readFiles) of(from host.Processes, tgid uint32) (readings, error) {
	maps, err := from.Mappings(tgid)
	if err != nil {
		return nil, err
	}
	exe, _ := from.Executable(tgid) // as named in its mappings
	looked := map[string]bool{}
	var all readings
	for _, m := range maps {
		mapped := string(m.Path)
		runtime := functions.InFile(r.runtime, mapped, mapped == exe)
		if runtime == "" || looked[mapped] {
			continue
		}
		looked[mapped] = true
		all = append(all, r.read(from, tgid, m, runtime))
	}
	return all, nil
}

func (r readFiles) read(from host.Processes, tgid uint32, m hostfs.Mapping, runtime string) fileReading {
	f := fileReading{path: string(m.Path), runtime: runtime}
	if f.opened, f.err = window.Open(from, tgid, m); f.err != nil || r.known(f.opened.ID) {
		return f
	}
	f.probe = []func(*window.File) error{}
	for _, mechanism := range r.mechanisms {
		probe, err := mechanism.Examine(f.opened.Program, runtime)
		if reader.Unanswered(err) {
			f.err = errors.Join(err, f.opened.Close())
			f.opened = nil
			return f
		}
		if probe != nil {
			f.probe = append(f.probe, probe)
		}
	}
	return f
}
