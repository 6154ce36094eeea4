// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/condition"
	"github.com/teescope/teescope/internal/run/runtest"
)

// Others that use the enclave page cache can explain times and paging, and not how often a program calls the kernel.
func TestUseOfTheEnclavePageCacheExplains(t *testing.T) {
	used := func(file, percent string) *Record {
		s := simulated(rand.New(rand.NewPCG(15, 16)), 6, 1)
		for i := range s.Repetitions {
			s.Repetitions[i].Counters = append(s.Repetitions[i].Counters, runtest.Counter(float64(100+i), "sgx_workload_pages_evicted_total"))
		}
		s.Conditions = []run.Condition{{Name: condition.EPCOthers, Value: percent, Kind: "identity"}}
		return record(t, file, s)
	}
	a, b, c := used("a", "5.0"), used("b", "9.9"), used("c", "60.0")
	for id, refused := range map[string]bool{"throughput": true, "sgx_workload_pages_evicted_per_op": true, "syscalls_per_op": false} {
		if v := row(t, compared(t, Options{PerOp: 1}, "", a, b)[0], id).Cells[1].Change.Verdict; v == Refused {
			t.Errorf("5 %% and 9.9 %% explain %s", id)
		}
		if v := row(t, compared(t, Options{PerOp: 1}, "", a, c)[0], id).Cells[1].Change.Verdict; (v == Refused) != refused {
			t.Errorf("5 %% and 60 %%: the verdict of %s is %s", id, v)
		}
	}
}

// Sides that were recorded one after the other can differ by what the machine did meanwhile. A note says so, and not of sides that
// were recorded in turn.
func TestRecordingsInOrder(t *testing.T) {
	at := func(file string, minute int) *Record {
		s := simulated(rand.New(rand.NewPCG(17, uint64(minute))), 2, 1) // each takes 22 s
		s.Started = runtest.Began.Add(time.Duration(minute) * time.Minute)
		return record(t, file, s)
	}
	notes := func(names []string, records ...*Record) string {
		sets, err := Split(records, names, "")
		if err != nil {
			t.Fatal(err)
		}
		table, err := Compare(sets[0], Options{})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(table.Notes, "\n")
	}
	const want = "b: recorded all before or all after a."
	if got := notes([]string{"a", "a", "b", "b"}, at("1", 0), at("2", 1), at("3", 2), at("4", 3)); !strings.Contains(got, want) {
		t.Errorf("first a, then b: %s", got)
	}
	if got := notes([]string{"a", "a", "b", "b"}, at("1", 2), at("2", 3), at("3", 0), at("4", 1)); !strings.Contains(got, want) {
		t.Errorf("first b, then a: %s", got)
	}
	if got := notes([]string{"a", "b", "a", "b"}, at("1", 0), at("2", 1), at("3", 2), at("4", 3)); strings.Contains(got, "recorded all") {
		t.Errorf("in turn: %s", got)
	}
	// The start of an import is when it was imported, and it has no other time.
	imported := Extract(&run.Run{
		Meta: run.Meta{Started: runtest.Began.Add(time.Hour)}, Phases: []run.Phase{{Name: run.Whole, Repetition: 1}},
		Outcomes: []run.Outcome{{Repetition: 1, Name: "throughput", Value: 1}},
	}, "2", nil)
	if got := notes([]string{"a", "b"}, at("1", 0), imported); strings.Contains(got, "recorded all") {
		t.Errorf("imported: %s", got)
	}
}

// The same benchmark in a plain virtual machine and in a trust domain of the same host. What a trust domain always has is a part of
// the comparison. A smaller machine or another kernel is not.
func TestCostOfATEE(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	in := func(name string, factor float64, tee, clock, memory, kernel string) *Record {
		s := simulated(random, 6, factor)
		s.Conditions = []run.Condition{
			{Name: "clock_source", Value: clock, Kind: "identity"}, {Name: "memory_bytes", Value: memory, Kind: "identity"},
			{Name: "kernel", Value: kernel, Kind: "identity"}, {Name: "mitigation.retbleed", Value: name, Kind: "identity"},
		}
		if tee != "" {
			s.Conditions = append(s.Conditions, run.Condition{Name: "tee", Value: tee, Kind: "program"})
		}
		return record(t, name, s)
	}
	plain := in("plain", 1, "", "kvm-clock", "8000", "6.12")
	for _, tt := range []struct {
		other *Record
		want  Verdict
		why   string
	}{
		{in("td", 3, "tdx", "tsc", "7500", "6.12"), Worse, ""},
		{in("small", 3, "tdx", "tsc", "4000", "6.12"), Refused, "memory_bytes"},
		{in("old", 3, "tdx", "tsc", "7500", "6.1"), Refused, "kernel"},
		{in("other", 3, "", "tsc", "7500", "6.12"), Refused, "clock_source memory_bytes mitigation.retbleed"},
	} {
		table := compared(t, Options{}, "", plain, tt.other)[0]
		change := row(t, table, "throughput").Cells[1].Change
		if why := strings.Join(change.Explains, " "); change.Verdict != tt.want || why != tt.why {
			t.Errorf("%v: %s because of %q, want %s because of %q", tt.other.Conditions, change.Verdict, why, tt.want, tt.why)
		}
	}
}

// Only those values of a condition are excused that a TEE causes.
func TestWhatFollowsFromATEE(t *testing.T) {
	const plain, hidden = "0x21000161", "0xffffffff"
	for _, tt := range []struct {
		name     string
		values   [2]string
		explains bool
	}{
		{"clock_source", [2]string{"kvm-clock", "tsc"}, false},
		{"clock_source", [2]string{"hpet", "tsc"}, true},
		{"clock_source", [2]string{"hpet | kvm-clock", "tsc"}, true},
		{"microcode", [2]string{plain, hidden}, false},
		{"microcode", [2]string{"0x1", plain}, false},
		{"microcode", [2]string{plain, "0x2b0004b1"}, true},
		{"microcode", [2]string{plain, plain + " | " + hidden}, true},
		{"mitigation.spectre_v2", [2]string{"Mitigation: Retpolines; IBPB: conditional", "Mitigation: Enhanced / Automatic IBRS; PBRSB-eIBRS: Vulnerable"}, false},
		{"mitigation.spectre_v2", [2]string{"Vulnerable; IBPB: disabled; STIBP: disabled", "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional"}, true},
		{"mitigation.spectre_v1", [2]string{"Mitigation: usercopy/swapgs barriers", "Vulnerable: __user pointer sanitization and usercopy barriers only"}, true},
		{"mitigation.spectre_v2", [2]string{"Vulnerable; IBPB: disabled", "Vulnerable; STIBP: disabled"}, false},
		{"mitigation.meltdown", [2]string{"Vulnerable | Mitigation: PTI", "Vulnerable"}, true},
		{"mitigation.mds", [2]string{"Vulnerable: Clear CPU buffers attempted, no microcode; SMT Host state unknown", "Not affected"}, false},
		{"memory_bytes", [2]string{"8000", "7500"}, false},
		{"memory_bytes", [2]string{"8000", "4000"}, true},
		{"kernel", [2]string{"6.12", "6.1"}, true},
	} {
		d := Difference{Name: tt.name, Identity: true, Machine: true, Values: tt.values[:], tees: []string{"", "tdx"}}
		if got := d.explains(Metric{Time: true}, 0, 1); got != tt.explains || d.explains(Metric{Time: true}, 1, 0) != got {
			t.Errorf("%s %q explains: %v", tt.name, tt.values, got)
		}
	}
}
