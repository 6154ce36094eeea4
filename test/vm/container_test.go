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

	"github.com/teescope/teescope/internal/lib/metric/metrictest"
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

// buildImage builds the application of the Intel SDK, with its library, as the image of containers.
func buildImage(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	const sources = "../../internal/agent/tee/sgx/boundary/testdata/"
	for _, args := range [][]string{
		{"-o", filepath.Join(dir, "libsgx_urts.so"), "-shared", "-fPIC", sources + "urts.c"},
		{"-o", filepath.Join(dir, "layered"), sources + "app.c", "-L" + dir, "-lsgx_urts", "-Wl,-rpath,$ORIGIN", "-lpthread"},
	} {
		cmd := exec.Command("gcc", append([]string{"-O2"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", cmd, err, out)
		}
	}
	return nil
}

// layersOfOneImage requires that each call of several containers is counted once. They have a mount each of the same files, and the
// kernel registers probes on the files below.
func layersOfOneImage(t *testing.T, r report) {
	t.Helper()
	var want [2]float64 // ECALLs and OCALLs
	containers := 0
	for line := range strings.Lines(r["layers made"]) {
		containers++
		for i, n := range strings.Fields(line) {
			want[min(i, 1)] += metrictest.Number(t, n)
		}
	}
	if containers != 3 || want[0] != 1500 || want[1] < 1500 {
		t.Fatalf("the containers report\n%s", r["layers made"])
	}
	before, after := r.exposition(t, "layers before"), r.exposition(t, "layers after")
	for i, family := range []string{"teescope_ecalls_total", "teescope_ocalls_total"} {
		if got := sum(after, family, "workload", "layered") - sum(before, family, "workload", "layered"); got != want[i] {
			t.Errorf("%s grew by %v, want %v", family, got, want[i])
		}
	}
	for _, file := range []string{"layered", "libsgx_urts.so"} {
		if n := sum(after, "teescope_transition_probes_info", "file", file); n != 1 {
			t.Errorf("%v files %s have probes, want 1", n, file)
		}
	}
}
