// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
)

// TestNaming checks the choice of the hierarchy, and that walks use the groups of that hierarchy.
func TestNaming(t *testing.T) {
	for _, tt := range []struct {
		files      []string
		want       Hierarchy
		controller string
		walks      string
	}{
		{[]string{"cgroup.controllers", "memory/cgroup.procs"}, Unified, "", "."}, // version 2 precedes all others
		{[]string{"memory/cgroup.procs", "devices/cgroup.procs", "unified/cgroup.controllers"}, 1, "memory", "memory"},
		{[]string{"memory/cgroup.procs", "pids/cgroup.procs"}, 0, "pids", "pids"},
		{[]string{"devices/cgroup.procs"}, 3, "devices", "devices"},
		{[]string{"cpu,cpuacct/cgroup.procs", "devices/cgroup.procs"}, 2, "cpu", "cpu,cpuacct"}, // without the usual link "cpu"
		{[]string{"systemd/cgroup.procs", "unified/cgroup.controllers"}, Unified, "", "unified"},
		{nil, Unified, "", ""},
	} {
		root := t.TempDir()
		for _, f := range tt.files {
			hostfstest.Write(t, root, f, "")
		}
		got := Naming(root)
		if got != tt.want || got.Controller() != tt.controller {
			t.Errorf("with %v: %d %q, want %d %q", tt.files, got, got.Controller(), tt.want, tt.controller)
		}
		f, err := Open(root)
		if (err == nil) != (tt.walks != "") || err == nil && f.names != filepath.Join(root, tt.walks) {
			t.Errorf("with %v: the groups of %+v are walked, %v; want those of %q", tt.files, f, err, tt.walks)
		}
	}
	if got := Naming(filepath.Join(t.TempDir(), "none")); got != Unified {
		t.Errorf("without a directory: %d", got)
	}
}

func TestNames(t *testing.T) {
	for path, want := range map[string][]string{"/a/b.slice/c": {"c", "b.slice", "a"}, "/": {}, "": {}, "/a//b/": {"b", "a"}} {
		if got := Names(path); !slices.Equal(got, want) {
			t.Errorf("Names(%q) = %q, want %q", path, got, want)
		}
	}
}
