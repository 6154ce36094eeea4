// SPDX-License-Identifier: Apache-2.0

// Package cgroup reads what the kernel accounts for control groups: version 2, version 1, and both at
// once (hybrid). It knows no container, no process and no metric, and it never writes.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// ErrNone says that there is no cgroup file system below a root.
var ErrNone = errors.New("no cgroup file system is mounted")

// ErrTooMany says that a walk has ended before it saw every group.
var ErrTooMany = errors.New("more control groups than the limit")

// maxGroups bounds a walk: a machine with more has a leak of control groups.
const maxGroups = 1 << 14

// FS is the cgroup file systems below one root. It reads into one buffer: it is not safe for concurrent use.
type FS struct {
	names   string   // the tree whose directories say which groups there are
	sources []source // of statistics
	buf     []byte
	limit   int // of groups in one walk
}

// source is one tree with the files that are read in it.
type source struct {
	root  string
	files []file
}

// Open finds out which hierarchies are mounted below root, which is /sys/fs/cgroup by everybody's
// convention: version 2 on root itself, or each version 1 controller in a directory of its name
// ("cpu,cpuacct" where two share one) and version 2 beside them, called "unified" or else.
func Open(root string) (*FS, error) {
	unified, v1, err := mounted(root)
	if err != nil {
		return nil, err
	}
	f := &FS{names: unified, limit: maxGroups}
	if h := naming(v1); h != Unified {
		f.names = v1[h.Controller()] // the version 2 tree beside it may be empty
	}
	if f.names == "" {
		return nil, fmt.Errorf("opening %s: %w", root, ErrNone)
	}
	for _, t := range v1Files {
		if dir := v1[t.controller]; dir != "" {
			f.sources = append(f.sources, source{dir, t.files})
		}
	}
	if unified != "" {
		f.sources = append(f.sources, source{unified, notIn(v1)})
	}
	return f, nil
}

// mounted finds the version 2 tree and the version 1 trees by controller.
func mounted(root string) (unified string, v1 map[string]string, err error) {
	if exists(filepath.Join(root, "cgroup.controllers")) {
		return root, nil, nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return "", nil, fmt.Errorf("looking for cgroup file systems: %w", err)
	}
	v1 = map[string]string{}
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		switch {
		case exists(filepath.Join(dir, "cgroup.controllers")):
			unified = dir
		case exists(filepath.Join(dir, "cgroup.procs")):
			for name := range strings.SplitSeq(e.Name(), ",") {
				v1[name] = dir
			}
		}
	}
	return unified, v1, nil
}

// notIn lists the version 2 files of the controllers that no version 1 hierarchy has taken.
func notIn(v1 map[string]string) []file {
	var files []file
	for _, t := range v2Files {
		if t.controller == "" || v1[t.controller] == "" {
			files = append(files, t.files...)
		}
	}
	return files
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Group is one control group.
type Group struct {
	Path  string // below the root of its hierarchy, "/system.slice/nginx.service"
	Inode uint64 // another one when the group was removed and made again
}

// Walk visits every group below the root one, parents before children and siblings by name. Groups that
// go away meanwhile are left out.
func (f *FS) Walk(visit func(Group)) error {
	root, err := os.Lstat(f.names)
	if err != nil {
		return fmt.Errorf("walking the control groups: %w", err)
	}
	left := f.limit
	if !f.walk("", root, visit, &left) {
		return fmt.Errorf("walking the control groups: %w (%d)", ErrTooMany, f.limit)
	}
	return nil
}

func (f *FS) walk(path string, info os.FileInfo, visit func(Group), left *int) bool {
	// kernfs keeps the number of links of a directory at 2 + its subdirectories, and reading a directory
	// of some 60 files to find none is what a walk would cost most. Other file systems may say 1.
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink == 2 {
		return true
	}
	entries, _ := os.ReadDir(filepath.Join(f.names, path))
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		child := path + "/" + e.Name()
		info, err := os.Lstat(filepath.Join(f.names, child))
		if err != nil {
			continue
		}
		if *left--; *left < 0 {
			return false
		}
		g := Group{Path: child}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			g.Inode = stat.Ino
		}
		visit(g)
		if !f.walk(child, info, visit, left) {
			return false
		}
	}
	return true
}

// AppendProcs appends the IDs of the processes of one group without those of the groups below it.
func (f *FS) AppendProcs(pids []int, path string) []int {
	dir, err := hostfs.At(f.names).OpenDir(path)
	if err != nil {
		return pids
	}
	defer dir.Close()
	if data, ok := f.read(dir, "cgroup.procs"); ok {
		pids = appendProcs(pids, data)
	}
	return pids
}

// Stats reads the statistics of a group. What a kernel or a hierarchy does not have stays unknown. It
// is false when the group is in no hierarchy any more.
func (f *FS) Stats(path string, s *Stats) bool {
	s.reset()
	found := false
	for _, src := range f.sources {
		dir, err := hostfs.At(src.root).OpenDir(path)
		if err != nil {
			continue
		}
		found = true
		for _, file := range src.files {
			f.one(dir, file, s)
		}
		dir.Close()
	}
	return found
}

func (f *FS) one(dir hostfs.Dir, file file, s *Stats) {
	for _, name := range file.names {
		if data, ok := f.read(dir, name); ok {
			file.parse(data, s)
			return
		}
	}
}

// maxFile bounds what is read of one file: 150,000 process IDs.
const maxFile = 1 << 20

// read reads a file of an open directory into the buffer, which the next read overwrites. Of a file that is
// too long the whole lines that fit are read. An error means that the group went away, or that the controller
// is switched off.
func (f *FS) read(dir hostfs.Dir, name string) ([]byte, bool) {
	var err error
	f.buf, err = dir.Append(f.buf[:0], maxFile+1, name)
	return hostfs.WholeLines(f.buf, maxFile), err == nil
}
