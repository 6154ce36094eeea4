// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"slices"
	"strings"
)

// Hierarchy says which hierarchy names workloads, by the one rule that everything here follows: the kernel side
// (kernfs_of in bpf/include/cgroup.h), what is read of /proc/PID/cgroup, and which groups are walked.
// It is Unified, or the index of a version 1 controller in named.
type Hierarchy int32

// Unified is version 2.
const Unified Hierarchy = -1

// named are the version 1 controllers that container runtimes and systemd put every process into, best first.
// A process is often in the root of the other hierarchies. The kernel side has the same order.
var named = []string{"pids", "memory", "cpu", "devices"}

// Naming chooses the hierarchy below root: version 2 where it is mounted as such, else the first of the version 1
// controllers that is there, else version 2 again, beside hierarchies that name nothing.
func Naming(root string) Hierarchy {
	_, v1, err := mounted(root)
	if err != nil {
		return Unified // nothing is mounted: the kernel side finds what the machine has
	}
	return naming(v1)
}

func naming(v1 map[string]string) Hierarchy {
	return Hierarchy(slices.IndexFunc(named, func(name string) bool { return v1[name] != "" }))
}

// Controller is the version 1 controller, or empty for version 2: what hostfs.Process.Cgroup takes.
func (h Hierarchy) Controller() string {
	if h < 0 {
		return ""
	}
	return named[h]
}

// Names are the names in the path of a group, leaf first, as the kernel side walks them.
func Names(path string) []string {
	names := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	slices.Reverse(names)
	return names
}
