// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// errKind is the error of a manifest that is no regular file.
var errKind = errors.New("it is no regular file")

// configured reads the manifest of a program in Gramine, and the settings of one in SCONE.
func (f *Finder) configured(p *Program) {
	if teelabel.Runtime(p.Runtime) == teelabel.SCONE {
		p.Settings, p.Err = reader.Of(f.reads, p.first, func() (map[string]string, error) {
			return f.proc.Process(p.first).Environment(f.settings)
		})
		return
	}
	m, err := reader.Of(f.reads, p.first, func() (manifestFile, error) {
		return manifestOf(f.proc.Process(p.first), p.app, teelabel.Runtime(p.Runtime))
	})
	p.Manifest, p.Text, p.Err = m.name, m.text, err
}

// manifestFile is a manifest as its process sees it.
type manifestFile struct {
	name string
	text []byte
}

// manifestOf reads the manifest of a program. Gramine reads APPLICATION.manifest.sgx in its working directory, and
// gramine-direct APPLICATION.manifest.
func manifestOf(p hostfs.Process, app string, runtime teelabel.Runtime) (m manifestFile, err error) {
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
	m.text, err = inRoot(p, m.name)
	return m, err
}

// inRoot reads a file as a process sees it: in its own root, which may be that of a container. Links do not lead out of it.
func inRoot(p hostfs.Process, name string) ([]byte, error) {
	root, err := unix.Open(p.Path("root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: p.Path("root"), Err: err}
	}
	defer func() { _ = unix.Close(root) }()
	// Opening a device may do something to it, as to a watchdog, and a container may make one. So the file is looked at first.
	fd, err := unix.Openat2(root, strings.TrimPrefix(name, "/"), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return nil, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	if info.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("%s: %w", name, errKind)
	}
	file, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer file.Close()
	data, err := inputfile.ReadAll(file, manifest.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}
