// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"path/filepath"
	"strings"
	"testing"
)

// The functions that our rules refuse must include all that the kernel refuses. The others must work.
func TestKernelTakesWhatIsNotRefused(t *testing.T) {
	b := start(t, modeOn, 0)
	dir := filepath.Join(t.TempDir(), "gramine/sgx")
	p := run(t, build(t, filepath.Join(dir, "loader"), "testdata/sites.c", "-DAS_LOADER"))
	p.do(t, "0")
	look(t, b)
	s := scrape(t, b)
	before := numbers(t, p.do(t, "3"))[0]
	after := scrape(t, b)
	probed := 0.0
	for name, n := range after {
		if !strings.HasPrefix(name, "teescope_ocalls_total{mode=normal,ocall=") {
			continue
		}
		if strings.Contains(name, "refused") {
			t.Errorf("%s was probed", name)
		}
		if n-s[name] != 3 {
			t.Errorf("%s grew by %v, want 3", name, n-s[name])
		}
		probed++
	}
	if probed != before {
		t.Errorf("%v functions were probed, the program has %v that can be", probed, before)
	}
	found := false
	for name := range after {
		found = found || strings.HasPrefix(name, "teescope_transition_probes_info{file=loader,reason=") && strings.Contains(name, "cannot be probed")
	}
	if !found {
		t.Error("no sample reports refused functions")
	}
}
