// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/condition"
	"github.com/teescope/teescope/internal/run/runtest"
)

// instructionsOf is a run with counters of the processor, and more series that say in what the program ran.
func instructionsOf(conditions []run.Condition, more ...runtest.Value) runtest.Spec {
	return runtest.Spec{Conditions: conditions, Repetitions: []runtest.Repetition{{
		Outcomes: []run.Outcome{{Name: "operations", Value: 50}},
		Counters: []runtest.Value{runtest.Counter(2e9, "teescope_instructions_total", "mode", "user"), runtest.Counter(1e9, "teescope_cycles_total", "mode", "user")},
		Gauges:   more,
	}}}
}

// A counter of the processor says what it has counted: the host side of an enclave, a debug enclave too, a twin, or a program
// without an enclave.
func TestHowInstructionsWereCounted(t *testing.T) {
	machine := runtest.Value{Name: "sgx_enclaves_created_total"}
	enclave := func(debug string) runtest.Value { return runtest.Counter(1, "sgx_enclave_info", "debug", debug) }
	twin := []run.Condition{{Name: run.Twin, Value: "of a program in an enclave", Kind: "note"}}
	emulated := []run.Condition{{Name: "sgx", Value: condition.EmulatedSGX, Kind: "identity"}}
	for _, c := range []struct {
		what       string
		conditions []run.Condition
		more       []runtest.Value
		want       string
	}{
		{"a machine without the driver", nil, nil, "counter of the processor, which does not count inside production enclaves"},
		{"no enclave", nil, []runtest.Value{machine}, "counter of the processor, of a program without an enclave"},
		{"a production enclave", nil, []runtest.Value{machine, enclave("false")}, "counter of the processor, outside of the enclave: it does not count inside production enclaves"},
		{"a debug enclave", nil, []runtest.Value{machine, enclave("true")}, "counter of the processor, outside and inside of a debug enclave, as far as its threads opt in (DBGOPTIN)"},
		{"both", nil, []runtest.Value{enclave("true"), enclave("false")}, "counter of the processor, outside of its production enclaves, and outside and inside of its debug enclaves"},
		{"an enclave whose attributes are unknown", nil, []runtest.Value{machine, runtest.Counter(1, "sgx_workload_enclaves")}, "counter of the processor, which does not count inside production enclaves"},
		{"gramine-direct", nil, []runtest.Value{machine, runtest.Counter(1, "teescope_workload_info", "runtime", "gramine-direct")}, "counter of the processor, of a twin outside the enclave"},
		{"gramine-sgx", nil, []runtest.Value{machine, enclave("false"), runtest.Counter(1, "teescope_workload_info", "runtime", "gramine-sgx")}, "counter of the processor, outside of the enclave: it does not count inside production enclaves"},
		{"--twin", twin, []runtest.Value{machine}, "counter of the processor, of a twin outside the enclave"},
		{"the virtual machine", emulated, []runtest.Value{machine, enclave("true")}, "counter of the processor, outside and inside of a debug enclave, as far as its threads opt in (DBGOPTIN), in an emulated machine"},
	} {
		x := record(t, "a", instructionsOf(c.conditions, c.more...))
		for _, name := range []string{"instructions", "cycles"} {
			if got := x.Metrics[name].How; got != c.want {
				t.Errorf("%s: %s were obtained by %q, want %q", c.what, name, got, c.want)
			}
		}
	}
}

// Groups that had a figure in different ways are named with theirs.
func TestHowDiffersBetweenGroups(t *testing.T) {
	machine := runtest.Value{Name: "sgx_enclaves_created_total"}
	stock, inside := record(t, "stock", instructionsOf(nil, machine)), record(t, "inside", instructionsOf(nil, machine, runtest.Counter(1, "sgx_enclave_info", "debug", "false")))
	table := compared(t, Options{PerOp: 1, Force: true}, "", stock, inside)[0]
	const want = "stock: counter of the processor, of a program without an enclave; inside: counter of the processor, outside of the enclave: it does not count inside production enclaves"
	for _, id := range []string{"instructions_per_op", "instructions_per_cycle"} {
		if got := row(t, table, id).Metric.How; got != want {
			t.Errorf("%s was obtained by %q, want %q", id, got, want)
		}
	}
	if all := strings.Join(table.Notes, "\n"); !strings.Contains(all, "how cycles_per_op, instructions_per_cycle, instructions_per_op were obtained: "+want) {
		t.Errorf("notes are %s", all)
	}
}

// Two sources of a metric are named once, however many repetitions have them.
func TestHowOfSeveralSources(t *testing.T) {
	exits := func(source string) runtest.Value {
		return runtest.Counter(100, "teescope_enclave_transitions_total", "kind", "eexit", "source", source)
	}
	s := instructionsOf(nil)
	s.Repetitions[0].Counters = append(s.Repetitions[0].Counters, exits("vdso_breakpoint"), exits("sdk_uprobe"))
	s.Repetitions = slices.Repeat(s.Repetitions, 4)
	table := compared(t, Options{PerOp: 1}, "", record(t, "a", s), record(t, "b", s))[0]
	if got := row(t, table, "enclave_transitions_per_op{eexit}").Metric.How; got != "source vdso_breakpoint; source sdk_uprobe" {
		t.Errorf("transitions were obtained by %q", got)
	}
}

// What callgrind has counted is no outcome of a benchmark, and no time.
func TestHowCallgrindCounted(t *testing.T) {
	s := instructionsOf(nil)
	s.Repetitions[0].Outcomes = append(s.Repetitions[0].Outcomes, run.Outcome{Name: "instructions", Unit: "instructions", Value: 5, From: "callgrind", Better: "lower"})
	table := compared(t, Options{}, "", record(t, "a", s), record(t, "b", s))[0]
	if m := row(t, table, "instructions").Metric; m.How != "callgrind, which simulates the processor and runs outside of an enclave" || m.Time || m.Area != Outcome {
		t.Errorf("%+v", m)
	}
	if m := row(t, table, "operations").Metric; m.How != "" {
		t.Errorf("%+v", m)
	}
}

// An outcome may have the name of a metric. Both are in the table.
func TestOutcomesWithNamesOfMetrics(t *testing.T) {
	s := instructionsOf(nil, runtest.Counter(7, "teescope_threads"))
	s.Repetitions[0].Outcomes = append(s.Repetitions[0].Outcomes, run.Outcome{Name: "threads", Value: 5}, run.Outcome{Name: "instructions_per_second", Value: 6})
	table := compared(t, Options{}, "", record(t, "a", s), record(t, "b", s))[0]
	for id, want := range map[string]float64{"threads": 5, "teescope_threads": 7, "instructions_per_second": 6, "teescope_instructions_total": 2e8} {
		if got := row(t, table, id).Cells[0].Values; len(got) != 1 || got[0] != want {
			t.Errorf("%s is %v, want %v", id, got, want)
		}
	}
}

// An enclave adds 14.5 % of the instructions with the session keys outside of it, and 16.5 % with the keys inside. Of these, 4.2 and 97.7 %
// are in the trusted part.
func TestInstructionsOfPartitionedServers(t *testing.T) {
	server := func(millions, trusted float64) (s runtest.Spec) {
		part := func(workload string, share, factor float64) runtest.Value {
			c := runtest.Counter(millions*share*1e6*factor, "teescope_instructions_total", "mode", "user")
			c.Labels["workload"] = workload
			return c
		}
		for i := range repetitions {
			s.Repetitions = append(s.Repetitions, runtest.Repetition{
				Outcomes: []run.Outcome{{Name: "operations", Value: 50}},
				Counters: []runtest.Value{part("nginx", 1-trusted, factorOf(i)), part("enclave", trusted, factorOf(i))},
			})
		}
		return s
	}
	specs := []runtest.Spec{server(2000, 0), server(2290, 0.042), server(2330, 0.977)}
	compare := func(workloads ...string) Row {
		var all []*Record
		for i, name := range []string{"stock", "outside", "inside"} {
			r, err := runtest.Run(specs[i])
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, Extract(r, name, workloads))
		}
		return row(t, compared(t, Options{PerOp: 1}, "", all...)[0], "instructions_per_op")
	}
	r := compare()
	if r.Cells[0].Median.Value != 40e6 || r.Metric.Area != Instructions {
		t.Errorf("stock %+v of %+v, want 40 million per request", r.Cells[0].Median, r.Metric)
	}
	for i, want := range []string{"+14.5%", "+16.5%"} {
		if c := r.Cells[i+1].Change; Percent(c.Ratio.Value) != want || c.Verdict != Changed {
			t.Errorf("group %d: %+v, want %s", i+1, c, want)
		}
	}
	inside := compare("enclave")
	for i, want := range []float64{0.042, 0.977} {
		if got := inside.Cells[i+1].Median.Value / r.Cells[i+1].Median.Value; math.Abs(got-want) > 1e-9 {
			t.Errorf("group %d has %v of its instructions in the trusted part, want %v", i+1, got, want)
		}
	}
}
