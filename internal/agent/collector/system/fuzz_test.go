// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/teescope/teescope/internal/agent/workload"
)

// FuzzNames: the kernel side hands on the bytes that programs and cgroups are named with, and rules look at
// what /proc says of a process.
func FuzzNames(f *testing.F) {
	f.Add([]byte("redis\x00"), []byte("docker-x.scope\x00"), byte(1), []byte("4:cpu:/a\n0::/a/b\n"), uint16(0))
	f.Add([]byte("a\xff\x1b\u009b0123456789abcdef"), []byte(strings.Repeat("lxc.payload.x", 40)), byte(255), []byte("::\n1:name=x:/y:z\n"), uint16(60000))
	proc := f.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(proc, "7"), 0o755), os.Symlink("/usr/bin/x", filepath.Join(proc, "7", "exe"))); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, comm, cgroup []byte, depth byte, lines []byte, number uint16) {
		g := &group{Depth: uint32(depth)}
		copy(g.Comm[:], comm)
		for i := range g.Path {
			copy(g.Path[i][:], cgroup[min(i*len(cgroup)/pathLevels, len(cgroup)):])
		}
		names := cgroupNames(g)
		if len(names) > pathLevels || len(names) > int(depth) {
			t.Errorf("%d names of a group that is %d deep", len(names), depth)
		}
		id := workload.Identify(names, text(g.Comm[:]))
		for _, label := range []string{id.Name, id.Container, id.Pod, callName(int(number)), errnoName(number)} {
			if !utf8.ValidString(label) || strings.ContainsFunc(label, unicode.IsControl) {
				t.Errorf("%q is no label value", label)
			}
		}
		if id.Name == "" || callName(int(number)) == "" || errnoName(number) == "" {
			t.Errorf("%+v, call or error %d: a label is empty", id, number)
		}
		for name, data := range map[string][]byte{"comm": comm, "cgroup": lines} {
			if err := os.WriteFile(filepath.Join(proc, "7", name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		p, ok := workload.Look(proc, 7)
		if !ok || strings.TrimSuffix(string(comm), "\n") != p.Comm {
			t.Errorf("%q is the process %+v, %v", comm, p, ok)
		}
		checkCgroup(t, p.Cgroup, string(lines))
	})
}

// checkCgroup: the path is that of a line, and none is longer.
func checkCgroup(t *testing.T, path, lines string) {
	t.Helper()
	if strings.Contains(path, "\n") || path != "" && !strings.Contains(lines, ":"+path) {
		t.Errorf("%q is no path of %q", path, lines)
	}
	longer := func(line string) bool {
		parts := strings.SplitN(line, ":", 3)
		return len(parts) == 3 && len(parts[2]) > len(path)
	}
	if i := slices.IndexFunc(strings.Split(lines, "\n"), longer); i >= 0 {
		t.Errorf("%q is not the longest path of %q", path, lines)
	}
}
