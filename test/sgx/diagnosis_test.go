// SPDX-License-Identifier: Apache-2.0

//go:build sgx

package sgx

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/metric/metrictest"
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
		"-out", "forking.advice", "-out", "threading.advice", "-out", "pooled.advice",
		"-out", "paging.counts", "-out", "chatty.counts", "-out", "forking.counts", "-out", "threading.counts", "-out", "forking.started", "-out", "up.log", "-out", "analyze.log", "--", "sh", "diagnosis.sh").CombinedOutput()
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
	t.Run("advice about processes", func(t *testing.T) { advisedProcesses(t, dir) })
	t.Run("advice about threads", func(t *testing.T) { advisedThreads(t, dir) })
}

// advice is what teescope advise says of a manifest beside a workload.
type advice struct {
	Advice []struct {
		Rule, Analyze, Diff string
		Do                  []string
		Seen                []struct {
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

// figures returns the figures of the advice of a rule about a workload, and the lines to change.
func figures(t *testing.T, dir, workload, rule string) (of map[string]float64, diff string) {
	t.Helper()
	all, text := adviceIn(t, dir, workload+".advice")
	for _, a := range all.Advice {
		if a.Rule != rule {
			continue
		}
		of = make(map[string]float64)
		for _, s := range a.Seen {
			of[s.What] = s.Value
		}
		t.Logf("%s about %s: %v", rule, workload, of)
		return of, a.Diff
	}
	t.Fatalf("no advice of %s about %s:\n%s", rule, workload, text)
	return nil, ""
}

// ratio requires a ratio of two figures within bounds.
func ratio(t *testing.T, what string, a, b, low, high float64) {
	t.Helper()
	if r := a / b; !(r >= low && r <= high) {
		t.Errorf("%s: %g and %g, want a ratio from %g to %g", what, a, b, low, high)
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
	all := numbers(t, dir, workload+".counts", 2*n)
	return [2][]float64{all[:n], all[n:]}
}

// numbers reads a file of n numbers.
func numbers(t *testing.T, dir, file string, n int) []float64 {
	t.Helper()
	text := read(t, filepath.Join(dir, file))
	fields := strings.Fields(string(text))
	if len(fields) != n {
		t.Fatalf("%s: %q, want %d numbers", file, text, n)
	}
	all := make([]float64, n)
	for i, f := range fields {
		all[i] = metrictest.Number(t, f)
	}
	return all
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

// advisedProcesses: each ECALL is in a process with an enclave, and the manifest allows that. With one process for all there is nothing to
// advise, and the machine starts one enclave for as many ECALLs.
func advisedProcesses(t *testing.T, dir string) {
	const rule = "forks"
	of, diff := figures(t, dir, "forking", rule)
	if !strings.Contains(diff, "+sys.disallow_subprocesses = true\n") {
		t.Errorf("the lines to change are %q", diff)
	}
	ratio(t, "processes and enclaves", of["forks"], of["enclaves"], 0.8, 1.25)
	// Four other programs have an enclave each. The metric that the figure is a rate of is read between two counts of the machine.
	n := numbers(t, dir, "forking.started", 4)
	if least, most := n[1]-n[0]-4, n[2]-n[0]-4; n[3] < least-1 || n[3] > most {
		t.Errorf("teescope has counted %g enclaves, the machine %g to %g", n[3], least, most)
	}
	// The rule is silent where the finding is absent, as at all workloads that the analysis of this window does not name.
	for _, f := range findings(t, dir, "chatty").Findings {
		if f.Workload == "prefork" && f.Rule == "process-churn" {
			t.Errorf("a program with one process has %s: %s", f.Rule, f.Cause)
		}
	}
	c := counts(t, dir, "forking", 3)
	t.Logf("enclaves, ECALLs, seconds: %v, then %v", c[0], c[1])
	if c[0][0] != 20 || c[1][0] != 1 || c[0][1] != 20 || c[1][1] != 20 {
		t.Errorf("%v: want 20 enclaves, then one, for 20 ECALLs", c)
	}
}

// advisedThreads: each ECALL is in a new thread, which makes two sockets and binds one. With one thread for all there is nothing to advise.
func advisedThreads(t *testing.T, dir string) {
	const rule, others = "thread-creation", 20 // that the kernel starts for itself
	of, _ := figures(t, dir, "threading", rule)
	starts := of["thread starts in the busiest step"]
	ratio(t, "sockets and threads", of["sockets made in the same step"], starts, 1.8, 2.2)
	ratio(t, "bound sockets and threads", of["sockets bound in the same step"], starts, 0.9, 1.1)
	withoutAdvice(t, dir, "pooled.advice", rule)
	c := counts(t, dir, "threading", 3)
	t.Logf("processes and threads, ECALLs, seconds: %v, then %v", c[0], c[1])
	if c[0][0] < 200 || c[0][0] > 200+others || c[1][0] > others || c[0][1] != 200 || c[1][1] != 200 {
		t.Errorf("%v: want 200 threads, then a few, for 200 ECALLs", c)
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

// analysed is a part of what teescope analyze writes.
type analysed struct {
	Workloads int
	Findings  []struct {
		Rule, Workload, Severity, Confidence, Cause string
		Saving, Gain                                *struct{ Low, High float64 }
	}
}

// findings reads the report of the analysis for a workload, which is about all workloads.
func findings(t *testing.T, dir, workload string) (r analysed) {
	t.Helper()
	text := read(t, filepath.Join(dir, workload+".json"))
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return r
}

// diagnosed compares a report with its one expected finding above info.
func diagnosed(t *testing.T, dir, workload, rule, confidence string) {
	of := findings(t, dir, workload)
	right := false
	for _, f := range of.Findings {
		t.Logf("%s at %s, %s, %s: %s (saving %v, gain %v)", f.Rule, f.Workload, f.Severity, f.Confidence, f.Cause, f.Saving, f.Gain)
		switch {
		case f.Workload == workload && f.Rule == rule:
			right = f.Severity != "info" && f.Saving != nil && (confidence == "" || f.Confidence == confidence)
		case f.Workload == "quiet":
			t.Errorf("the quiet enclave has %s: %s", f.Rule, f.Cause)
		case f.Workload == "forking" && f.Rule == "process-churn", f.Workload == "threading" && f.Rule == "thread-churn":
			// See advisedProcesses and advisedThreads.
		case f.Rule == "not-the-tee":
			// All CPUs of the machine share one thread of a host that may be busy, so this is also true.
		case f.Severity != "info":
			t.Errorf("%s is also found at %s", f.Rule, f.Workload)
		}
	}
	if !right || of.Workloads < 2 {
		t.Errorf("%s is not found at %s, of %d workloads:\n%s\n%s", rule, workload, of.Workloads, read(t, filepath.Join(dir, workload+".json")), read(t, filepath.Join(dir, "up.log")))
	}
}
