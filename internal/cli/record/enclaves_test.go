// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/condition"
)

// What others use of the enclave page cache is what is neither free nor of the recorded workloads. Once a workload is recorded,
// it is not one of the others.
func TestUseOfTheEnclavePageCacheByOthers(t *testing.T) {
	epc := func(free, mine, other int) string {
		return fmt.Sprintf(`sgx_epc_size_bytes{node="0"} 60
sgx_epc_size_bytes{node="1"} 40
sgx_epc_free_bytes %d
sgx_workload_resident_bytes{workload="mine"} %d
sgx_workload_resident_bytes{workload="late"} 5
sgx_workload_resident_bytes{workload="other"} %d
`, free, mine, other)
	}
	r := &recording{}
	_, state := sampled(t, []string{"mine"}, "", epc(75, 10, 10), epc(45, 40, 10), epc(25, 40, 30))
	if w := state.machine.Warnings(); len(w) != 1 || w[0].Name != "epc_others_change_ratio" || w[0].Value != 0.2 {
		t.Errorf("others used 15, 15 and 35 of 100: %+v", w)
	}
	if _, state := sampled(t, []string{"mine"}, "sed", epc(75, 10, 10), epc(25, 40, 30), epc(25, 40, 30)); len(state.machine.Warnings()) != 1 {
		t.Error("a workload without an enclave that is recorded later hides what others used before")
	}
	r.epc.add(state.machine)
	_, state = sampled(t, []string{"mine"}, "late", epc(75, 10, 10), epc(75, 10, 10), epc(75, 10, 10))
	if w := state.machine.Warnings(); len(w) != 0 {
		t.Errorf("others used 15, and 10 of another workload than was known: %+v", w)
	}
	r.epc.add(state.machine)
	want := []run.Condition{{Name: condition.EPCOthers, Value: "15.8", Kind: "identity"}} // of 21.67 and 10 %
	if got := r.describeEPC(); !reflect.DeepEqual(got, want) {
		t.Errorf("conditions are %+v, want %+v", got, want)
	}
	if _, state := sampled(t, []string{"mine"}, "", "x 1\n", "x 1\n"); len(state.machine.Warnings()) != 0 {
		t.Error("a machine without SGX has a warning")
	} else if r := new(recording); true {
		if r.epc.add(state.machine); r.describeEPC() != nil {
			t.Error("a machine without SGX has a condition")
		}
	}
}

// A command that ends within an interval has had an enclave in no sample. Its counter says that there was one, and a note
// that its crossings were not counted.
func TestEnclavesOfShortCommands(t *testing.T) {
	none := "x 1\n"
	ended := "# TYPE sgx_workload_enclaves_created_total counter\n" + `sgx_workload_enclaves_created_total{workload="short"} 1
sgx_workload_enclaves_created_total{workload="counted"} 1
teescope_ecalls_total{workload="counted",ecall="x"} 5
sgx_workload_enclaves_created_total{workload="earlier"} 3
`
	earlier := `sgx_workload_enclaves_created_total{workload="earlier"} 3` + "\n"
	_, state := sampled(t, []string{"short", "counted", "earlier"}, "", none+earlier, ended)
	r := &recording{Options: &Options{}, show: newProgress(os.Stderr, ""), notes: map[string]bool{}, chooser: newChooser(t.TempDir(), t.TempDir(), nil, nil)}
	var err error
	if r.out, err = run.NewWriter(io.Discard, run.Meta{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"short", "counted", "earlier"} {
		r.chooser.choose(name, true)
	}
	r.judgeWorkloads(state)
	var notes []string
	for note := range r.notes {
		notes = append(notes, note)
	}
	slices.Sort(notes)
	if len(notes) != 2 || !strings.HasPrefix(notes[0], "ECALLs, OCALLs and transitions of counted count from") || !strings.HasPrefix(notes[1], "short had an enclave, and none of its ECALLs") {
		t.Errorf("notes are %q", notes)
	}
}
