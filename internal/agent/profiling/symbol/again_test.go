// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/proctest"
	"github.com/teescope/teescope/internal/lib/symbols"
)

// versionsOf returns the versions of the files that a program maps, by their path. The program has ended afterwards, and its files
// are closed.
func versionsOf(t *testing.T, table *Table, path string) map[string]any {
	t.Helper()
	cat := proctest.Start(t, exec.Command(path))
	if _, err := cat.In.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := cat.Out.ReadByte(); err != nil { // it is loaded
		t.Fatal(err)
	}
	all := map[string]any{}
	for _, c := range table.Code(table.Of(sampleOf(t, cat.Process.Pid))) {
		if c.kind == ofFile {
			if c.Program == nil {
				t.Fatalf("%s was not read", c.Path)
			}
			all[c.Path] = c.Version
		}
	}
	cat.End()
	if _, err := table.Prune(); err != nil || table.open != 0 {
		t.Fatalf("%d files are open: %v", table.open, err)
	}
	return all
}

// A program that starts again has the same files. They are not held open in between, and a file that was written has another version.
func TestFilesAreRecognisedAgain(t *testing.T) {
	table := table(t, "")
	path := filepath.Join(t.TempDir(), "cat")
	replace := func(with string) {
		t.Helper()
		data, err := os.ReadFile(with)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	replace("/bin/cat")
	first := versionsOf(t, table, path)
	if len(first) < 2 {
		t.Fatalf("the files are %v", first)
	}
	for name, version := range versionsOf(t, table, path) {
		if version != first[name] {
			t.Errorf("%s is taken for another file", name)
		}
	}
	replace("/bin/cat") // the same inode, size and content
	for name, version := range versionsOf(t, table, path) {
		if written := name == path; (version == first[name]) == written {
			t.Errorf("%s was written: %v; it is taken for the same file: %v", name, written, version == first[name])
		}
	}
	for range maxPrunings {
		if _, err := table.Prune(); err != nil {
			t.Fatal(err)
		}
	}
	if len(table.files) != 0 {
		t.Errorf("%d files are remembered for ever", len(table.files))
	}
}

// Functions of the kernel are looked up once, and those of modules again, because others may be loaded in their place.
func TestFunctionsOfTheKernelAreRemembered(t *testing.T) {
	const list = "ffffffff81000010 T second\nffffffff81000000 T first\nffffffffc0000000 t mod_read\t[mod]\n"
	addresses := []uint64{0xffffffff81000004, 0xffffffff81000012, 0xffffffffc0000004}
	found, _, _ := symbols.Kallsyms(strings.NewReader(list), addresses)
	var all kernelFunctions
	for _, s := range append(found, found...) {
		all.add(s)
	}
	var names []string
	for _, a := range []uint64{0xffffffff80ffffff, 0xffffffff81000000, 0xffffffff8100000f, 0xffffffff81000010, 0xffffffff81100000, 0xffffffffc0000004} {
		name, _ := all.at(a)
		names = append(names, name.Function)
	}
	if got, want := strings.Join(names, "|"), "|first|first|second||"; got != want || len(all) != 2 {
		t.Errorf("%d functions: %s, want %s", len(all), got, want)
	}
}

// The kernel's list is large. Addresses without a name are looked for again only after a while, with others and without.
func TestAddressesOfTheKernelWithoutANameAreLookedForLater(t *testing.T) {
	proc := t.TempDir()
	list := func(lines string) {
		if err := os.WriteFile(filepath.Join(proc, "kallsyms"), []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list("ffffffff81000000 T first\nffffffff81000100 T second\n")
	table := New(Options{Proc: hostfs.At(proc), Sys: hostfs.At(proc), Cgroup: proc, Remember: true})
	defer table.Close()
	names := func() (all []string) {
		for _, n := range table.Resolve([]Location{
			{Mapping: table.KernelMapping(), Address: 0xffffffff81000010}, {Mapping: table.KernelMapping(), Address: 0xffffffffc0000010},
		}) {
			all = append(all, n.Function+n.Reason)
		}
		return all
	}
	if got := names(); !slices.Equal(got, []string{"first", foreign}) {
		t.Errorf("at first: %q", got)
	}
	list("ffffffff81000000 T first\nffffffff81000100 T second\nffffffffc0000000 t loaded\t[module]\n")
	if got := names(); got[1] != foreign {
		t.Errorf("soon after: %q", got)
	}
	table.kernelAgain = time.Now().Add(-time.Second)
	if got := names(); !slices.Equal(got, []string{"first", "loaded"}) {
		t.Errorf("later: %q", got)
	}
}
