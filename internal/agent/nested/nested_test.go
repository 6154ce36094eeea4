// SPDX-License-Identifier: Apache-2.0

package nested

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/executable/executabletest"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// program compiles the program that knows its calls.
func program(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "calls")
	if out, err := exec.Command("gcc", "-O2", "-pthread", "-o", name, "testdata/calls.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// found returns functions of a program.
func found(t *testing.T, name string, names ...string) (*os.File, []Function) {
	t.Helper()
	file, program := executabletest.Open(t, name)
	functions, err := Find(hostfs.At("/proc"), program, names)
	if err != nil {
		t.Fatal(err)
	}
	return file, functions
}

// timed runs the program with a mode and a number of calls, and returns the figures of its functions and what it wrote.
func timed(t *testing.T, name string, costs Costs, mode string, n int, names ...string) (Times, string) {
	t.Helper()
	file, functions := found(t, name, names...)
	timer, err := Open(Options{File: file, Functions: functions, Costs: costs, Ancestor: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := timer.Close(); err != nil {
			t.Error(err)
		}
	}()
	out, err := exec.Command(name, mode, fmt.Sprint(n)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := timer.Stop(); err != nil {
		t.Fatal(err)
	}
	return timer.Read(), string(out)
}

func costs(t *testing.T) Costs {
	t.Helper()
	c, err := Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", c)
	for _, k := range []Cost{c.Emulated, c.Stepped} {
		if k.Inside <= 0 || k.Whole <= k.Inside || k.Low > k.Whole || k.High < k.Whole {
			t.Errorf("probes cost %v within a call and %v around it", k.Inside, k.Whole)
		}
	}
	return c
}

// A process that may not create maps gets an error.
func TestOpenWithoutPrivileges(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root has the privileges")
	}
	file, functions := found(t, program(t), "empty")
	if timer, err := Open(Options{File: file, Functions: functions}); timer != nil || err == nil {
		t.Errorf("%v, %v", timer, err)
	}
}

// Calls of four threads: numbers are exact, and times are between what the function and its caller have measured.
func TestTimesAreThoseOfTheProgram(t *testing.T) {
	const n = 500
	all, out := timed(t, program(t), Costs{}, "threads", n, "root", "child", "grandchild", "empty")
	var own time.Duration
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var name string
		var calls uint64
		var inside, outside time.Duration
		if _, err := fmt.Sscan(line, &name, &calls, &inside, &outside); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		f := all.Functions[i]
		if f.Name != name || f.Calls != calls || f.Calls != 4*n || f.Outermost != calls {
			t.Errorf("%s: %d calls, %d outermost, of %d", f.Name, f.Calls, f.Outermost, calls)
		}
		if f.Total < inside || f.Total > outside {
			t.Errorf("%s: %v, of which the program spent at least %v and at most %v there", f.Name, f.Total, inside, outside)
		}
		if median := f.Quantile(0.5); median < 0.85*float64(inside)/float64(calls) && median < []float64{40000, 30000, 20000}[i] {
			t.Errorf("%s: the median is %v ns", f.Name, median)
		}
		own += f.Own
	}
	root, child, grandchild := all.Functions[0], all.Functions[1], all.Functions[2]
	if own != root.Total {
		t.Errorf("own times add up to %v of %v", own, root.Total)
	}
	if child.Caller != "root" || child.Within != child.Total || grandchild.Caller != "child" || grandchild.Within != grandchild.Total || root.Caller != "" {
		t.Errorf("callers: %q of %v, %q of %v", child.Caller, child.Within, grandchild.Caller, grandchild.Within)
	}
	if none := all.Functions[3]; none.Calls != 0 || none.Total != 0 || none.Caller != "" {
		t.Errorf("a function that is not called has %+v", none)
	}
	if all.Lost != (Lost{}) {
		t.Errorf("lost: %+v", all.Lost)
	}
}

// The cost of each probe within a time is subtracted exactly.
func TestCostOfProbesIsSubtracted(t *testing.T) {
	const n = 200
	c := Cost{Inside: 10, Whole: 30} // less than any call takes
	all, _ := timed(t, program(t), Costs{c, c}, "many", n, "many", "empty")
	if many, empty := all.Functions[0], all.Functions[1]; many.Probes != n*(10+100*30) || empty.Probes != n*100*10 || many.Own != many.Total-empty.Total {
		t.Errorf("%v and %v were subtracted", many.Probes, empty.Probes)
	}
}

// All calls of the empty functions are counted, which Measure requires itself. It runs on the stock kernels too (test/vm).
func TestMeasure(t *testing.T) { costs(t) }

// The measured cost is that of the calls of an empty function. Programs beside it make those slower and not faster.
func TestMeasuredCost(t *testing.T) {
	c := costs(t)
	all, _ := timed(t, program(t), Costs{}, "many", 200, "many", "empty")
	if raw := time.Duration(all.Functions[0].Quantile(0.5) / 100); c.Emulated.Low > 2*raw {
		t.Errorf("a probe costs at least %v, and 100 empty calls with probes take %v each", c.Emulated.Low, raw)
	}
}

// The time of a recursive function is that of its outermost calls, so it cannot be longer than the time of the function around
// it.
func TestRecursion(t *testing.T) {
	all, _ := timed(t, program(t), Costs{}, "recursive", 10, "around_recursive", "recursive")
	outer, f := all.Functions[0], all.Functions[1]
	if f.Calls != 60 || f.Outermost != 10 || f.Total > outer.Total || f.Own != f.Total || f.Caller != "around_recursive" {
		t.Errorf("%+v within %v", f, outer.Total)
	}
}

// Calls that are too deep are not timed, but counted.
func TestDeepCalls(t *testing.T) {
	all, _ := timed(t, program(t), Costs{}, "deep", 10, "around_recursive", "recursive")
	const deepest = maxDepth - 1 // besides the root
	if f := all.Functions[1]; f.Calls != 10*deepest || all.Lost.Deep != 10*(21-deepest) || all.Functions[0].Calls != 10 {
		t.Errorf("%d calls, %+v", f.Calls, all.Lost)
	}
}

// A call that longjmp leaves is in no figure. The figures of the calls around it are right.
func TestLongjmp(t *testing.T) {
	all, _ := timed(t, program(t), Costs{}, "jumps", 10, "around_jumps", "jumps", "empty")
	if n := all.Functions; n[0].Calls != 10 || n[1].Calls != 0 || n[2].Calls != 10 || n[2].Caller != "around_jumps" || all.Lost != (Lost{Unwound: 10}) {
		t.Errorf("%+v", all)
	}
}

// A function that ends by a jump to another one returns together with it.
func TestTailCall(t *testing.T) {
	all, _ := timed(t, program(t), Costs{}, "tail", 10, "around_tail", "tail", "empty")
	if n := all.Functions; n[0].Calls != 10 || n[1].Calls != 10 || n[2].Calls != 10 || n[2].Caller != "tail" || all.Lost != (Lost{}) {
		t.Errorf("%+v", all)
	}
}

// The kernel puts its return addresses elsewhere if the addresses of a process are not random.
func TestTailCallAtFixedAddresses(t *testing.T) {
	name := program(t)
	file, functions := found(t, name, "around_tail", "tail", "empty")
	timer, err := Open(Options{File: file, Functions: functions, Ancestor: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = timer.Close() }()
	if out, err := exec.Command("setarch", "-R", name, "tail", "10").CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	if err := timer.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := timer.Read(); n.Functions[1].Calls != 10 || n.Functions[2].Caller != "tail" || n.Lost != (Lost{}) {
		t.Errorf("%+v", n)
	}
}

// A call that does not return has the time up to the last event of its thread. So own times add up, and no share is above 1.
func TestCallsThatDoNotReturn(t *testing.T) {
	name := program(t)
	for _, c := range []struct {
		mode  string
		names []string
		lost  Lost
		calls [3]uint64
	}{
		{"late", []string{"late", "jumps_late", "grandchild"}, Lost{Unwound: 10}, [3]uint64{10, 0, 10}},
		{"ends", []string{"ends", "grandchild"}, Lost{Open: 1}, [3]uint64{0, 2}},
		{"mutual", []string{"leaves_mutual", "mutual", "other_of_mutual"}, Lost{Unwound: 70}, [3]uint64{10, 0, 0}},
	} {
		all, _ := timed(t, name, Costs{}, c.mode, 10, c.names...)
		root, own := all.Functions[0], time.Duration(0)
		for i, f := range all.Functions {
			own += f.Own
			if f.Calls != c.calls[i] || f.Total > root.Total || f.Total < 20*time.Microsecond || f.Calls == 0 && f.Finished != 0 {
				t.Errorf("%s: %+v within %v", c.mode, f, root.Total)
			}
			if i > 0 && f.Calls > 0 && f.Within > all.Functions[i-1].Total {
				t.Errorf("%s: %s has %v of the %v of its caller", c.mode, f.Name, f.Within, all.Functions[i-1].Total)
			}
		}
		if own != root.Total || all.Lost != c.lost {
			t.Errorf("%s: own times add up to %v of %v, %+v", c.mode, own, root.Total, all.Lost)
		}
	}
}

// A call is counted as lost if another thread has taken the place of its thread.
func TestCallsOfMoreThreadsThanPlacesAreKnown(t *testing.T) {
	const n = 3 * threads
	all, _ := timed(t, program(t), Costs{}, "crowd", n, "crowd")
	if seen := all.Functions[0].Calls + all.Lost.Unpaired + all.Lost.Open; seen != n+1 || all.Functions[0].Calls < n {
		t.Errorf("%d calls of %d, %+v", all.Functions[0].Calls, n+1, all.Lost)
	}
}

// The probes of each function have the cost of its own first instruction, also if a name stands for several functions.
func TestCostIsThatOfEachFunction(t *testing.T) {
	all, _ := timed(t, program(t), Costs{Cost{Inside: 1, Whole: 3}, Cost{Inside: 10, Whole: 30}}, "both", 10, "both", "pushes|subtracts")
	if probes := all.Functions[1].Probes; probes != 10*(1+10+10) {
		t.Errorf("%v were subtracted from %d calls", probes, all.Functions[1].Calls)
	}
	if probes := all.Functions[0].Probes; probes != 10*(3+30+30)+10*1 && probes != 10*(3+30+30)+10*10 {
		t.Errorf("%v were subtracted from the calls around them", probes)
	}
}

// A call takes at least as long as the timed calls within it, also if the cost of their probes was measured as too high.
func TestNoShareIsAboveTheWhole(t *testing.T) {
	c := Cost{Whole: time.Minute}
	all, _ := timed(t, program(t), Costs{c, c}, "threads", 50, "root", "child", "grandchild")
	own, root := time.Duration(0), all.Functions[0]
	for _, f := range all.Functions {
		own += f.Own
		if f.Total == 0 || f.Total > root.Total {
			t.Errorf("%s has %v of the %v of its root", f.Name, f.Total, root.Total)
		}
	}
	if own != root.Total {
		t.Errorf("own times add up to %v of %v", own, root.Total)
	}
}

// Other processes that run the same program are in no figure.
func TestOtherProcessesAreNotTimed(t *testing.T) {
	name := program(t)
	file, functions := found(t, name, "many")
	timer, err := Open(Options{File: file, Functions: functions, Process: 1, Ancestor: 0})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = timer.Close() }()
	if err := exec.Command(name, "many", "100").Run(); err != nil {
		t.Fatal(err)
	}
	if n := timer.Calls(); n != 0 {
		t.Errorf("%d calls of another process", n)
	}
}

func TestFind(t *testing.T) {
	name := program(t)
	_, program := executabletest.Open(t, name)
	proc := hostfs.At("/proc")
	for _, c := range []struct {
		names []string
		count []int
		err   string
	}{
		{names: []string{"root", "(grand)?child"}, count: []int{1, 2}},
		{names: []string{"root", "child", "(grand)?child"}, count: []int{1, 1, 1}},
		{names: []string{"around_.*"}, count: []int{3}},
		{names: []string{"chil"}, err: "no function chil: it may be inlined, in a library, or the file is stripped. It has "},
		{names: []string{"child", "child"}, err: "all functions that match child match an earlier name already"},
		{names: []string{"root", "savectx"}, err: "savectx uses its return address"},
		{names: []string{"root", "save.*"}, err: "savectx uses its return address"},
		{names: []string{"("}, err: `"(" is not a name or a regular expression`},
		{names: make([]string, 17), err: "17 functions: at most 16"},
	} {
		functions, err := Find(proc, program, c.names)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %v", c.names, err)
			}
			continue
		}
		if err != nil || len(functions) != len(c.count) {
			t.Errorf("%q: %v", c.names, err)
			continue
		}
		for i, n := range c.count {
			if len(functions[i].Points) != n || functions[i].Name != c.names[i] {
				t.Errorf("%q: %+v", c.names, functions)
			}
		}
	}
}

// Returns of Go programs have no probes: the runtime would end the program.
func TestGoProgramsAreRefused(t *testing.T) {
	_, program := executabletest.Open(t, "/proc/self/exe")
	if _, err := Find(hostfs.At("/proc"), program, []string{"main.main"}); err == nil || !strings.Contains(err.Error(), "Go program") {
		t.Error(err)
	}
}

// Quantiles are those of the times themselves, within a bucket.
func TestQuantile(t *testing.T) {
	for b := range buckets {
		if low, high := bound(b), bound(b+1); high <= low || low >= 8 && high-low > low/8 {
			t.Errorf("bucket %d is from %v to %v", b, low, high)
		}
	}
	f := Time{histogram: make([]uint64, buckets)}
	if q := f.Quantile(0.5); q == q {
		t.Errorf("the median of nothing is %v", q)
	}
	for ns := range 1000 {
		for b := range buckets {
			if float64(ns) >= bound(b) && float64(ns) < bound(b+1) {
				f.histogram[b]++
			}
		}
	}
	for _, q := range []float64{0.01, 0.1, 0.5, 0.9, 0.99, 1} {
		if got := f.Quantile(q); got < 1000*q*7/8 || got > 1000*q*9/8+1 {
			t.Errorf("quantile %v of the numbers below 1000 is %v", q, got)
		}
	}
}
