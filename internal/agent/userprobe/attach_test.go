// SPDX-License-Identifier: Apache-2.0

package userprobe

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/agent/executable/executabletest"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/boundarytest"
	"github.com/teescope/teescope/internal/agent/userprobe/probefile"
)

// A probe of a return overwrites the top of the stack, which is the return address only where a function begins.
func TestReturnsNeedTheBeginningOfAFunction(t *testing.T) {
	name := boundarytest.Build(t, filepath.Join(t.TempDir(), "returns"), "../tee/sgx/boundary/testdata/usdt.c")
	_, program := executabletest.Open(t, name)
	target := probefile.Target{File: name, Symbol: "work"}
	begin, err := find(program, target)
	if err != nil {
		t.Fatal(err)
	}
	if err := takesReturns(program, begin, target); err != nil {
		t.Error(err)
	}
	step, err := program.USDT("app", "step")
	if err != nil || len(step) == 0 {
		t.Fatal(err)
	}
	within := probefile.Target{File: name, Offset: step[len(step)-1].Offset} // an instruction certainly begins there
	address, err := find(program, within)
	if err != nil {
		t.Fatal(err)
	}
	if err := takesReturns(program, address, within); err == nil || !strings.Contains(err.Error(), "no function begins") {
		t.Errorf("in the middle of a function: %v", err)
	}
}

// A program that a probe of a return could end has none, unless the file forces it. One that it ends always has none.
func TestRisksOfReturns(t *testing.T) {
	name := filepath.Join(t.TempDir(), "exits")
	compiler := exec.Command("gcc", "-x", "c", "-o", name, "-")
	compiler.Stdin = strings.NewReader("#include <pthread.h>\nint main(void) { pthread_exit(0); }")
	if out, err := compiler.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, tt := range []struct {
		force bool
		want  string
	}{{false, "force: true"}, {true, ""}} {
		_, program := executabletest.Open(t, name)
		target := probefile.Target{File: name, Symbol: "main", Force: tt.force}
		address, err := find(program, target)
		if err != nil {
			t.Fatal(err)
		}
		if err = takesReturns(program, address, target); (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with force %v: %v, want %q", target, tt.force, err, tt.want)
		}
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, program := executabletest.Open(t, own)
	if err := takesReturns(program, 0, probefile.Target{Force: true}); err == nil || !strings.Contains(err.Error(), "Go program") {
		t.Error(err)
	}
}
