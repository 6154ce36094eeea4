// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// Bounds of what is looked at in one process.
const (
	maxArgs = 8   // runtimes are told by the first arguments
	maxOpen = 256 // open files
)

// process tells one process and program from the next with the same ID.
type process struct {
	started time.Duration // after the start of the machine
	comm    string
}

func (r Roots) of(tgid uint32) hostfs.Process { return hostfs.At(r.Proc).Process(int(tgid)) }

// process reads who has the ID now. The first thread's own stat is read: that of the process adds up
// the times of all threads, which takes long where there are thousands.
func (r Roots) process(tgid uint32) (process, bool) {
	s, err := r.of(tgid).Thread(int(tgid)).Stat()
	return process{started: s.Started, comm: s.Comm}, err == nil
}

// look finds out whether a process has an enclave, and its runtime. What cannot be read, because the
// process has ended or privileges are missing, says nothing.
func (r Roots) look(tgid uint32) finding {
	c, p := clues{}, r.of(tgid)
	exe, _ := p.Executable()
	c.exe = hostfs.Undeleted(exe)
	c.args, _ = p.Args(maxArgs)
	enclave, last := false, []byte{}
	_ = p.Mappings(func(m hostfs.Mapping) {
		if !m.IsFile() || bytes.Equal(m.Path, last) { // a library is mapped several times in a row
			return
		}
		last = append(last[:0], m.Path...)
		path := string(m.Path)
		enclave = enclave || isNode(path)
		c.mapped(path)
	})
	// Between opening the device and mapping an enclave there are milliseconds at most, but some
	// processes only hand the device on. Listing files is expensive, so it is done only where there is a driver.
	if !enclave && r.hasSGX() {
		enclave = p.HasOpen(maxOpen, isNode)
	}
	return finding{enclave: enclave, runtime: c.runtime()}
}

// isNode tells whether a path is a device that makes enclaves. A container may have removed it since.
func isNode(path string) bool {
	node, ok := strings.CutPrefix(hostfs.Undeleted(path), "/dev/")
	return ok && slices.Contains(sgxNodes, node)
}
