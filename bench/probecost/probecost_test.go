// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestTableIsOfTheseObjects compares the table with the objects. It fails when a program has grown, shrunk, appeared or
// disappeared.
func TestTableIsOfTheseObjects(t *testing.T) {
	programs, err := count("../..")
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadFile("../../docs/dev/probe-cost.md")
	if err != nil {
		t.Fatal(err)
	}
	want := table(programs, parse(string(committed)))
	if want == string(committed) {
		return
	}
	for line := range strings.Lines(want) {
		if !strings.Contains(string(committed), line) {
			t.Errorf("docs/dev/probe-cost.md lacks: %s", line)
		}
	}
	t.Error(`docs/dev/probe-cost.md differs from the objects: run "make generate-probe-cost" and look at the diff`)
}

func TestNotesAreKept(t *testing.T) {
	programs := []program{{"a/x.bpf.o", "one", "tp_btf/e", 5, 5}, {"a/x.bpf.o", "two", "raw_tp/e", 7, 20}, {"b/y.bpf.o", "one", "iter/task", 9, 9}}
	want := notes{
		here:    map[string]note{key("a/x.bpf.o", "one"): "40", key("b/y.bpf.o", "one"): "600"},
		virtual: map[string]note{key("b/y.bpf.o", "one"): "7000"}, whenHere: "today, here", whenVirtual: "yesterday, there",
	}
	text := table(programs, want)
	got := parse(text)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if again := table(programs, got); again != text {
		t.Errorf("written again it is\n%s", again)
	}
	programs[1].own++
	if table(programs, got) == text {
		t.Error("an instruction more changes nothing")
	}
}

func TestInstructionsAreCountedWithAndWithoutCalls(t *testing.T) {
	programs, err := count("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		// The empty program is `r0 = 0; exit`.
		if p.name == "empty" && (p.own != 2 || p.all != 2) {
			t.Errorf("the empty program has %d instructions, %d with calls", p.own, p.all)
		}
		if p.name == "sys_enter" && (p.own < 20 || p.own >= p.all) {
			t.Errorf("sys_enter has %d instructions, %d with calls", p.own, p.all)
		}
	}
}

func TestRunsOfTheAgentAreRead(t *testing.T) {
	all, err := parseCounts([]byte("teescope_bpf_program_sampled_run_seconds_total{program=\"a\"} 2.5e-05\n" +
		"teescope_bpf_program_sampled_runs_total{program=\"a\"} 1000\n"))
	if err != nil || all["a"] != (counts{1000, 2.5e-05}) {
		t.Errorf("%v, %v", all, err)
	}
}

func TestVirtualMachineIsRead(t *testing.T) {
	t.Chdir("../..")
	file := filepath.Join(t.TempDir(), "metrics")
	text := `node_uname_info{machine="x86_64",release="6.12.1-amd64",sysname="Linux"} 1
teescope_bpf_program_sampled_run_seconds_total{program="sgx/free_fentry"} 0.02
teescope_bpf_program_sampled_runs_total{program="sgx/free_fentry"} 2000
teescope_bpf_program_sampled_run_seconds_total{program="sgx/evict_fentry"} 0.1
teescope_bpf_program_sampled_runs_total{program="sgx/evict_fentry"} 99
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, when, err := readVirtual(file)
	if err != nil || len(got) != 1 || got[key("internal/agent/tee/sgx/driver/sgx.bpf.o", "free_fentry")] != "10000" || !strings.Contains(when, "Linux 6.12.1-amd64") {
		t.Errorf("%v, %q, %v", got, when, err)
	}
	if err := os.WriteFile(file, []byte("up 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readVirtual(file); err == nil {
		t.Error("an exposition without figures was read")
	}
}
