// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// Reasons why a manifest is not read.
var (
	errKind    = errors.New("it is not a regular file")
	errForeign = errors.New("it belongs to another user than the process, and not everyone may read it")
)

// configured reads the manifest of a program in Gramine, and the settings of one in SCONE.
func (f *Finder) configured(p *Program) {
	if teelabel.Runtime(p.Runtime) == teelabel.SCONE {
		p.Settings, p.Err = reader.Of(f.reads, p.first, func() (map[string]string, error) {
			return f.proc.Process(p.first).Environment(f.settings)
		})
		return
	}
	p.Gramine, _ = reader.Of(f.reads, p.first, func() (*manifest.Versions, error) { return installed(f.proc.Process(p.first)), nil })
	m, err := reader.Of(f.reads, p.first, func() (manifestFile, error) {
		return manifestOf(f.proc.Process(p.first), p.app, teelabel.Runtime(p.Runtime), manifest.MaxBytes)
	})
	p.Manifest, p.Text, p.Err = m.name, m.text, err
}

// manifestFile is a manifest as its process sees it.
type manifestFile struct {
	name    string
	text    []byte
	written time.Time
}

// manifestOf reads the manifest of a program. Gramine reads APPLICATION.manifest.sgx in its working directory, and gramine-direct
// APPLICATION.manifest. A manifest of more than most bytes is an error.
func manifestOf(p hostfs.Process, app string, runtime teelabel.Runtime, most int64) (m manifestFile, err error) {
	m.name = app + ".manifest"
	if runtime == teelabel.GramineSGX {
		m.name += ".sgx"
	}
	if !path.IsAbs(m.name) {
		dir, err := p.Link("cwd")
		if err != nil {
			return m, err
		}
		m.name = path.Join(hostfs.Undeleted(dir), m.name)
	}
	err = m.inRoot(p, most)
	return m, err
}

// inRoot reads a manifest, which must be a regular file, as its process sees it: in the root of the process, which may be that of
// a container. It reads only files that the user of the process may reach and read, and it ignores the rights of groups.
// Otherwise any user could start a program that looks like Gramine, and link or mount any file as its manifest.
func (m *manifestFile) inRoot(p hostfs.Process, most int64) error {
	id, known := p.User()
	if !known {
		return fmt.Errorf("%s: %w", m.name, errForeign)
	}
	user := hostfs.User(id)
	fd, err := p.Locate(m.name, user)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return &os.PathError{Op: "stat", Path: m.name, Err: err}
	}
	switch {
	case info.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("%s: %w", m.name, errKind)
	case !user.MayRead(&info):
		return fmt.Errorf("%s: %w", m.name, errForeign)
	}
	file, err := hostfs.Reopen(fd, m.name)
	if err != nil {
		return err
	}
	defer file.Close()
	m.written = time.Unix(info.Mtim.Unix())
	if m.text, err = inputfile.ReadAll(file, most); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	return nil
}
