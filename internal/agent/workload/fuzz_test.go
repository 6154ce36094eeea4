// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// FuzzNames: whoever starts a program names it, its cgroup's owner names the cgroup, and both become labels.
func FuzzNames(f *testing.F) {
	f.Add("docker-"+id64+".scope\nsystem.slice", "redis", "comm=redis-.*")
	f.Add(id64+"\npod"+uid+"\nkubepods", "other", "pid=42")
	f.Add("a\x00.service", "\xff", "exe=/usr/bin/*")
	f.Add("lxc.payload.kernel", "nginx.service", "cgroup=/system.slice/[a-z]*")
	f.Fuzz(func(t *testing.T, cgroup, program, rule string) {
		names := strings.Split(cgroup, "\n")
		own, unit := Identify(nil, program), Identify(names[len(names)-1:], program)
		all := []Identity{KernelThreads, IdleThreads, Identify(names, program), own, unit}
		for _, id := range all[2:] {
			checkIdentity(t, id)
		}
		// Whatever came before, a group of processes counts into the workload of its own labels.
		r := NewRegistry[int](len(all))
		for _, id := range all {
			got := r.Join(id, time.Time{}).Identity
			id.Kind, got.Kind = "", ""
			if got != id {
				t.Errorf("%+v joins %+v", id, got)
			}
		}
		checkRule(t, rule, Process{Comm: program, Exe: program, Cgroup: cgroup})
	})
}

func checkIdentity(t *testing.T, id Identity) {
	t.Helper()
	for _, label := range []string{id.Name, id.Container, id.Pod, id.Namespace} {
		if !utf8.ValidString(label) || strings.ContainsFunc(label, unicode.IsControl) || Clean(label) != label {
			t.Errorf("%q is no label value of %+v", label, id)
		}
	}
	switch id.Name {
	case "", KernelThreads.Name, IdleThreads.Name, Folded.Name:
		t.Errorf("%+v took a reserved name", id)
	}
	if (id.Kind == Container) != (id.Container != "") || id.Pod != "" && id.Kind != Container && id.Kind != Program {
		t.Errorf("%+v is at odds with itself", id)
	}
	if id.Kind == Program && isUnit(id.Name) && !strings.HasPrefix(id.Name, "program:") {
		t.Errorf("the program %+v took the name of a unit", id)
	}
}

func checkRule(t *testing.T, text string, p Process) {
	t.Helper()
	rule, err := ParseRule(text)
	if err != nil {
		if strings.ContainsFunc(err.Error(), unicode.IsControl) || !utf8.ValidString(err.Error()) {
			t.Errorf("the error %q is not fit to be printed", err)
		}
		return
	}
	if rule.String() != text {
		t.Errorf("%q is given back as %q", text, rule)
	}
	matches := rule.Match(p)
	if value, ok := strings.CutPrefix(text, "comm="); ok {
		re, err := regexp.Compile(value)
		if err != nil {
			t.Errorf("%q was accepted: %v", text, err)
			return
		}
		re.Longest()
		if whole := re.FindString(p.Comm) == p.Comm; whole && re.MatchString(p.Comm) && !matches {
			t.Errorf("%q does not match all of %q", text, p.Comm)
		}
	}
}
