// SPDX-License-Identifier: Apache-2.0

// Package cgroup reads the kernel's statistics of control groups: version 2, version 1, and both at once (hybrid). It does
// not depend on containers, processes or metrics, and never writes.
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

// ErrNone reports that no cgroup file system is mounted below a root.
var ErrNone = errors.New("no cgroup file system is mounted")

// errTooMany reports that a walk ended before it had visited every group.
var errTooMany = errors.New("more control groups than the limit")

// maxGroups bounds a walk. A machine with more groups has a leak of control groups.
const maxGroups = 1 << 14

// FS reads the cgroup file systems below one root. It uses one buffer, so it is not safe for concurrent use.
type FS struct {
	names   string   // the tree whose directories define the groups
	sources []source // of statistics
	buf     []byte
	limit   int // of groups in one walk
}

// source is one tree and the files that are read in it.
type source struct {
	root  string
	files []file
}

// Open finds the hierarchies that are mounted below root, by convention /sys/fs/cgroup. Version 2 is mounted on root
// itself. Otherwise each version 1 controller has a directory of its name ("cpu,cpuacct" where two share one). Version
// 2 may be mounted next to them, usually as "unified".
func Open(root string) (*FS, error) {
	unified, v1, err := mounted(root)
	if err != nil {
		return nil, err
	}
	f := &FS{names: unified, limit: maxGroups}
	if h := naming(v1); h != Unified {
		f.names = v1[h.Controller()] // the version 2 tree may be empty
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

// mounted finds the version 2 tree, and the version 1 trees by controller.
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

// notIn lists the version 2 files of the controllers that no version 1 hierarchy uses.
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
	Path  string // below the root of its hierarchy, such as "/system.slice/nginx.service"
	Inode uint64 // changes when the group is removed and created again
}

// Walk visits every group below the root group: parents before children, siblings by name. It skips groups that
// disappear during the walk.
func (f *FS) Walk(visit func(Group)) error {
	root, err := os.Lstat(f.names)
	if err != nil {
		return fmt.Errorf("walking the control groups: %w", err)
	}
	left := f.limit
	if !f.walk("", root, visit, &left) {
		return fmt.Errorf("walking the control groups: %w (%d)", errTooMany, f.limit)
	}
	return nil
}

func (f *FS) walk(path string, info os.FileInfo, visit func(Group), left *int) bool {
	// kernfs sets the number of links of a directory to 2 plus its subdirectories. Without this check, a walk would
	// spend most of its time reading directories of 60 files without subdirectories. Other file systems may report 1.
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

// AppendProcs appends the process IDs of one group, without those of the groups below it.
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

// Stats reads the statistics of a group. Statistics that a kernel or hierarchy lacks stay unknown. It returns false
// when the group is no longer in any hierarchy.
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

// maxFile is the maximum size of one file: 150,000 process IDs.
const maxFile = 1 << 20

// read reads a file of an open directory into the buffer, which the next read overwrites. From a longer file it reads the
// complete lines that fit. An error means that the group was removed, or that the controller is switched off.
func (f *FS) read(dir hostfs.Dir, name string) ([]byte, bool) {
	var err error
	f.buf, err = dir.Append(f.buf[:0], maxFile+1, name)
	return hostfs.WholeLines(f.buf, maxFile), err == nil
}
