// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"
	"path"
	"strings"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// pipeName begins the abstract names of Gramine's sockets (get_gramine_unix_socket_addr in pal/src/host/linux-common).
const pipeName = "@/gramine/"

// pipes counts the open files that are sockets with a name of Gramine: a listening socket for each name, and a socket for each
// accepted connection. It returns nil if the sockets or the files are not known.
func pipes(p hostfs.Process, files []string) *int {
	named := make(map[uint64]bool)
	err := p.UnixSockets(func(inode uint64, name []byte) {
		if bytes.HasPrefix(name, []byte(pipeName)) && len(named) < maxFiles {
			named[inode] = true
		}
	})
	if err != nil || len(files) == 0 {
		return nil
	}
	n := 0
	if len(named) > 0 {
		n = count(p, files, func(target string) bool {
			inode, ok := hostfs.SocketInode(target)
			return ok && named[inode]
		})
	}
	return &n
}

// count returns how many of the open files lead to something. A file that was closed meanwhile does not count.
func count(p hostfs.Process, files []string, is func(target string) bool) int {
	n := 0
	for _, name := range files {
		if target, err := p.Link("fd", name); err == nil && is(target) {
			n++
		}
	}
	return n
}

// Encrypted adds the number of open files of each process of a Gramine program that are one of these files, or in one of these
// folders. The manifest names them.
func (f *Finder) Encrypted(program *Program, files []string) {
	for i := range program.Processes {
		one := &program.Processes[i]
		n, err := reader.Of(f.reads, one.PID, func() (*int, error) { return encrypted(f.proc.Process(one.PID), files) })
		if err == nil {
			one.Encrypted = n
		}
	}
}

// encrypted counts the open files of a process in these files and folders. Relative ones are below its working directory.
func encrypted(p hostfs.Process, files []string) (*int, error) {
	cwd, err := p.Link("cwd")
	if err != nil {
		return nil, err
	}
	open, err := p.Names(maxFiles, "fd")
	if err != nil {
		return nil, err
	}
	var all []string
	for _, name := range files {
		if !path.IsAbs(name) {
			name = path.Join(hostfs.Undeleted(cwd), name)
		}
		all = append(all, path.Clean(name))
	}
	n := count(p, open, func(target string) bool {
		for _, name := range all {
			if target == name || strings.HasPrefix(target, strings.TrimSuffix(name, "/")+"/") {
				return true
			}
		}
		return false
	})
	return &n, nil
}
