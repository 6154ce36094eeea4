// SPDX-License-Identifier: Apache-2.0

//go:build vm

package vm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/testbed/machine"
)

// standIns builds the modules that stand in for SGX drivers outside the kernel's tree, and for a confidential machine.
func standIns(t *testing.T, k machine.Kernel) map[string][]byte {
	t.Helper()
	headers, err := k.Headers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../testbed/standins")); err != nil {
		t.Fatal(err)
	}
	// Without BTF, which such modules mostly lack, and which needs a vmlinux that no package has.
	output(t, dir, "make", "-s", "-C", headers, "M="+dir, "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules")
	modules := map[string][]byte{}
	for _, name := range []string{"isgx", "intel_sgx", "cvm"} {
		object, err := os.ReadFile(filepath.Join(dir, name+".ko"))
		if err != nil {
			t.Fatal(err)
		}
		modules[name] = object
	}
	return modules
}

// driversAreModules requires that the guest's test has counted the calls of both modules.
func driversAreModules(t *testing.T, tests string) {
	t.Helper()
	for _, name := range []string{"isgx", "intel_sgx"} {
		if !strings.Contains(tests, "--- PASS: TestModulesAreCountedExactly/"+name+" ") {
			t.Errorf("calls of the module %s were not counted exactly:\n%s", name, tests)
		}
	}
}
