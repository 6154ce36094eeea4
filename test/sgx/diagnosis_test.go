// SPDX-License-Identifier: Apache-2.0

//go:build sgx

package sgx

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// window is how many seconds the analysis looks back.
const window = 15

// TestDiagnosis has the real binary say within two windows what slows an enclave that pages, and nothing of one that
// does nothing.
func TestDiagnosis(t *testing.T) {
	dir := t.TempDir()
	run := os.Getenv("TESTBED")
	if run == "" {
		run = "../../testbed/run"
	}
	out, err := exec.Command(run, "-kernel", "6.12", "-epc", fmt.Sprint(epc), "-env", fmt.Sprintf("MIB=%d", 2*epc),
		"-env", fmt.Sprintf("WINDOW=%d", window), "-timeout", "5m", "-in", "testdata/diagnosis.sh", "-in", buildBinary(t),
		"-to", dir, "-out", "found.json", "-out", "up.log", "-out", "analyze.log", "--", "sh", "diagnosis.sh").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var report struct {
		Workloads int
		Findings  []struct {
			Rule, Workload, Severity, Cause string
			Gain                            *struct{ Low, High float64 }
		}
	}
	text := read(t, filepath.Join(dir, "found.json"))
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatalf("%v\n%s\n%s", err, text, read(t, filepath.Join(dir, "analyze.log")))
	}
	right := false
	for _, f := range report.Findings {
		t.Logf("%s at %s, %s: %s (gain %v)", f.Rule, f.Workload, f.Severity, f.Cause, f.Gain)
		switch {
		case f.Workload == "paging" && f.Rule == "epc-thrashing":
			right = f.Severity != "info" && f.Gain != nil
		case f.Workload == "quiet":
			t.Errorf("the quiet enclave has %s: %s", f.Rule, f.Cause)
		case f.Severity != "info":
			t.Errorf("%s is said of %s as well", f.Rule, f.Workload)
		}
	}
	if !right || report.Workloads < 2 {
		t.Errorf("epc-thrashing is not found at paging, of %d workloads:\n%s\n%s", report.Workloads, text, read(t, filepath.Join(dir, "up.log")))
	}
}
