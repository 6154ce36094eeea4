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
	ended bool
}

// look returns whether a process has an enclave, and its runtime. Files that cannot be read are skipped: the
// process has ended, or privileges are missing.
func (r Roots) look(tgid uint32) look {
	p, err := hostfs.At(r.Proc).Living(int(tgid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return look{ended: true}
	}
	c, last := CluesOf(p), []byte{}
	_ = p.Mappings(func(m hostfs.Mapping) {
		if !m.IsFile() || bytes.Equal(m.Path, last) { // the parts of a library are mapped one after another
			return
		}
		last = append(last[:0], m.Path...)
		c.Mapped(string(m.Path))
	})
	enclave := c.Enclave
	// A process maps an enclave within milliseconds of opening the device. But some processes only pass the
	// device on, so open files count too. Listing them is expensive, and is done only if there is a driver.
	if !enclave && r.hasSGX() {
		enclave = p.HasOpen(maxOpen, IsEnclaveDevice)
	}
	return look{finding: finding{enclave: enclave, runtime: c.Runtime()}}
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
