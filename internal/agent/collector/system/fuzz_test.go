// SPDX-License-Identifier: Apache-2.0

package system

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/workload"
)

// FuzzNames fuzzes the names of programs and cgroups, which may be any bytes.
func FuzzNames(f *testing.F) {
	f.Add([]byte("redis\x00"), []byte("docker-x.scope\x00"), byte(1), uint16(0))
	f.Add([]byte("a\xff\x1b\u009b0123456789abcdef"), []byte(strings.Repeat("lxc.payload.x", 40)), byte(255), uint16(60000))
	f.Fuzz(func(t *testing.T, comm, cgroup []byte, depth byte, number uint16) {
		g := &attribution.Record{Depth: uint32(depth)}
		copy(g.Comm[:], comm)
		for i := range g.Path {
			copy(g.Path[i][:], cgroup[min(i*len(cgroup)/len(g.Path), len(cgroup)):])
		}
		names := g.Cgroups()
		if len(names) > len(g.Path) || len(names) > int(depth) {
			t.Errorf("%d names of a group at depth %d", len(names), depth)
		}
		id := workload.Identify(names, g.Program())
		for _, label := range []string{id.Name, id.Container, id.Pod, callName(int(number)), errnoName(number)} {
			if !utf8.ValidString(label) || strings.ContainsFunc(label, unicode.IsControl) {
				t.Errorf("%q is not a valid label value", label)
			}
		}
		if id.Name == "" || callName(int(number)) == "" || errnoName(number) == "" {
			t.Errorf("%+v, call or error %d: a label is empty", id, number)
		}
	})
}
