// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// Limits of what is read of one process.
const (
	maxArgs = 8   // runtimes are recognised by the first arguments
	maxOpen = 256 // open files
	// mostAgain is the number of inspections in a row that do not read the mappings because their size is the same. A process can
	// replace a mapping by another one of the same size.
	mostAgain = 15
)

// process identifies a process and its program. It differs for another process with the same ID.
type process struct {
	started time.Duration // time since the machine started
	comm    string
}

func (r Roots) of(tgid uint32) hostfs.Process { return hostfs.At(r.Proc).Process(int(tgid)) }

// process identifies the process that has the ID now. It reads the stat file of the first thread, because that of
// the process adds up the times of all threads. That is slow with thousands of threads.
func (r Roots) process(tgid uint32) (process, bool) {
	s, err := r.of(tgid).Thread(int(tgid)).Stat()
	return process{started: s.Started, comm: s.Comm}, err == nil
}

// look is the result of an inspection.
type look struct {
	finding
	mapped image
	ended  bool
}

// image is what the mappings of a process have shown.
type image struct {
	finding
	pages    uint64 // mapped before they were read; 0 if this is not known
	again    int    // number of later inspections that have not read the mappings again
	programs int    // number of programs that the process has run before, so that two images of different programs differ
}

// lookAgain inspects a process whose mappings were read before, if it has not mapped or unmapped anything since. It reads no file
// that the process can block, and needs a tenth of the time of look.
func (r Roots) lookAgain(tgid uint32, before image) (f finding, same bool) {
	if before.pages == 0 || before.again >= mostAgain {
		return finding{}, false
	}
	p := r.of(tgid)
	if pages, err := p.Size(); err != nil || pages != before.pages {
		return finding{}, false
	}
	f = before.finding
	f.enclave = f.enclave || r.opened(p)
	return f, true
}

// opened reports whether a process has opened a device that creates enclaves. A process maps an enclave within milliseconds of
// that, but some processes only pass the device on. Listing open files is expensive, and is done only if there is a driver.
func (r Roots) opened(p hostfs.Process) bool {
	return r.hasSGX() && p.HasOpen(maxOpen, IsEnclaveDevice)
}

// look returns whether a process has an enclave, and its runtime. Files that cannot be read are skipped: the
// process has ended, or privileges are missing.
func (r Roots) look(tgid uint32) look {
	p := r.of(tgid)
	pages, _ := p.Size() // before the mappings: if they change meanwhile, the next inspection finds another size
	if pages == 0 {      // the process, or its first thread, has ended
		living, err := hostfs.At(r.Proc).Living(int(tgid))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			return look{ended: true}
		}
		p = living
	}
	c, last := CluesOf(p), []byte{}
	err := p.Mappings(func(m hostfs.Mapping) {
		if !m.IsFile() || bytes.Equal(m.Path, last) { // the parts of a library are mapped one after another
			return
		}
		last = append(last[:0], m.Path...)
		c.Mapped(string(m.Path))
	})
	if err != nil {
		pages = 0 // the next inspection reads them again
	}
	mapped := finding{enclave: c.Enclave, runtime: c.Runtime()}
	found := mapped
	found.enclave = mapped.enclave || r.opened(p)
	return look{finding: found, mapped: image{finding: mapped, pages: pages}}
}

// Look returns whether a process has an enclave now, and the runtime that started it. Unlike a [Detector] it remembers nothing.
func (r Roots) Look(tgid uint32) (enclave bool, runtime teelabel.Runtime) {
	f := r.look(tgid)
	return f.enclave, f.runtime
}

// IsEnclaveDevice reports whether a path is a device that creates enclaves. The device may no longer exist, because a
// container can remove it.
func IsEnclaveDevice(path string) bool {
	node, ok := strings.CutPrefix(hostfs.Undeleted(path), "/dev/")
	return ok && slices.Contains(sgxNodes, node)
}
