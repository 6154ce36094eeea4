// SPDX-License-Identifier: Apache-2.0

//go:build sgx

package sgx

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestArenas: 16 threads allocate 500 blocks of 64 bytes each in 256 MiB, where Glibc has room for three arenas of 64 MiB. The threads
// without one take a page for each block. teescope advises to share one arena. With it, dozens of blocks share a page, and there is
// nothing to advise.
func TestArenas(t *testing.T) {
	const rule, mib, allocations = "malloc-arenas", 256, 16 * 500
	dir := t.TempDir()
	run := os.Getenv("TESTBED")
	if run == "" {
		run = "../../testbed/run"
	}
	out, err := exec.Command(run, "-kernel", "6.12", "-env", fmt.Sprintf("MIB=%d", mib), "-timeout", "20m", "-in", "testdata/arenas.sh", "-in", buildBinary(t),
		"-to", dir, "-out", "arenas.advice", "-out", "shared.advice", "-out", "arenas.counts", "--", "sh", "arenas.sh").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	of, diff := figures(t, dir, "arenas", rule)
	if !strings.Contains(diff, "+loader.env.MALLOC_ARENA_MAX = \"1\"\n") {
		t.Errorf("the lines to change are %q", diff)
	}
	if most := of["memory of arenas"]; most != (17-3)*64<<20 { // Gramine has three threads of its own
		t.Errorf("17 threads take %g bytes of arenas", most)
	}
	withoutAdvice(t, dir, "shared.advice", rule)
	c := counts(t, dir, "arenas", 3)
	before, after := c[0][1]/c[0][0], c[1][1]/c[1][0]
	t.Logf("page faults for each of %.0f allocations: %.3f in %g s, then %.3f of %.0f in %g s", c[0][0], before, c[0][2], after, c[1][0], c[1][2])
	if c[0][0] != allocations || c[1][0] != allocations || before < 0.5 || after > before/5 {
		t.Errorf("the advice does not hold: %v", c)
	}
}
