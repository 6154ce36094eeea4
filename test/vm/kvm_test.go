// SPDX-License-Identifier: Apache-2.0

//go:build vm

package vm

import (
	"fmt"
	"strings"
	"testing"
)

// virtualMachines checks the counts of two virtual machines of a host whose processor is an emulated one of AMD. KVM is
// that of the kernel's package, and is loaded after the agent was confined.
func virtualMachines(t *testing.T, report report) {
	t.Helper()
	families := report.exposition(t, "virtual")
	t.Logf("the virtual machines took %s", report["took"])
	for i, vm := range []struct {
		name, vmm                 string
		cpuid, out, write, halted int // the arguments in the guest's scenario
	}{{"one", "qemu", 1000, 300, 200, 50}, {"two", "firecracker", 77, 500, 33, 11}} {
		if sum(families, "teescope_vm_info", "vm", vm.name, "vmm", vm.vmm, "tee", "none", "sandbox", "") != 1 {
			t.Errorf("%s has no info", vm.name)
		}
		var io, mmio, halt int
		var took float64
		if _, err := fmt.Sscan(report[fmt.Sprint("vm", i)], &io, &mmio, &halt, &took); err != nil {
			t.Fatal(err)
		}
		if io != vm.out+1 || mmio != vm.write || halt != vm.halted {
			t.Fatalf("%s's VMM has seen %d, %d and %d exits: the program is wrong", vm.name, io, mmio, halt)
		}
		for _, count := range []struct {
			family, reason string
			want           int
		}{
			{"teescope_vm_exits_total", "cpuid", vm.cpuid},
			{"teescope_vm_exits_total", "io", vm.out + 1}, // the last one ends it
			{"teescope_vm_exits_total", "hlt", vm.halted},
			{"teescope_vm_exits_total", "mmio", vm.write - 1},
			{"teescope_vm_exits_total", "shared_fault", 2}, // the page of the code, and the first write to the device
			{"teescope_vm_exits_total", "msr_read", 0},
			{"teescope_vm_exits_total", "error", 0},
			{"teescope_vm_userspace_exits_total", "io", vm.out + 1},
			{"teescope_vm_userspace_exits_total", "mmio", vm.write},
			{"teescope_vm_userspace_exits_total", "hlt", vm.halted},
			{"teescope_vm_userspace_exits_total", "error", 0},
		} {
			if got := int(sum(families, count.family, "vm", vm.name, "reason", count.reason)); got != count.want {
				t.Errorf("%s{vm=%q,reason=%q} = %d, want %d", count.family, vm.name, count.reason, got, count.want)
			}
		}
		// Only the page of the code is read, and nothing else is written.
		if got := sum(families, "teescope_vm_pages", "vm", vm.name, "size", "4k"); got != 1 {
			t.Errorf("%s has %v pages, want 1", vm.name, got)
		}
		// The VMM sleeps 2 ms in each of the first 20 exits, and one thread cannot be outside for longer than it runs.
		if got := sum(families, "teescope_vm_exit_seconds_total", "vm", vm.name, "reason", "io"); got < 0.04 {
			t.Errorf("%s was outside for %v s because of io, want 0.04 at least", vm.name, got)
		}
		if got := sum(families, "teescope_vm_exit_seconds_total", "vm", vm.name); got > took {
			t.Errorf("%s was outside for %v s of %v", vm.name, got, took)
		}
	}
	for _, m := range families["teescope_bpf_program_missed_runs_total"].GetMetric() {
		if program := m.Label[0].GetValue(); strings.HasPrefix(program, "vm/") && m.Counter.GetValue() != 0 {
			t.Errorf("%s missed %v events", program, m.Counter.GetValue())
		}
	}
}
