// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
)

// startDoorway starts a program that executes an instruction of its own as others do that of the vDSO, and has it
// watched.
func startDoorway(t *testing.T, mode Mode, budget int) (*Backend, *target) {
	t.Helper()
	o := watching(t, mode, budget, "erthost")
	address := uint64(0)
	o.enclu = func(uint32) (uint64, error) { return address, nil }
	b := startWith(t, o)
	// A fixed address: it is the same in a program that has executed itself.
	p := run(t, build(t, filepath.Join(t.TempDir(), "erthost"), "-no-pie", "-fno-pie", "testdata/doorway.c", "-lpthread"))
	address = uint64(numbers(t, p.answer(t))[0])
	look(t, b)
	if said := scrape(t, b); said["teescope_transition_probes_info{file=vdso,reason=,runtime=vdso,state=exact}"] != 1 {
		t.Fatalf("no breakpoint is set: %v", said)
	}
	return b, p
}

const (
	entered = "teescope_enclave_transitions_total{kind=eenter,source=vdso_breakpoint,workload=erthost}"
	exited  = "teescope_enclave_transitions_total{kind=eexit,source=vdso_breakpoint,workload=erthost}"
	aexed   = "teescope_enclave_transitions_total{kind=aex,source=vdso_breakpoint,workload=erthost}"
)

// Every thread that there was, every one that is made later, and children count, each once.
func TestEntriesAreCountedInAllThatDescends(t *testing.T) {
	b, p := startDoorway(t, On, 0)
	for where, times := range []float64{1, 4, 4, 2} {
		before := scrape(t, b)
		p.do(t, "500 70 %d", where)
		look(t, b) // a child that is met is not given breakpoints again
		grown(t, before, scrape(t, b), map[string]float64{entered: 500 * times, exited: 500 * times, aexed: 70 * times})
	}
	before := scrape(t, b)
	p.do(t, "1 1 4") // another program begins: it is watched from when it is met
	look(t, b)
	p.do(t, "30 20 1")
	grown(t, before, scrape(t, b), map[string]float64{entered: 30 * 4, aexed: 20 * 4})
}

// Above the budget the breakpoints are switched off until a window.
func TestEntriesAreSampledAboveTheBudget(t *testing.T) {
	b, p := startDoorway(t, Auto, 100)
	p.do(t, "2000 100 1")
	if err := b.tick(); err != nil { // one: the next may open a window
		t.Fatal(err)
	}
	before := scrape(t, b)
	if before["teescope_transition_probes_info{file=vdso,reason=,runtime=vdso,state=sampled}"] != 1 || before[entered] != 4*2000 {
		t.Errorf("%v are counted at once, above a budget of 100: %v", before[entered], before)
	}
	p.do(t, "5000 100 2")
	grown(t, before, scrape(t, b), map[string]float64{entered: 0, "teescope_transition_probe_cost_total{file=vdso,runtime=vdso}": 0})
	sampled := strings.Replace(entered, "breakpoint", "breakpoint_sampled", 1)
	for end := time.Now().Add(time.Minute); scrape(t, b)[sampled] == 0; {
		if time.Now().After(end) {
			t.Fatal("nothing was seen in any window")
		}
		p.do(t, "2000 100 0")
		if err := b.tick(); err != nil {
			t.Fatal(err)
		}
	}
}

// Who does not enter through the vDSO is told by what else is known of it: its calls.
func TestWhoDoesNotComeByIsToldByCalls(t *testing.T) {
	o := watching(t, On, 0, "sdk-elsewhere")
	o.enclu = func(uint32) (uint64, error) { return 1 << 20, nil } // where nothing is
	b := startWith(t, o)
	app := ready(t, b, sdkApp(t, "sdk-elsewhere"))
	before := scrape(t, b)
	if before["teescope_transition_probes_info{file=vdso,reason=,runtime=vdso,state=exact}"] != 1 {
		t.Fatal("no breakpoint is set")
	}
	n := numbers(t, app.do(t, "ecall 300 2 1"))
	scrape(t, b)                                                             // now it is asked
	b.now = func() time.Time { return time.Now().Add(2 * process.NameWait) } // by then it is known
	after := scrape(t, b)
	grown(t, before, after, ofApp("sdk-elsewhere", n[0], map[string]float64{"app_ocall_print": n[1], "app_ocall_read": n[2]}))
	for name := range after {
		if strings.Contains(name, "source=vdso") {
			t.Errorf("%s of a program that does not enter there", name)
		}
	}
}
