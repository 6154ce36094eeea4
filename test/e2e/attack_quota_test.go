// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mapping starts a program of a user that has mapped new libraries of a runtime with these names.
func mapping(t *testing.T, as, user string, names ...string) *process {
	t.Helper()
	args, dir := []string{user}, t.TempDir()
	library := filepath.Join(dir, "built")
	if err := quiet("gcc", "-O2", "-shared", "-fPIC", "-o", library, transitionSources+"urts.c"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file := filepath.Join(dir, name)
		writeProgram(t, file, data)
		args = append(args, file)
	}
	p := background(t, prog(t, "mapper", as), args...)
	p.says(t, "ready")
	return p
}

// A process of one user maps more files than can be probed. The files of others are still probed, and those that are not
// are counted.
func TestOneUserCannotTakeAllPlacesForProbes(t *testing.T) {
	const places, many = 64, 80
	a := agent(t)
	a.confined(t)
	var names []string
	for i := range many {
		names = append(names, fmt.Sprintf("libsgx_urts.so.many%d", i))
	}
	mapping(t, "e2egreedy", "65534", names...)
	eventually(t, testLimit, "refused files", func() error {
		if n := a.answers(t).sum("teescope_transition_places_refused_total", "what", "files"); n < many-places/2 {
			return fmt.Errorf("%v are", n)
		}
		return nil
	})
	mapping(t, "e2emodest", "0", "libsgx_urts.so.modest")
	eventually(t, testLimit, "the file of another user", func() error {
		if !a.answers(t).has("teescope_transition_probes_info", "file", "libsgx_urts.so.modest") {
			return errors.New("it is not examined")
		}
		return nil
	})
}

// One user starts more programs, each with its own name, than there are names. Another user's program still has a name.
func TestOneUserCannotTakeAllNames(t *testing.T) {
	const most, many = 128, 160 // the machine has programs of root too, which are not limited
	a := agent(t, "--workloads.max", fmt.Sprint(most))
	first := prog(t, "mapper", "e2egreedy")
	dir := filepath.Dir(first)
	for _, d := range []string{dir, filepath.Dir(dir)} { // other users must be able to enter
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	as := func(user, name string) *process {
		path := filepath.Join(dir, name)
		if err := os.Link(first, path); err != nil {
			t.Fatal(err)
		}
		return background(t, "setpriv", "--reuid", user, "--clear-groups", path, user, path)
	}
	var all []*process
	for i := range many {
		all = append(all, as("65534", fmt.Sprint("e2egreedy", i)))
	}
	for _, p := range all {
		p.says(t, "ready")
	}
	as("65533", "e2emodest").says(t, "ready")
	eventually(t, testLimit, "a name for the program of another user", func() error {
		at := a.answers(t)
		greedy := 0
		for name := range at.by("workload", "teescope_processes") {
			if strings.HasPrefix(name, "e2egreedy") {
				greedy++
			}
		}
		if greedy > most/2 {
			t.Fatalf("one user has %d of %d names", greedy, most)
		}
		if !at.has("teescope_processes", "workload", "e2emodest") {
			return fmt.Errorf("it has none; the other user has %d", greedy)
		}
		return nil
	})
}
