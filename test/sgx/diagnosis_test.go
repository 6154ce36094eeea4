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

// TestDiagnosis has the real binary say what slows the enclaves: the one that pages and the one that leaves again and
// again, within two windows, and nothing of the one that does nothing.
//
// It is on 6.12 alone: Debian's 6.1 refuses to count transitions of an agent without CAP_SYS_ADMIN.
func TestDiagnosis(t *testing.T) {
	dir := t.TempDir()
	run := os.Getenv("TESTBED")
	if run == "" {
		run = "../../testbed/run"
	}
	args := []string{
		"-kernel", "6.12", "-epc", fmt.Sprint(epc), "-env", fmt.Sprintf("MIB=%d", 2*epc), "-env", fmt.Sprintf("WINDOW=%d", window),
		"-timeout", "6m", "-in", "testdata/diagnosis.sh", "-in", buildBinary(t), "-to", dir, "-out", "agent.log", "-out", "analyze.log",
	}
	steps := []struct{ workload, rule string }{{"paging", "epc-thrashing"}, {"chatty", "ocall-bound"}}
	for _, s := range steps {
		args = append(args, "-out", s.workload+".json", "-out", s.workload+".metrics")
	}
	if out, err := exec.Command(run, append(args, "--", "sh", "diagnosis.sh")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, s := range steps {
		t.Run(s.workload, func(t *testing.T) {
			var report struct {
				Findings []struct {
					Rule, Workload, Severity, Cause string
					Gain                            *struct{ Low, High float64 }
				}
			}
			text := read(t, filepath.Join(dir, s.workload+".json"))
			if err := json.Unmarshal(text, &report); err != nil {
				t.Fatalf("%v\n%s\n%s", err, text, read(t, filepath.Join(dir, "analyze.log")))
			}
			right := false
			for _, f := range report.Findings {
				t.Logf("%s at %s, %s: %s (gain %v)", f.Rule, f.Workload, f.Severity, f.Cause, f.Gain)
				switch {
				case f.Workload == s.workload && f.Rule == s.rule:
					right = f.Severity != "info" && f.Gain != nil
				case f.Workload == "quiet":
					t.Errorf("the quiet enclave has %s: %s", f.Rule, f.Cause)
				case f.Severity != "info":
					t.Errorf("%s is said of %s as well", f.Rule, f.Workload)
				}
			}
			if !right {
				t.Errorf("%s is not found at %s:\n%s", s.rule, s.workload, text)
			}
		})
	}
}
