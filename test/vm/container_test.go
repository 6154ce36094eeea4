// SPDX-License-Identifier: Apache-2.0

//go:build vm

package vm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// threadsInCgroups requires that the threads of a process in threaded cgroups count for the cgroup of the first one, and the
// child of another thread for the cgroup of its parent.
func threadsInCgroups(t *testing.T, families map[string]*dto.MetricFamily) {
	t.Helper()
	for workload, want := range map[string]float64{"first.service": 270, "second.service": 30} {
		if got := sum(families, "teescope_syscalls_total", "workload", workload, "syscall", "getppid"); got != want {
			t.Errorf("%v calls in %s were counted, want %v", got, workload, want)
		}
	}
}

// buildApp builds the application of the Intel SDK, with its library.
func buildApp(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	const sources = "../../internal/agent/tee/sgx/boundary/testdata/"
	for _, args := range [][]string{
		{"-o", filepath.Join(dir, "libsgx_urts.so"), "-shared", "-fPIC", sources + "urts.c"},
		{"-o", filepath.Join(dir, "app"), sources + "app.c", "-L" + dir, "-lsgx_urts", "-Wl,-rpath,$ORIGIN", "-lpthread"},
	} {
		cmd := exec.Command("gcc", append([]string{"-O2"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", cmd, err, out)
		}
	}
	return nil
}

// layersOfOneImage requires that the calls of several containers were counted once each. They have a mount each of the same files,
// and the kernel registers probes on the files below.
func layersOfOneImage(t *testing.T, tests string) {
	t.Helper()
	if !strings.Contains(tests, "--- PASS: TestContainersOfOneImageAreCountedOnce ") {
		t.Errorf("the calls of containers of one image were not counted once each:\n%s", tests)
	}
}
