// SPDX-License-Identifier: Apache-2.0

package system

import (
	"maps"
	"testing"
)

func TestCallName(t *testing.T) {
	for nr, want := range map[int]string{
		0: "read", 59: "execve", 202: "futex", 228: "clock_gettime", callCompat: "compat", callOther: "unknown", 500: "unknown",
	} {
		if got := callName(nr); got != want {
			t.Errorf("callName(%d) = %q, want %q", nr, got, want)
		}
	}
}

// Calls that only tracing causes are omitted. Calls without a name are counted.
func TestCallsOfTracingAreNotTheProgramsOwn(t *testing.T) {
	by := [calls]uint64{0: 3, callUretprobe: 5, callUprobe: 7, callOther: 2}
	got := map[string]uint64{}
	eachCall(&by, func(name string, n uint64) { got[name] = n })
	if want := map[string]uint64{"read": 3, callUnknown: 2}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDivideGrowsAndSumsToTheRunTime(t *testing.T) {
	var c cpuTime
	for _, step := range []struct{ run, user, sys, wantUser, wantSys uint64 }{
		{100, 0, 0, 100, 0},      // no tick yet: all is user time, as in the kernel
		{200, 0, 10, 100, 100},   // all ticks in the kernel: user time stays
		{400, 30, 10, 300, 100},  // three to one
		{400, 30, 30, 300, 100},  // no run time: nothing changes
		{1000, 40, 60, 400, 600}, // two to three
		{900, 99, 1, 400, 600},   // run time never decreases
	} {
		c.divide(step.run, step.user, step.sys)
		if c.user != step.wantUser || c.system != step.wantSys {
			t.Errorf("after run %d: user %d system %d, want %d %d", step.run, c.user, c.system, step.wantUser, step.wantSys)
		}
	}
}

// The times of calls take 4 KB of each group and workload. Without a time there are none, and a copy is independent of the original.
func TestCountsHaveTimesOnlyIfCallsAreTimed(t *testing.T) {
	var untimed, timed, sum, copied counts
	untimed.call(0, 1)
	sum.add(&untimed)
	sum.copyTo(&copied)
	if untimed.times != nil || sum.times != nil || copied.times != nil || sum.callNS() != [calls]uint64{} {
		t.Error("counts that are not timed have times")
	}
	timed.times = &rowTime{}
	timed.times.CallNS[3] = 9
	sum.add(&timed)
	sum.copyTo(&copied)
	copied.add(&timed)
	if sum.callNS()[3] != 9 || copied.callNS()[3] != 18 {
		t.Errorf("the sum has %d ns and its changed copy %d, want 9 and 18", sum.callNS()[3], copied.callNS()[3])
	}
	if untimed.copyTo(&copied); copied.callNS()[3] != 0 {
		t.Errorf("a copy without times has %d ns", copied.callNS()[3])
	}
}

// The earlier counts of a promoted group stay in the folded workload, and both sums are right.
func TestPromotionMovesNoCounts(t *testing.T) {
	var group, other, own counts
	group.call(0, 100)
	group.cpu.user, group.times = 7, &rowTime{}
	group.times.CallNS[3] = 9
	other.add(&group)
	own.subtract(&group)
	group.call(0, 30) // it continues to count
	group.cpu.user, group.times.CallNS[3] = 8, 9
	own.add(&group)
	if other.Calls[0] != 100 || own.Calls[0] != 30 || own.cpu.user != 1 || own.times.CallNS[3] != 0 {
		t.Errorf("other has %d calls, the promoted %d calls, %d ns of CPU and %d ns in calls; want 100, 30, 1, 0",
			other.Calls[0], own.Calls[0], own.cpu.user, own.times.CallNS[3])
	}
}
