// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// compiler replaces the C compiler. It writes "half", and then the rest of "whole". In the nth call it kills make
// in between, as a power failure would.
const compiler = `#!/bin/sh
for arg; do [ "$last" = -o ] && out=$arg; last=$arg; done
echo call >>"$CALLS"
printf half >"$out"
if [ "$(wc -l <"$CALLS")" = "$KILL_AT" ]; then kill -KILL "$PPID"; exit; fi
printf whole >"$out"
`

// TestAnInterruptedBuildGoesOn kills the build of the enclaves at each of its steps. Every file with its final
// name is complete, and the next build does only the rest.
func TestAnInterruptedBuildGoesOn(t *testing.T) {
	top, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cc, calls := filepath.Join(dir, "cc"), filepath.Join(dir, "calls")
	if err := os.WriteFile(cc, []byte(compiler), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MAKEFLAGS", "CC="+cc)
	t.Setenv("CALLS", calls)
	build := func(out string, killAt int) error {
		t.Setenv("KILL_AT", strconv.Itoa(killAt))
		if err := os.RemoveAll(calls); err != nil {
			t.Fatal(err)
		}
		return tree{top, out}.enclaves(t.Context())
	}
	called := func() int {
		text, _ := os.ReadFile(calls) // none when nothing was compiled
		return strings.Count(string(text), "\n")
	}
	if err := build(filepath.Join(dir, "all"), 0); err != nil {
		t.Fatal(err)
	}
	steps := called()
	if steps < 10 {
		t.Fatalf("the build has %d steps", steps)
	}
	for at := 1; at <= steps; at++ {
		out := filepath.Join(dir, strconv.Itoa(at))
		if err := build(out, at); err == nil {
			t.Fatalf("killed at step %d, the build says that it succeeded", at)
		}
		if n := wholeFiles(t, filepath.Join(out, "testbed", "enclaves")); n != at-1 {
			t.Errorf("killed at step %d, it left %d results", at, n)
		}
		if err := build(out, 0); err != nil || called() != steps-at+1 {
			t.Errorf("killed at step %d, the next build has %d steps of %d (%v)", at, called(), steps, err)
		}
		if n := wholeFiles(t, filepath.Join(out, "testbed", "enclaves")); n != steps {
			t.Errorf("killed at step %d and built again, there are %d results of %d", at, n, steps)
		}
	}
}

// wholeFiles counts the files of a directory, which must be complete.
func wholeFiles(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if text, err := os.ReadFile(filepath.Join(dir, entry.Name())); err != nil || string(text) != "whole" {
			t.Errorf("%s is %q (%v)", entry.Name(), text, err)
		}
	}
	return len(entries)
}

// TestRunBuildsWhatIsMissing checks that "testbed/run" builds the guest's program and the enclaves if an
// interrupted build lacks them.
func TestRunBuildsWhatIsMissing(t *testing.T) {
	top, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	out := tree{top, t.TempDir()}
	if err := out.missing(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"guest", "enclaves/selftest", "enclaves/selftest.enclave.so", "enclaves/libsgx_urts.so", "enclaves/qemu-tiny"} {
		if info, err := os.Stat(out.built(name)); err != nil || info.Size() < 1000 {
			t.Errorf("%s was not built: %v", name, err)
		}
	}
}

func TestAResultHasItsNameWhenItIsWhole(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "module")
	write := func(text string, err error) error {
		return whole(name, func(temp string) error {
			return errors.Join(os.Mkdir(temp, 0o755), os.WriteFile(filepath.Join(temp, "object"), []byte(text), 0o644), err)
		})
	}
	if err := write("new", nil); err != nil {
		t.Fatal(err)
	}
	if err := write("broken", errors.New("interrupted")); err == nil {
		t.Error("an interrupted build reports success")
	}
	if text, err := os.ReadFile(filepath.Join(name, "object")); err != nil || string(text) != "new" {
		t.Errorf("an interrupted build left %q (%v)", text, err)
	}
	if err := write("newer", nil); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(name, "object")); err != nil || string(text) != "newer" {
		t.Errorf("a build left %q (%v)", text, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("there are other files beside it: %v", entries)
	}
}
