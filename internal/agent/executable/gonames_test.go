// SPDX-License-Identifier: Apache-2.0

package executable

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A stripped program of Go has the functions that go tool nm lists in the same program before: one in Go alone, and
// one with code in C, where the code of Go begins later than the section and the program can be loaded anywhere.
func TestStrippedProgramsOfGo(t *testing.T) {
	const pure = "package main\n\nfunc main() { println(alpha(3)) }\n\n//go:noinline\nfunc alpha(n int) int { return n * 7 }\n"
	withC := strings.Replace(pure, "main\n", "main\n\n// int zero(void) { return 0; }\nimport \"C\"\n\nvar _ = C.zero()\n", 1)
	for name, build := range map[string]struct {
		source string
		args   []string
	}{
		"go": {pure, nil}, "cgo": {withC, []string{"-ldflags=-linkmode=external -extldflags=-pie"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "program")
			if err := os.WriteFile(path+".go", []byte(build.source), 0o600); err != nil {
				t.Fatal(err)
			}
			compile := exec.Command("go", slices.Concat([]string{"build", "-o", path}, build.args, []string{path + ".go"})...)
			compile.Env = append(os.Environ(), "GO111MODULE=off")
			if out, err := compile.CombinedOutput(); err != nil {
				t.Skipf("%v: %s", err, out)
			}
			starts := functionsOf(t, path)
			if out, err := exec.Command("strip", path).CombinedOutput(); err != nil {
				t.Skipf("%v: %s", err, out)
			}
			p, _ := open(t, path)
			var addresses []uint64
			for at := range starts {
				addresses = append(addresses, at, at+1)
			}
			slices.Sort(addresses)
			got, err := p.Names(addresses)
			if err != nil || len(starts) < 500 {
				t.Fatalf("%d functions: %v", len(starts), err)
			}
			for i, at := range addresses {
				if want := starts[at] + starts[at-1]; got[i] != want {
					t.Fatalf("%#x is %q, go tool nm says %q", at, got[i], want)
				}
			}
		})
	}
}

// functionsOf lists the functions of Go that are longer than one byte by address, with one name each.
func functionsOf(t *testing.T, path string) map[uint64]string {
	t.Helper()
	out, err := exec.Command("go", "tool", "nm", "-size", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	starts := map[uint64]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 4 || !strings.EqualFold(f[2], "t") || f[1] == "0" || f[1] == "1" || !strings.HasPrefix(f[3], "runtime.") && !strings.HasPrefix(f[3], "main.") ||
			strings.HasSuffix(f[3], "text") {
			continue
		}
		at, err := strconv.ParseUint(f[0], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		starts[at] = strings.TrimSuffix(f[3], ".abi0") // of a function in assembly, by the ABI
	}
	return starts
}
