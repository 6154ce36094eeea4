// SPDX-License-Identifier: Apache-2.0

package names

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const source = `package main

//go:noinline
func alpha(n int) int { return n*7 + len(text) }

//go:noinline
func beta(n int) int { return alpha(n) + 1 }

var text = "text"

func main() { println(beta(3)) }
`

// TestOtherArchitectures compares the names in programs for other processors, of either byte order, with go tool nm.
func TestOtherArchitectures(t *testing.T) {
	for _, arch := range []string{"arm64", "s390x"} {
		t.Run(arch, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
				t.Fatal(err)
			}
			build := exec.Command("go", "build", "-o", "program", "main.go")
			build.Dir, build.Env = dir, append(os.Environ(), "GOARCH="+arch, "GOOS=linux", "CGO_ENABLED=0", "GO111MODULE=off")
			if out, err := build.CombinedOutput(); err != nil {
				t.Skipf("%v: %s", err, out)
			}
			out, err := exec.Command("go", "tool", "nm", filepath.Join(dir, "program")).Output()
			if err != nil {
				t.Fatal(err)
			}
			e, err := open(filepath.Join(dir, "program"))
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			want := map[uint64]string{}
			for line := range strings.Lines(string(out)) {
				if f := strings.Fields(line); len(f) == 3 && strings.HasPrefix(f[2], "main.") && f[1] == "T" {
					address, err := strconv.ParseUint(f[0], 16, 64)
					if err != nil {
						t.Fatal(err)
					}
					for _, p := range e.Progs {
						if address >= p.Vaddr && address-p.Vaddr < p.Filesz {
							want[address-p.Vaddr+p.Off] = f[2]
						}
					}
				}
			}
			var offsets []uint64
			for at := range want {
				offsets = append(offsets, at, at+4)
			}
			slices.Sort(offsets)
			stripped := exec.Command("go", "build", "-ldflags=-s -w", "-o", "stripped", "main.go")
			stripped.Dir, stripped.Env = dir, build.Env
			if out, err := stripped.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, name := range []string{"program", "stripped"} { // the linker gives both the same addresses
				got, err := (&Finder{Root: dir}).File("/"+name, "", offsets)
				if err != nil || len(want) < 3 {
					t.Fatalf("%v, %d functions", err, len(want))
				}
				for i, at := range offsets {
					if want[at] != "" && got[i] != want[at] || want[at] == "" && got[i] != want[at-4] {
						t.Errorf("%s: %#x is %q, go tool nm says %q", name, at, got[i], want[at]+want[at-4])
					}
				}
			}
		})
	}
}

// TestStubs compares the names of the entries by which a program calls libraries with those of objdump.
func TestStubs(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	build := exec.Command("gcc", "-x", "c", "-o", program, "-")
	build.Stdin = strings.NewReader("#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(getenv(\"HOME\")); return rand(); }\n")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	out, err := exec.Command("objdump", "-d", "--no-show-raw-insn", "-j", ".plt", program).Output()
	if err != nil {
		t.Skip(err)
	}
	e, err := open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	want := map[uint64]string{}
	for line := range strings.Lines(string(out)) { // 0000000000001030 <puts@plt>:
		address, name, ok := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), ">:"), " <")
		start, err := strconv.ParseUint(address, 16, 64)
		if !ok || err != nil || !strings.HasSuffix(name, "@plt") {
			continue
		}
		for _, p := range e.Progs {
			if start >= p.Vaddr && start-p.Vaddr < p.Filesz {
				want[start-p.Vaddr+p.Off] = name
			}
		}
	}
	if len(want) < 3 {
		t.Fatalf("objdump names %d entries:\n%s", len(want), out)
	}
	for start, name := range want {
		got, err := (&Finder{Root: dir}).File("/program", "", []uint64{start, start + 15})
		if err != nil || got[0] != name || got[1] != name {
			t.Errorf("%#x is %q, objdump says %q: %v", start, got, name, err)
		}
	}
}

// A copy by build ID gives the names if the path has another file, or none.
func TestCopies(t *testing.T) {
	const path = "/bin/true"
	e, err := open(path)
	if err != nil {
		t.Skip(err)
	}
	id := e.id
	e.Close()
	out, err := exec.Command("readelf", "-n", path).Output()
	if err != nil || !strings.Contains(string(out), "Build ID: "+id+"\n") {
		t.Fatalf("the build ID is %q, readelf says %s, %v", id, out, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cache, root := t.TempDir(), t.TempDir()
	place := filepath.Join(cache, ".build-id", id[:2], id[2:])
	if err := os.MkdirAll(place, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(place, "elf"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	f := &Finder{Root: root, Cache: cache}
	if e, err := f.find("/opt/other", id); err != nil || e.id != id {
		t.Errorf("without a file at its path: %v", err)
	}
	if _, err := f.find("/opt/other", "00"+id[2:]); err == nil {
		t.Error("another build ID has a file")
	}
	for _, bad := range []string{"../../etc/passwd", "/../etc/passwd", "", "[heap]"} {
		if _, err := f.find(bad, ""); err == nil {
			t.Errorf("%q is opened", bad)
		}
	}
	if err := exec.Command("mkfifo", filepath.Join(root, "pipe")).Run(); err != nil {
		t.Skip(err)
	}
	if _, err := f.find("/pipe", ""); err == nil {
		t.Error("a named pipe is opened")
	}
}

// The kernel's list of another start of the same kernel is moved. Modules are elsewhere then.
func TestKernelOfACopy(t *testing.T) {
	cache := t.TempDir()
	dir := filepath.Join(cache, "[kernel.kallsyms]", "abcd")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	list := "ffffffff81000000 T _text\nffffffff81000100 T first\nffffffff81000200 T second\nffffffffc0000000 t of_module\t[m]\n"
	if err := os.WriteFile(filepath.Join(dir, "kallsyms"), []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
	f := &Finder{Root: "/", Cache: cache}
	for text, want := range map[uint64]string{0xffffffff81000000: "first second of_module", 0xffffffff80ffff00: "second second "} {
		found, err := f.Kernel("abcd", false, "_text", text, []uint64{0xffffffff81000110, 0xffffffff81000210, 0xffffffffc0000010})
		if err != nil {
			t.Fatal(err)
		}
		if got := found[0].Name + " " + found[1].Name + " " + found[2].Name; got != want {
			t.Errorf("at %#x: %q, want %q", text, got, want)
		}
	}
	if _, err := f.Kernel("ef01", false, "_text", 0, []uint64{1}); err == nil {
		t.Error("another kernel has names")
	}
}

// FuzzELF reads any bytes as an ELF file.
func FuzzELF(f *testing.F) {
	if data, err := os.ReadFile("/bin/true"); err == nil {
		f.Add(data, uint64(0x1000))
	}
	f.Fuzz(func(t *testing.T, data []byte, offset uint64) {
		e, err := parse(bytes.NewReader(data))
		if err != nil {
			return
		}
		names, err := lookUp([]*file{e}, e, []uint64{offset})
		if err == nil && names[0] != "" && !bytes.Contains(data, []byte(names[0])) {
			t.Errorf("%q is not a name of the file", names[0])
		}
	})
}
