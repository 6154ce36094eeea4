// SPDX-License-Identifier: Apache-2.0

//go:build sgx

package sgx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// steps are the programs that run in sequence in one machine. The EPC has 8 MiB on two NUMA nodes.
var steps = []struct {
	name, command string
	pages         bool // it does not fit into the EPC
}{
	{name: "pingpong", command: "pingpong -count 500 -ocalls 3 -threads 2"},
	{name: "kv", command: "kv -count 2 -mib 2 & kvload -count 500; wait"},
	{name: "chatty", command: "kv -count 2 -mib 2 -chatty 1 & kvload -count 100 -depth 4; wait"},
	{name: "paging", command: "paging -mib 12 -working 10 -count 1", pages: true},
	{name: "grow", command: "paging -mib 4 -dynamic 2 -working 4 -count 1"},
	{name: "churn", command: "churn -count 10 -live 3"},
	{name: "faults", command: "faults -cpuid 50 -rdtsc 60 -ud2 70 -spin 100"},
	// Programs that wake each other up send the other processor interrupts, also while it handles an RDTSC.
	{name: "disturbed", command: "(while :; do echo; done | while read x; do echo; done | cat >/dev/null) & faults -cpuid 0 -rdtsc 20000 -ud2 0; kill %1"},
	{name: "twoproc", command: "twoproc -count 200"},
}

// script runs the self-test and then each step, with the ground truth before and after.
func script() string {
	const truth = "cat /sys/module/swsgx/parameters/stats"
	s := "echo '==== nodes'; cd /sys/devices/system/node; cat node0/x86/sgx_total_bytes node1/x86/sgx_total_bytes node0/cpulist node1/cpulist; cd /job\n" +
		"echo '==== selftest'; selftest -pages 1500 || exit 1\n"
	for _, step := range steps {
		// Pages become free shortly after an enclave's end.
		s += fmt.Sprintf("sleep 0.2; echo '==== %s before'; %s; echo '==== %s'; %s || exit 1; sleep 0.2; echo '==== %s after'; %s\n",
			step.name, truth, step.name, step.command, step.name, truth)
	}
	return s
}

func TestTestbed(t *testing.T) {
	for _, kernel := range []string{"6.1", "6.12"} {
		t.Run(kernel, func(t *testing.T) {
			parts := runSteps(t, kernel)
			if !strings.Contains(parts["selftest"], `"failures":0}`) {
				t.Errorf("the module's self-test:\n%s", parts["selftest"])
			}
			if want := fmt.Sprintf("%d\n%d\n0\n1\n", 5<<20, 3<<20); parts["nodes"] != want {
				t.Errorf("the NUMA nodes have the EPC sections and processors %q, want %q", parts["nodes"], want)
			}
			for _, step := range steps {
				t.Run(step.name, func(t *testing.T) {
					did := reports(t, parts[step.name])
					delta := groundTruth(t, parts[step.name+" after"])
					before := groundTruth(t, parts[step.name+" before"])
					gauge(t, before, delta)
					for name, value := range before {
						delta[name] -= value
					}
					identities(t, delta, did, step.pages)
					special(t, step.name, delta, did)
				})
			}
		})
	}
}

// runSteps runs the script in a machine and returns the output below each "====" line.
func runSteps(t *testing.T, kernel string) map[string]string {
	t.Helper()
	cmd := exec.Command("../../testbed/run", "-kernel", kernel, "-epc", "5,3", "-cpus", "2", "-timeout", "20m", "--", "sh", "-c", script())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || strings.Contains(stderr.String(), "the guest's kernel says") {
		t.Fatalf("%v\n%s\n%s", err, stderr.String(), out)
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(string(out), "==== ") {
		name, text, _ := strings.Cut(part, "\n")
		parts[name] = text
	}
	return parts
}

func groundTruth(t *testing.T, text string) map[string]int {
	t.Helper()
	values := map[string]int{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(value)
		if err != nil {
			t.Fatalf("the ground truth contains %q", line)
		}
		values[name] = n
	}
	if len(values) < 50 {
		t.Fatalf("the ground truth has %d lines:\n%s", len(values), text)
	}
	return values
}

// report is a program's own report by name. Counts of two processes are added up.
type report map[string]map[string]float64

func reports(t *testing.T, text string) report {
	t.Helper()
	all := report{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		name, _ := fields["program"].(string)
		if all[name] == nil {
			all[name] = map[string]float64{}
		}
		for key, value := range fields {
			if number, ok := value.(float64); ok {
				all[name][key] += number
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("the program reported nothing:\n%s", text)
	}
	return all
}

func (r report) sum(key string) int {
	n := 0.0
	for _, fields := range r {
		n += fields[key]
	}
	return int(n)
}

func gauge(t *testing.T, before, after map[string]int) {
	t.Helper()
	const pages = 8 << 20 / 4096
	for _, m := range []map[string]int{before, after} {
		if m["free"] != pages || m["valid"] != 0 || m["inside"] != 0 {
			t.Errorf("when idle %d of %d EPC pages are free, %d valid, %d threads inside", m["free"], pages, m["valid"], m["inside"])
		}
	}
}

// identities hold for every enclave program.
func identities(t *testing.T, d map[string]int, did report, pages bool) {
	t.Helper()
	want := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	handlers := d["cpuid"] + d["rdtsc"] + did.sum("ud2")
	want("EENTER of ECALLs, OCALLs' returns and exception handlers", d["eenter"], did.sum("ecalls")+did.sum("ocalls")+handlers)
	want("EENTER = EEXIT", d["eenter"], d["eexit"])
	want("ERESUME = AEX", d["eresume"], d["aex"])
	want("lost AEX", d["aex_lost"], 0)
	want("AEX by cause", d["aex_page_fault"]+d["aex_operand"]+d["aex_exception"]+d["aex_timer"]+d["aex_device"]+d["aex_reschedule"]+
		d["aex_function_call"]+d["aex_schedule"]+d["aex_signal"]+d["aex_kick"], d["aex"])
	want("pages added and loaded = removed and written", d["ecreate"]+d["eadd"]+d["eaug"]+d["epa"]+d["eldu"]+d["eldb"], d["eremove"]+d["ewb"])
	want("ECREATE = EINIT", d["ecreate"], d["einit"])
	want("errors of the programs", did.sum("errors"), 0)
	if paged := d["ewb"] > 0 && d["eldu"] > 0; paged != pages && pages {
		t.Errorf("EWB %d, ELDU %d: the EPC was large enough", d["ewb"], d["eldu"])
	}
}

// special holds the figures of single programs.
func special(t *testing.T, name string, d map[string]int, did report) {
	t.Helper()
	for _, c := range map[string][]struct {
		what      string
		got, want int
	}{
		"pingpong": {{"ECALLs", did.sum("ecalls"), 1000}, {"OCALLs", did.sum("ocalls"), 3000}},
		"kv":       {{"requests", int(did["kv"]["requests"]), int(did["kvload"]["requests"])}, {"load", int(did["kvload"]["requests"]), 1000}},
		"chatty":   {{"requests", int(did["kv"]["requests"]), int(did["kvload"]["requests"])}, {"load", int(did["kvload"]["requests"]), 200}},
		"grow":     {{"EAUG", d["eaug"], 512}, {"EACCEPT", d["eaccept"], 512}},
		"churn":    {{"ECREATE", d["ecreate"], 10}},
		"faults": {
			{"CPUID seen by the enclave", did.sum("cpuid"), 50}, {"CPUID trapped", d["cpuid"], 50},
			{"RDTSC seen by the enclave", did.sum("rdtsc"), 60}, {"RDTSC trapped", d["rdtsc"], 60},
			{"UD2 seen by the enclave", did.sum("ud2"), 70}, {"AEX of exceptions", d["aex_exception"], 180},
		},
		"disturbed": {{"RDTSC seen by the enclave", did.sum("rdtsc"), 20000}, {"RDTSC trapped", d["rdtsc"], 20000}},
		"twoproc":   {{"ECREATE", d["ecreate"], 1}, {"ECALLs", did.sum("ecalls"), 401}},
	}[name] {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
}
