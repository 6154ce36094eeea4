// SPDX-License-Identifier: Apache-2.0

//go:build sgx

package sgx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// window is the analysed time in seconds.
const window = 45

// TestDiagnosis: within four windows the real binary finds what slows an enclave that pages, and then one that makes
// OCALLs. It finds nothing at an idle enclave. Then advice about their manifests is followed, and the machine counts the effect.
func TestDiagnosis(t *testing.T) {
	dir := t.TempDir()
	run := os.Getenv("TESTBED")
	if run == "" {
		run = "../../testbed/run"
	}
	out, err := exec.Command(run, "-kernel", "6.12", "-epc", fmt.Sprint(epc), "-env", fmt.Sprintf("EPC=%d", epc), "-env", fmt.Sprintf("MIB=%d", 2*epc),
		"-env", fmt.Sprintf("WINDOW=%d", window), "-timeout", "20m", "-in", "testdata/diagnosis.sh", "-in", buildBinary(t),
		"-to", dir, "-out", "paging.json", "-out", "chatty.json", "-out", "paging.advice", "-out", "chatty.advice",
		"-out", "paging.over", "-out", "paging.fits",
		"-out", "paging.counts", "-out", "chatty.counts", "-out", "up.log", "-out", "analyze.log", "--", "sh", "diagnosis.sh").CombinedOutput()
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
	t.Run("advice about paging", func(t *testing.T) { advisedPaging(t, dir) })
	t.Run("advice about exits", func(t *testing.T) { advisedExits(t, dir) })
	t.Run("advice about the size", func(t *testing.T) { advisedSize(t, dir) })
}

// advice is what teescope advise says of a manifest beside a workload.
type advice struct {
	Advice []struct {
		Rule, Analyze string
		Do            []string
		Seen          []struct {
			What, Text, Source string
			Value              float64
		}
	}
	Checked []string
	WhatIf  []struct {
		Effects []struct{ Low, High float64 }
		Risk    string
	} `json:"what_if"`
}

// adviceIn reads the JSON of teescope advise.
func adviceIn(t *testing.T, dir, file string) (advice, []byte) {
	t.Helper()
	var all advice
	text := read(t, filepath.Join(dir, file))
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("%v\n%s\n%s", err, text, read(t, filepath.Join(dir, "analyze.log")))
	}
	return all, text
}

// withoutAdvice requires that a rule has judged and has nothing to advise.
func withoutAdvice(t *testing.T, dir, file, rule string) {
	t.Helper()
	all, text := adviceIn(t, dir, file)
	if !slices.Contains(all.Checked, rule) {
		t.Errorf("%s did not judge:\n%s", rule, text)
	}
	for _, a := range all.Advice {
		if a.Rule == rule {
			t.Errorf("%s still advises:\n%s", rule, text)
		}
	}
}

// advised reads the advice about a workload, which has that of a rule with the figures of a finding.
func advised(t *testing.T, dir, workload, rule, finding string) advice {
	t.Helper()
	all, text := adviceIn(t, dir, workload+".advice")
	for _, a := range all.Advice {
		if a.Rule == rule && a.Analyze == finding && len(a.Do) > 0 && len(a.Seen) > 0 && strings.HasSuffix(a.Seen[0].Source, ", "+finding) {
			t.Logf("%s about %s: %q", rule, workload, a.Do)
			return all
		}
	}
	t.Fatalf("no advice of %s about %s:\n%s", rule, finding, text)
	return all
}

// counts reads what the machine and the program counted with the old and with the new setting.
func counts(t *testing.T, dir, workload string, n int) [2][]float64 {
	t.Helper()
	var both [2][]float64
	text := read(t, filepath.Join(dir, workload+".counts"))
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(lines) != len(both) {
		t.Fatalf("%q", text)
	}
	for i, line := range lines {
		both[i] = make([]float64, n)
		to := make([]any, n)
		for j := range to {
			to[j] = &both[i][j]
		}
		if _, err := fmt.Sscan(string(line), to...); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	return both
}

// advisedPaging: the advice is a working set below the EPC. With twice the EPC, each access in turn loads a page; with half of
// it, nearly none does, and an access is faster.
func advisedPaging(t *testing.T, dir string) {
	advised(t, dir, "paging", "enclave-over-epc", "epc-thrashing")
	c := counts(t, dir, "paging", 3)
	before, after := c[0][0]/c[0][1], c[1][0]/c[1][1]
	slow, fast := c[0][2]/c[0][1], c[1][2]/c[1][1]
	t.Logf("pages loaded for each that is touched: %.3f of %.0f, then %.3f of %.0f; %.1f us for each, then %.1f us", before, c[0][1], after, c[1][1], 1e6*slow, 1e6*fast)
	if before < 0.5 || after > before/10 || fast >= slow {
		t.Errorf("the advice does not hold: %v", c)
	}
}

// advisedExits: the advice is fewer calls, and then threads outside. With them an OCALL is not an exit, which the machine counts
// exactly: the exits that remain are the ends of ECALLs.
func advisedExits(t *testing.T, dir string) {
	a := advised(t, dir, "chatty", "ocalls", "ocall-bound")
	if len(a.WhatIf) != 1 || len(a.WhatIf[0].Effects) < 2 || a.WhatIf[0].Effects[0].Low <= 0 || a.WhatIf[0].Risk == "" {
		t.Errorf("what threads outside would save: %+v", a.WhatIf)
	}
	c := counts(t, dir, "chatty", 3)
	t.Logf("exits, ECALLs, OCALLs: %v, then %v", c[0], c[1])
	for i, want := range []float64{c[0][1] + c[0][2], c[1][1]} {
		if c[i][0] != want || c[i][2] != 1000 {
			t.Errorf("%v: want %.0f exits for 1000 OCALLs", c[i], want)
		}
	}
}

// advisedSize: the manifest requests twice the EPC of this machine. With half of it there is nothing to advise.
func advisedSize(t *testing.T, dir string) {
	const rule = "enclave-over-epc"
	all, text := adviceIn(t, dir, "paging.over")
	seen := map[string]string{}
	for _, a := range all.Advice {
		for _, s := range a.Seen {
			if a.Rule == rule && a.Analyze == "epc-thrashing" {
				seen[s.What] = s.Text + fmt.Sprint(int(s.Value))
			}
		}
	}
	if seen["EPC"] != fmt.Sprint(epc<<20) || !strings.Contains(seen["sgx.enclave_size"], fmt.Sprintf("%dM", 2*epc)) {
		t.Errorf("%s sees %v, want an EPC of %d MiB and twice that:\n%s", rule, seen, epc, text)
	}
	withoutAdvice(t, dir, "paging.fits", rule)
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
