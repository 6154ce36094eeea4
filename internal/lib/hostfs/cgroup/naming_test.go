// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNaming(t *testing.T) {
	for _, tt := range []struct {
		files []string
		want  int32
	}{
		{[]string{"cgroup.controllers", "memory/cgroup.procs"}, -1}, // version 2 goes before all
		{[]string{"memory/cgroup.procs", "devices/cgroup.procs", "unified/cgroup.controllers"}, 1},
		{[]string{"devices/cgroup.procs"}, 3},
		{nil, -1},
	} {
		root := t.TempDir()
		for _, f := range tt.files {
			path := filepath.Join(root, f)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := Naming(root); got != tt.want {
			t.Errorf("with %v: %d, want %d", tt.files, got, tt.want)
		}
	}
}
