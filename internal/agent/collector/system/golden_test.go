// SPDX-License-Identifier: Apache-2.0

package system

import (
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/metric/metrictest"
)

var update = flag.Bool("update", false, "write the golden files again")

type noTable struct{}

func (noTable) Update(any, any, ebpf.MapUpdateFlags) error { return nil }
func (noTable) Delete(any) error                           { return nil }

// made returns a fake kernel side with two CPUs, eight slots and no programs.
func made(t *testing.T) *kernelSide {
	t.Helper()
	k := madeOf(t, 2, 8)
	k.times = make([]rowTime, len(k.rows))
	k.sums = newSums(k)
	return k
}

func madeOf(t testing.TB, cpus, slots int) *kernelSide {
	t.Helper()
	obj, err := bpf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	k := &kernelSide{
		object: obj, slots: slots, waits: true, cpus: make([]cpuState, cpus), rows: make([]row, cpus*slots),
		pids: make([]pidPage, 1), durations: distributions{watched: make([]watchedSlot, slots)}, gauges: make([]gauge, slots), blocks: make([]blockIO, slots), losses: make([]uint64, 6), controls: make([]control, 1),
		groups:       &attribution.Kernel{First: slotFirst, Records: make([]attribution.Record, slots), Keys: noTable{}},
		wholeCgroups: noTable{}, switches: newSwitches(&held{}, slog.New(slog.DiscardHandler)),
	}
	k.sums = newSums(k)
	for _, p := range probes(Options{SyscallTime: true}, preemption{}) {
		k.status = append(k.status, bpf.Status{Probe: p.Name, Mechanism: p.Ways[0].Mechanism})
	}
	k.status = append(k.status, bpf.Status{Probe: "llc_references", Mechanism: bpf.NotAttached, Reason: "no PMU on this machine"})
	for i := range k.cpus {
		k.cpus[i].PID = pidUnknown
	}
	return k
}

// count returns a row to count into, and marks it as the kernel side does.
func (k *kernelSide) count(cpu, slot int) *row {
	k.cpus[cpu].Touched[slot%marks] = 1
	return &k.rows[cpu*k.slots+slot]
}

// call counts system calls with a number in a row, as the kernel side does.
func (r *row) call(nr int, n uint64) {
	r.Calls[nr] += n
	r.Called[nr/callsPerMark] = 1
}

func (k *kernelSide) group(slot int, tgid uint32, comm string, path ...string) {
	g := &k.groups.Records[slot]
	g.Ready, g.TGID, g.Depth = 1, tgid, uint32(len(path))
	copy(g.Comm[:], comm)
	k.pids[0].Slot[tgid] = uint16(slot)
	for i, name := range path {
		copy(g.Path[i][:], name)
	}
}

// The exposition of known rows, with fake /proc, /dev and /sys, equals the golden file. Rewrite it with:
// go test ./internal/agent/collector/system -run Golden -update
func TestGoldenExposition(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"dev/sgx_enclave": "", "proc/77/maps": "7f0000000000-7f0010000000 rw-s 0 00:06 9 /dev/sgx_enclave\n",
		"proc/77/task/77/stat": "77 (redis-server) S" + strings.Repeat(" 1", 20) + "\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	k := made(t)
	k.group(slotFirst, 77, "redis-server", "docker-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope",
		"kubepods-pod0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9.slice", "kubepods.slice")
	k.group(slotFirst+1, 78, "tab\tand \xff")
	k.group(slotFirst+2, 79, "one too many")
	first, second := k.count(0, slotFirst), k.count(1, slotFirst)
	first.call(0, 5)
	for nr, n := range map[int]uint64{0: 7, callCompat: 3, 500: 2} {
		second.call(nr, n)
	}
	first.Switches, second.Switches = [2]uint64{10, 1}, [2]uint64{20, 2}
	first.RunNS, first.UserNS, first.SysNS, second.DelayNS = 4e9, 3e9, 1e9, 5e8
	first.Waits[0], second.Waits[0], second.Waits[waits-1] = 4, 3, 2
	first.Faults[0][0], first.Faults[0][6], second.Faults[1][2] = 11, 12, 13
	first.MinorFaults, first.MajorFaults, first.Migrations = 21, 22, 23
	first.Bytes, second.Bytes = [directions]uint64{bytesIn: 51}, [directions]uint64{1, 53}
	k.count(0, slotFirst+1).Bytes = [directions]uint64{54, 55} // of a process without an enclave
	first.Forks, first.Threads, first.Execs, second.Exits = 1, 2, 3, 4
	first.Cache = [cacheOps]uint64{31, 32, 33, 34}
	k.times[slotFirst].CallNS[0] = 1_500_000_000
	k.blocks[slotFirst].Requests[blockRead][3], k.blocks[slotFirst].Requests[blockRead][blockBuckets-1] = 5, 1
	k.blocks[slotFirst].NS[blockRead], k.blocks[slotFirst].Bytes[blockRead] = 9_000_000_000, 24576
	k.gauges[slotFirst] = gauge{Processes: 2, Threads: 9, RSSPages: 100}
	k.count(0, slotFirst+1).call(39, 1)
	k.count(0, slotFirst+2).call(39, 1)
	k.count(0, slotOther).call(39, 40)
	k.losses[0] = 6

	c := New(Options{MaxWorkloads: 2, Proc: filepath.Join(root, "proc"), Log: slog.New(slog.DiscardHandler)})
	c.kernel, c.slots = k, newSlots(k, 2, nil)
	c.members.detector = tee.NewDetector(tee.Roots{Proc: filepath.Join(root, "proc"), Dev: filepath.Join(root, "dev"), Sys: filepath.Join(root, "sys")}, nil)
	c.slots.Adopt(time.Now())
	c.slots.read()
	c.slots.Get(slotFirst).durations = durations{0: {Calls: [durationBuckets]uint64{2: 3, durationBuckets - 1: 1}, NS: 20_000_000_000}, callUprobe: {NS: 1}}
	got := exposition(t, c)
	const golden = "testdata/exposition.golden"
	metrictest.Golden(t, golden, got, *update)
}

func exposition(t *testing.T, c *Collector) []byte {
	t.Helper()
	return metrictest.Text(t, func(emit func(prometheus.Metric)) { c.emit(emit) })
}
