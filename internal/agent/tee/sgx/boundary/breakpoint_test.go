// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/waittest"
)

// startDoorway starts and watches a program that executes an instruction of its own instead of the one in the vDSO.
func startDoorway(t *testing.T, mode Mode, budget int) (*Backend, *target) {
	t.Helper()
	o := watching(t, mode, budget, "erthost")
	address := uint64(0)
	o.enclu = func(uint32) (uint64, error) { return address, nil }
	b := startWith(t, o)
	// -no-pie fixes the address: it stays the same after the program has executed itself.
	p := run(t, build(t, filepath.Join(t.TempDir(), "erthost"), "-no-pie", "-fno-pie", "testdata/doorway.c", "-lpthread"))
	address = uint64(numbers(t, p.answer(t))[0])
	untilSet(t, b)
	return b, p
}

// untilSet waits until a breakpoint is set.
func untilSet(t *testing.T, b *Backend) {
	t.Helper()
	waittest.Until(t, "a breakpoint", func() bool {
		look(t, b)
		return scrape(t, b)["teescope_transition_probes_info{file=vdso,reason=,runtime=vdso,state=exact}"] == 1
	})
}

// execute lets a program execute itself, and waits until it has breakpoints again.
func execute(t *testing.T, b *Backend, p *target, series string) {
	t.Helper()
	p.do(t, "1 1 4")
	untilEntered(t, b, p, series)
}

// untilEntered waits until a program has breakpoints. An entry of each of its four threads shows that.
func untilEntered(t *testing.T, b *Backend, p *target, series string) {
	t.Helper()
	waittest.Until(t, "breakpoints in the program", func() bool {
		look(t, b)
		before := scrape(t, b)[series]
		p.do(t, "1 0 1")
		n := scrape(t, b)[series] - before
		if n != 0 && n != 4 {
			t.Fatalf("%v of 4 entries are counted", n)
		}
		return n == 4
	})
}

const (
	entered = "teescope_enclave_transitions_total{kind=eenter,source=vdso_breakpoint,workload=erthost}"
	exited  = "teescope_enclave_transitions_total{kind=eexit,source=vdso_breakpoint,workload=erthost}"
	aexed   = "teescope_enclave_transitions_total{kind=aex,source=vdso_breakpoint,workload=erthost}"
)

// Entries are counted once in every thread that existed, in every later thread, and in children.
func TestEntriesAreCountedInAllThatDescends(t *testing.T) {
	b, p := startDoorway(t, modeOn, 0)
	for where, times := range []float64{1, 4, 4, 2} {
		before := scrape(t, b)
		p.do(t, "500 70 %d", where)
		look(t, b) // a child that is found gets no second breakpoint
		grown(t, before, scrape(t, b), map[string]float64{entered: 500 * times, exited: 500 * times, aexed: 70 * times})
	}
	execute(t, b, p, entered)
	before := scrape(t, b)
	p.do(t, "30 20 1")
	grown(t, before, scrape(t, b), map[string]float64{entered: 30 * 4, aexed: 20 * 4})
}

// Above the budget the breakpoints are detached until a window begins.
func TestEntriesAreSampledAboveTheBudget(t *testing.T) {
	b, p := startDoorway(t, modeAuto, 100)
	p.do(t, "2000 100 1")
	if err := b.tick(); err != nil { // once: the next tick may open a window
		t.Fatal(err)
	}
	before := scrape(t, b)
	if before["teescope_transition_probes_info{file=vdso,reason=,runtime=vdso,state=sampled}"] != 1 || before[entered] != 4*2000 {
		t.Errorf("%v entries are counted immediately, above a budget of 100: %v", before[entered], before)
	}
	p.do(t, "5000 100 2")
	grown(t, before, scrape(t, b), map[string]float64{entered: 0, "teescope_transition_probe_cost_total{file=vdso,runtime=vdso}": 0})
	sampled := strings.Replace(entered, "breakpoint", "breakpoint_sampled", 1)
	waittest.Until(t, "entries in a window", func() bool {
		p.do(t, "2000 100 0")
		if err := b.tick(); err != nil {
			t.Fatal(err)
		}
		return scrape(t, b)[sampled] > 0
	})
}

// A process in which no breakpoint can be set leaves others theirs, whether it is found before or after them.
func TestAProcessWithoutBreakpointsLeavesOthersTheirs(t *testing.T) {
	o := watching(t, modeOn, 0, "erthost")
	addresses := map[uint32]uint64{}
	o.enclu = func(tgid uint32) (uint64, error) {
		if a := addresses[tgid]; a != 0 {
			return a, nil
		}
		return 1 << 63, nil // the kernel's part of the address space
	}
	b := startWith(t, o)
	path := build(t, filepath.Join(t.TempDir(), "erthost"), "-no-pie", "-fno-pie", "testdata/doorway.c", "-lpthread")
	refused := func() {
		run(t, path).answer(t)
		look(t, b)
	}
	refused()
	for name := range scrape(t, b) {
		if strings.Contains(name, "file=vdso") && !strings.Contains(name, "state=none") && strings.HasPrefix(name, "teescope_transition_probes_info") {
			t.Errorf("%s although no breakpoint is set", name)
		}
	}
	for range 2 {
		p := run(t, path)
		addresses[uint32(p.Process.Pid)] = uint64(numbers(t, p.answer(t))[0])
		untilEntered(t, b, p, entered)
		refused()
		before := scrape(t, b)
		p.do(t, "500 70 1")
		grown(t, before, scrape(t, b), map[string]float64{entered: 500 * 4, exited: 500 * 4, aexed: 70 * 4})
	}
}

// The reason why a process has no breakpoints is forgotten when it has ended.
func TestTheReasonOfAnEndedProcessIsForgotten(t *testing.T) {
	o := watching(t, modeOn, 0, "erthost")
	address := uint64(1 << 63) // the kernel's part of the address space
	o.enclu = func(uint32) (uint64, error) { return address, nil }
	b := startWith(t, o)
	path := build(t, filepath.Join(t.TempDir(), "erthost"), "-no-pie", "-fno-pie", "testdata/doorway.c", "-lpthread")
	refused := run(t, path)
	refused.answer(t)
	look(t, b)
	const known = "teescope_transition_probes_info{file=vdso,reason="
	reasons := func() (n int) {
		for name := range scrape(t, b) {
			if strings.HasPrefix(name, known) && !strings.HasPrefix(name, known+",") {
				n++
			}
		}
		return n
	}
	if reasons() != 1 {
		t.Fatal("no reason is stated for a process without breakpoints")
	}
	_ = refused.Process.Kill()
	_ = refused.Wait() // it was killed
	p := run(t, path)
	address = uint64(numbers(t, p.answer(t))[0])
	untilSet(t, b)
	if n := reasons(); n != 0 {
		t.Errorf("%d reasons are stated for processes that have all breakpoints", n)
	}
}

// Transitions of a process that does not enter through the vDSO are derived from its calls.
func TestProcessesThatDoNotUseTheVDSOAreCountedByCalls(t *testing.T) {
	o := watching(t, modeOn, 0, "sdk-elsewhere")
	o.enclu = func(uint32) (uint64, error) { return 1 << 20, nil } // an address without code
	b := startWith(t, o)
	app := ready(t, b, sdkApp(t, "sdk-elsewhere"))
	untilSet(t, b)
	before := scrape(t, b)
	n := numbers(t, app.do(t, "ecall 300 2 1"))
	scrape(t, b)                                                         // the first scrape starts the wait
	b.now = func() time.Time { return time.Now().Add(20 * time.Second) } // the wait is over
	after := scrape(t, b)
	grown(t, before, after, ofApp("sdk-elsewhere", n[0], map[string]float64{"app_ocall_print": n[1], "app_ocall_read": n[2]}))
	for name := range after {
		if strings.Contains(name, "source=vdso") {
			t.Errorf("%s of a program that does not enter through the vDSO", name)
		}
	}
}
