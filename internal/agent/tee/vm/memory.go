// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
)

// maxMemoryStat bounds a file memory.stat, which has a line for each kind of memory.
const maxMemoryStat = 16 << 10

// accounting are the hierarchies that can account for memory: version 1, whose files are below a directory, and version 2. The
// field is memory that can be neither swapped nor reclaimed, as that of guest_memfd is (AS_INACCESSIBLE, virt/kvm/guest_memfd.c).
var accounting = []struct{ controller, dir, field string }{
	{"memory", "memory", "total_unevictable"},
	{"", "", "unevictable"},
}

// hasPrivate reports whether a kind of virtual machine has its private memory in a guest_memfd.
func hasPrivate(kind string) bool { return kind == "tdx" || kind == "sev-snp" }

// emitPrivate emits the private memory of virtual machines, which the processes of their VMMs do not show. It is that of a
// control group. If several virtual machines are in one group, their parts are not known.
func (m *machines) emitPrivate(f *families, cgroups hostfs.Root, emit func(prometheus.Metric)) error {
	type group struct {
		private uint64
		label   string // of a virtual machine with private memory
		n       int
	}
	groups := map[string]*group{}
	var errs []error
	for number, v := range m.all {
		if !v.ended.IsZero() {
			continue
		}
		where, private, err := m.unevictable(cgroups, v.pid)
		if err != nil {
			errs = append(errs, err)
		}
		if where == "" {
			continue
		}
		g := groups[where]
		if g == nil {
			g = &group{}
			groups[where] = g
		}
		g.n, g.private = g.n+1, private
		if hasPrivate(m.kernel.vms[number].kindOf()) {
			g.label = v.label // empty until its process has answered
		}
	}
	for _, g := range groups {
		if g.n == 1 && g.label != "" {
			emit(f.private.Value(float64(g.private), g.label))
		}
	}
	return errors.Join(errs...)
}

// unevictable returns the control group that a process's memory is charged to, and how much of its memory cannot be reclaimed.
// A threaded group, as those of libvirt for the VMM, has no file, and is charged to the group above. The root group is none.
func (m *machines) unevictable(cgroups hostfs.Root, pid int) (where string, bytes uint64, err error) {
	for _, a := range accounting {
		p, err := m.proc.Process(pid).Cgroup(a.controller)
		if err != nil || strings.Contains(p, "..") { // outside of the agent's own namespace
			continue
		}
		for ; p != "" && p != "/" && p != "."; p = path.Dir(p) {
			data, err := cgroups.ReadLines(maxMemoryStat, a.dir, p, "memory.stat")
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return "", 0, err
			}
			found := ""
			cgroup.ParseFlat(data, func(key []byte, n uint64) {
				if string(key) == a.field {
					found, bytes = path.Join(a.dir, p), n
				}
			})
			return found, bytes, nil
		}
	}
	return "", 0, nil
}

// anyPrivate reports whether a running virtual machine has private memory.
func (m *machines) anyPrivate() bool {
	for number, v := range m.all {
		if v.ended.IsZero() && hasPrivate(m.kernel.vms[number].kindOf()) {
			return true
		}
	}
	return false
}
