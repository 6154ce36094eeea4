// SPDX-License-Identifier: Apache-2.0

// Package boundarytest compiles the programs that the tests of the enclave boundary watch. It does not run them.
package boundarytest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// Source returns the path of a file in the testdata of package boundary, for tests of that package, of those below it, and of
// profiles.
func Source(name string) string {
	for _, dir := range []string{"testdata", "../testdata", "../tee/sgx/boundary/testdata", "../../tee/sgx/boundary/testdata"} {
		if _, err := os.Stat(dir + "/urts.c"); err == nil {
			return filepath.Join(dir, name)
		}
	}
	return name // the compiler says that it is missing
}

// Build compiles a C program into a directory of its own.
func Build(t *testing.T, out string, args ...string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("gcc", append([]string{"-O2", "-Wall", "-Wextra", "-Werror", "-o", out}, args...)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, text)
	}
	return out
}

// SDKApp builds the application of the Intel SDK, with its library, under a unique name. On a machine without a compiler SDK_APP is a
// folder with both.
func SDKApp(t *testing.T, name string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	if from := os.Getenv("SDK_APP"); from != "" {
		if err := errors.Join(os.CopyFS(dir, os.DirFS(from)), os.Rename(filepath.Join(dir, "app"), filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	ofLibrary := slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return f == "-no-pie" })
	Build(t, filepath.Join(dir, "libsgx_urts.so"), append([]string{"-shared", "-fPIC", Source("urts.c")}, ofLibrary...)...)
	return Build(t, filepath.Join(dir, name), append([]string{
		Source("app.c"), "-L" + dir, "-lsgx_urts", "-Wl,-rpath,$ORIGIN", "-lpthread",
	}, flags...)...)
}
