// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"cmp"
	"slices"

	runs "github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/profile"
)

var (
	// faultEntries are the functions through which the kernel is entered for a page fault (arch/x86/mm/fault.c,
	// arch/arm64/kernel/entry-common.c).
	faultEntries = []string{"asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault", "el0_da", "el0_ia", "do_mem_abort"}
	// callEntries are those of system calls. A page fault in a system call is part of the time of the call.
	callEntries = []string{
		"entry_SYSCALL_64_after_hwframe", "entry_SYSCALL_64", "do_syscall_64", "x64_sys_call", "entry_SYSCALL_compat_after_hwframe", "do_int80_emulation",
		"el0_svc", "el0_svc_compat", "do_el0_svc", "invoke_syscall",
	}
	// loads are those that load an evicted page of an enclave, also in Intel's driver. sgx_load_back_seconds has their time.
	loads = []string{"sgx_encl_load_page", "__sgx_encl_load_page", "sgx_encl_load_page_in_vma", "sgx_encl_eldu", "sgx_eldu"}
)

// faults returns the CPU time of each workload in page faults outside of system calls, without that in which evicted pages
// of enclaves are loaded. It returns nothing if the value is not a time, or if no function of the kernel
// is known: then page faults and system calls look the same.
func faults(p *profile.Profile) (list []runs.WorkloadTime) {
	const other, fault, counted = 0, 1, 2 // elsewhere
	entries, known := make([]int, len(p.Frames)), false
	for i, f := range p.Frames {
		if !f.Kernel {
			continue
		}
		known = known || f.Resolved()
		switch {
		case slices.Contains(callEntries, f.Function), slices.Contains(loads, f.Function):
			entries[i] = counted
		case slices.Contains(faultEntries, f.Function):
			entries[i] = fault
		}
	}
	if !known || !p.Values[p.Main].IsTime() {
		return nil
	}
	seconds := map[string]float64{}
	for i := range p.Samples {
		s := &p.Samples[i]
		through := other
		for _, f := range s.Stack {
			through = max(through, entries[f])
		}
		ns := int64(0) // a workload without page faults is listed too
		if through == fault {
			ns = s.Values[p.Main]
		}
		seconds[p.Label(s, profile.Workload)] += float64(ns) / 1e9
	}
	for workload, v := range seconds {
		list = append(list, runs.WorkloadTime{Workload: workload, Seconds: v})
	}
	slices.SortFunc(list, func(a, b runs.WorkloadTime) int { return cmp.Compare(a.Workload, b.Workload) })
	return list
}
