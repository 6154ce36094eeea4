// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/teescope/teescope/internal/lib/text"
)

// FuzzNames fuzzes names of programs and cgroups, which users choose and which become labels.
func FuzzNames(f *testing.F) {
	f.Add("docker-"+id64+".scope\nsystem.slice", "redis")
	f.Add(id64+"\npod"+uid+"\nkubepods", "other")
	f.Add("a\x00.service", "\xff")
	f.Add("lxc.payload.kernel", "nginx.service")
	f.Fuzz(func(t *testing.T, cgroup, program string) {
		names := strings.Split(cgroup, "\n")
		own, unit := Identify(nil, program), Identify(names[len(names)-1:], program)
		all := []Identity{KernelThreads, IdleThreads, Identify(names, program), own, unit}
		for _, id := range all[2:] {
			checkIdentity(t, id)
		}
		// Regardless of earlier groups, a group counts into the workload of its own labels.
		r := NewRegistry[int](len(all))
		for _, id := range all {
			got := r.Join(id, time.Time{}, time.Time{}).Identity
			id.Kind, got.Kind = "", ""
			if got != id {
				t.Errorf("%+v joins %+v", id, got)
			}
		}
	})
}

func checkIdentity(t *testing.T, id Identity) {
	t.Helper()
	for _, label := range []string{id.Name, id.Container, id.Pod, id.Namespace} {
		if !utf8.ValidString(label) || strings.ContainsFunc(label, unicode.IsControl) || text.Label(label) != label {
			t.Errorf("%q is not a label value of %+v", label, id)
		}
	}
	switch id.Name {
	case "", KernelThreads.Name, IdleThreads.Name, Folded.Name:
		t.Errorf("%+v took a reserved name", id)
	}
	if (id.Kind == Container) != (id.Container != "") || id.Pod != "" && id.Kind != Container && id.Kind != Program {
		t.Errorf("%+v is inconsistent", id)
	}
	if id.Kind == Program && isUnit(id.Name) && !strings.HasPrefix(id.Name, "program:") {
		t.Errorf("the program %+v took the name of a unit", id)
	}
}
