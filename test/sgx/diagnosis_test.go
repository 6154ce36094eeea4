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

// window is the analysed time in seconds.
const window = 45

// TestDiagnosis: within four windows the real binary finds what slows an enclave that pages, and then one that makes
// OCALLs. It finds nothing at an idle enclave.
func TestDiagnosis(t *testing.T) {
	dir := t.TempDir()
	run := os.Getenv("TESTBED")
	if run == "" {
		run = "../../testbed/run"
	}
	out, err := exec.Command(run, "-kernel", "6.12", "-epc", fmt.Sprint(epc), "-env", fmt.Sprintf("MIB=%d", 2*epc),
		"-env", fmt.Sprintf("WINDOW=%d", window), "-timeout", "15m", "-in", "testdata/diagnosis.sh", "-in", buildBinary(t),
		"-to", dir, "-out", "paging.json", "-out", "chatty.json", "-out", "up.log", "-out", "analyze.log", "--", "sh", "diagnosis.sh").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", read(t, filepath.Join(dir, "analyze.log")))
	for _, c := range []struct{ workload, rule, confidence string }{
		{"paging", "epc-thrashing", ""},
		{"chatty", "ocall-bound", "measured"}, // with the measured cost of a crossing
	} {
		t.Run(c.workload, func(t *testing.T) { diagnosed(t, dir, c.workload, c.rule, c.confidence) })
	}
}

// diagnosed compares a report with its one expected finding above info.
func diagnosed(t *testing.T, dir, workload, rule, confidence string) {
	var report struct {
		Workloads int
		Findings  []struct {
			Rule, Workload, Severity, Confidence, Cause string
			Saving, Gain                                *struct{ Low, High float64 }
		}
	}
	text := read(t, filepath.Join(dir, workload+".json"))
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	right := false
	for _, f := range report.Findings {
		t.Logf("%s at %s, %s, %s: %s (saving %v, gain %v)", f.Rule, f.Workload, f.Severity, f.Confidence, f.Cause, f.Saving, f.Gain)
		switch {
		case f.Workload == workload && f.Rule == rule:
			right = f.Severity != "info" && f.Saving != nil && (confidence == "" || f.Confidence == confidence)
		case f.Workload == "quiet":
			t.Errorf("the quiet enclave has %s: %s", f.Rule, f.Cause)
		case f.Rule == "not-the-tee":
			// All CPUs of the machine share one thread of a host that may be busy, so this is also true.
		case f.Severity != "info":
			t.Errorf("%s is also found at %s", f.Rule, f.Workload)
		}
	}
	if !right || report.Workloads < 2 {
		t.Errorf("%s is not found at %s, of %d workloads:\n%s\n%s", rule, workload, report.Workloads, text, read(t, filepath.Join(dir, "up.log")))
	}
}
