// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"maps"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// The Go mirrors have the size, and where it matters the offsets, of the C records in the object.
func TestLayoutIsTheObjects(t *testing.T) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	type member struct {
		name   string
		offset uintptr
	}
	for _, tt := range []struct {
		name    string
		size    uintptr
		members []member
	}{
		{"row", unsafe.Sizeof(row{}), []member{
			{"switches", unsafe.Offsetof(row{}.Switches)}, {"migrations", unsafe.Offsetof(row{}.Migrations)},
			{"run_ns", unsafe.Offsetof(row{}.RunNS)}, {"delay_ns", unsafe.Offsetof(row{}.DelayNS)},
			{"major_faults", unsafe.Offsetof(row{}.MajorFaults)}, {"exits", unsafe.Offsetof(row{}.Exits)},
			{"faults", unsafe.Offsetof(row{}.Faults)}, {"cache", unsafe.Offsetof(row{}.Cache)},
			{"llc_references", unsafe.Offsetof(row{}.LLCReferences)}, {"llc_misses", unsafe.Offsetof(row{}.LLCMisses)},
		}},
		{"row_time", unsafe.Sizeof(rowTime{}), nil},
		{"thread_counters", unsafe.Sizeof(threadCounters{}), nil},
		{"cpu_state", unsafe.Sizeof(cpuState{}), []member{
			{"pid", unsafe.Offsetof(cpuState{}.PID)}, {"switches", unsafe.Offsetof(cpuState{}.Switches)},
			{"start", unsafe.Offsetof(cpuState{}.Start)}, {"snapshot_switches", unsafe.Offsetof(cpuState{}.SnapshotSwitches)},
			{"inflight", unsafe.Offsetof(cpuState{}.Inflight)}, {"call", unsafe.Offsetof(cpuState{}.Call)}, {"regs", unsafe.Offsetof(cpuState{}.Regs)},
			{"run_times", unsafe.Offsetof(cpuState{}.RunTimes)},
		}},
		{"group_key", unsafe.Sizeof(groupKey{}), nil},
		{"group", unsafe.Sizeof(group{}), []member{
			{"ready", unsafe.Offsetof(group{}.Ready)}, {"tgid", unsafe.Offsetof(group{}.TGID)},
			{"base", unsafe.Offsetof(group{}.Base)}, {"watched", unsafe.Offsetof(group{}.Watched)},
			{"depth", unsafe.Offsetof(group{}.Depth)}, {"comm", unsafe.Offsetof(group{}.Comm)},
			{"path", unsafe.Offsetof(group{}.Path)},
		}},
		{"gauge", unsafe.Sizeof(gauge{}), []member{
			{"oldest_start", unsafe.Offsetof(gauge{}.OldestStart)}, {"oldest", unsafe.Offsetof(gauge{}.Oldest)},
		}},
		{"error_key", unsafe.Sizeof(errorKey{}), nil},
		{"control", unsafe.Sizeof(control{}), []member{
			{"timing_since", unsafe.Offsetof(control{}.TimingSince)}, {"sampled", unsafe.Offsetof(control{}.Sampled)},
			{"closed", unsafe.Offsetof(control{}.Closed)}, {"metering", unsafe.Offsetof(control{}.Metering)},
		}},
		{"run_time", unsafe.Sizeof(runTime{}), []member{{"ns", unsafe.Offsetof(runTime{}.NS)}}},
		{"pid_page", unsafe.Sizeof(pidPage{}), nil},
	} {
		var s *btf.Struct
		if err := spec.Types.TypeByName(tt.name, &s); err != nil {
			t.Errorf("struct %s: %v", tt.name, err)
			continue
		}
		if uintptr(s.Size) != tt.size {
			t.Errorf("struct %s has %d bytes, its mirror %d", tt.name, s.Size, tt.size)
		}
		for _, m := range tt.members {
			found := false
			for _, field := range s.Members {
				if field.Name == m.name {
					found = true
					if uintptr(field.Offset.Bytes()) != m.offset {
						t.Errorf("%s.%s is at %d, in its mirror at %d", tt.name, m.name, field.Offset.Bytes(), m.offset)
					}
				}
			}
			if !found {
				t.Errorf("struct %s has no member %s", tt.name, m.name)
			}
		}
	}
}

func TestCallName(t *testing.T) {
	for nr, want := range map[int]string{
		0: "read", 59: "execve", 202: "futex", 228: "clock_gettime", callCompat: "compat", callOther: "unknown", 500: "unknown",
	} {
		if got := callName(nr); got != want {
			t.Errorf("callName(%d) = %q, want %q", nr, got, want)
		}
	}
}

// A traced program makes calls that it never asked for; a call without a name counts all the same.
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
		{100, 0, 0, 100, 0},      // no tick yet: user, as the kernel has it
		{200, 0, 10, 100, 100},   // all ticks in the kernel: user stays
		{400, 30, 10, 300, 100},  // three to one
		{400, 30, 30, 300, 100},  // no run time: nothing changes
		{1000, 40, 60, 400, 600}, // two to three
		{900, 99, 1, 400, 600},   // run time never goes back
	} {
		c.divide(step.run, step.user, step.sys)
		if c.user != step.wantUser || c.system != step.wantSys {
			t.Errorf("after run %d: user %d system %d, want %d %d", step.run, c.user, c.system, step.wantUser, step.wantSys)
		}
	}
}

// A group that is promoted leaves what it has counted where it was counted, and both sums are right.
func TestPromotionMovesNoCounts(t *testing.T) {
	var group, other, own kept
	group.Calls[0], group.cpu.user, group.times.CallNS[3] = 100, 7, 9
	other.add(&group)
	own.subtract(&group)
	group.Calls[0], group.cpu.user, group.times.CallNS[3] = 130, 8, 9 // it goes on counting
	own.add(&group)
	if other.Calls[0] != 100 || own.Calls[0] != 30 || own.cpu.user != 1 || own.times.CallNS[3] != 0 {
		t.Errorf("other has %d calls, the promoted %d calls, %d ns of CPU and %d ns in calls; want 100, 30, 1, 0",
			other.Calls[0], own.Calls[0], own.cpu.user, own.times.CallNS[3])
	}
}
