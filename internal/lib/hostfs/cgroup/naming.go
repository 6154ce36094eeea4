// SPDX-License-Identifier: Apache-2.0

package cgroup

import "path/filepath"

// Naming says which hierarchy names workloads: cgroup v2 (-1) where it is mounted as such, else the index of
// the v1 controller that container runtimes and systemd put every process into, in this order (see kernfs_of
// in bpf/include/cgroup.h).
func Naming(root string) int32 {
	if exists(filepath.Join(root, "cgroup.controllers")) {
		return -1
	}
	for i, name := range []string{"pids", "memory", "cpu", "devices"} {
		if exists(filepath.Join(root, name, "cgroup.procs")) {
			return int32(i)
		}
	}
	return -1
}
