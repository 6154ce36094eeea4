// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"slices"
	"strings"
)

// Hierarchy is the hierarchy that names workloads. The same rule applies everywhere: in the kernel (kernfs_of in
// bpf/include/cgroup.h), for /proc/PID/cgroup, and for walks over groups. Its value is Unified or the index of a
// version 1 controller in named.
type Hierarchy int32

// Unified is version 2.
const Unified Hierarchy = -1

// named lists the version 1 controllers that container runtimes and systemd put every process into, best first. In the
// other hierarchies a process is often in the root. The BPF programs use the same order.
var named = []string{"pids", "memory", "cpu", "devices"}

// Naming chooses the hierarchy below root. It is version 2 if mounted alone, otherwise the first available version 1
// controller of named. Otherwise it is version 2 next to hierarchies that name no workload.
func Naming(root string) Hierarchy {
	_, v1, err := mounted(root)
	if err != nil {
		return Unified // nothing is mounted; the BPF programs find the machine's hierarchy
	}
	return naming(v1)
}

func naming(v1 map[string]string) Hierarchy {
	return Hierarchy(slices.IndexFunc(named, func(name string) bool { return v1[name] != "" }))
}

// Controller returns the version 1 controller, or "" for version 2, in the form that hostfs.Process.Cgroup takes.
func (h Hierarchy) Controller() string {
	if h < 0 {
		return ""
	}
	return named[h]
}

// Names returns the names in the path of a group, leaf first. The BPF programs walk them in the same order.
func Names(path string) []string {
	names := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	slices.Reverse(names)
	return names
}
