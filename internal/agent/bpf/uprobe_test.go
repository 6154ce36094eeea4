// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// twoFunctions calls one function 100 times and another 7 times.
const twoFunctions = `
__attribute__((noipa)) void often(void) { asm volatile(""); }
__attribute__((noipa)) void seldom(void) { asm volatile(""); }
int main(void) { for (int i = 0; i < 100; i++) often(); for (int i = 0; i < 7; i++) seldom(); }
`

// offsets compiles a program and returns where its functions are in the file.
func offsets(t *testing.T, source string) (path string, of map[string]uint64) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path+".c", []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-O1", "-o", path, path+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	text := f.Section(".text")
	of = map[string]uint64{}
	for _, s := range symbols {
		of[s.Name] = s.Value - text.Addr + text.Offset
	}
	return path, of
}

func TestUserProbesCountUntilTheyAreClosed(t *testing.T) {
	path, of := offsets(t, twoFunctions)
	o := open(t, 1)
	c := counts(t, o)
	modern, err := LoadUserProbe(o, "user")
	if err != nil {
		t.Fatal(err)
	}
	single, err := LoadUserProbeEvents(o, "user")
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*UserProbe{"as this kernel can": modern, "one by one": single} {
		for range 2 {
			c[0] = 0
			l, err := p.Attach(path, []Site{{Offset: of["often"], Cookie: 1}, {Offset: of["seldom"], Cookie: 1000}})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			run(t, path)
			if c[0] != 7100 {
				t.Errorf("%s: counted %d, want 7 x 1000 and 100", name, c[0])
			}
			if err := l.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			run(t, path)
			if c[0] != 7100 {
				t.Errorf("%s: counted %d after it was closed", name, c[0])
			}
		}
		c[0] = 0
		returns, err := p.AttachReturns(path, []Site{{Offset: of["often"], Cookie: 1}, {Offset: of["seldom"], Cookie: 1000}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		run(t, path)
		if err := returns.Close(); err != nil || c[0] != 7100 {
			t.Errorf("%s: %d returns were counted, want 7 x 1000 and 100 (%v)", name, c[0], err)
		}
		if _, err := p.Attach(path, []Site{{Offset: of["often"], Cookie: 1}, {Offset: 1 << 40, Cookie: 1}}); err == nil {
			t.Errorf("%s: attached to an offset beyond the end of the file", name)
		}
		run(t, path)
		if c[0] != 7100 {
			t.Errorf("%s: counted %d: some sites stayed attached after an error", name, c[0])
		}
		if _, err := p.Attach(path+".no", []Site{{}}); err == nil {
			t.Errorf("%s: attached to a file that does not exist", name)
		}
	}
}

func run(t *testing.T, path string) {
	t.Helper()
	if out, err := exec.Command(path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
