// SPDX-License-Identifier: Apache-2.0

package driver

import "github.com/teescope/teescope/internal/agent/bpf"

// The probes, by their names in the metric teescope_probe_attached.
const (
	probeRequest     = "sgx_request"
	probeRelease     = "sgx_release"
	probeAdded       = "sgx_page_added"
	probeLoadedBack  = "sgx_page_loaded_back"
	probeEvicted     = "sgx_page_evicted"
	probeEWB         = "sgx_ewb"
	probeAllocated   = "sgx_page_allocated"
	probeFreed       = "sgx_page_freed"
	probeReclaim     = "sgx_reclaim"
	probeReclaimed   = "sgx_reclaim_end"
	probeScanned     = "sgx_page_scanned"
	probeFault       = "sgx_fault"
	probeFaultEnd    = "sgx_fault_end"
	probeFaultBusy   = "sgx_fault_busy"
	probeVEPCOpen    = "sgx_vepc_open"
	probeVEPCRelease = "sgx_vepc_release"
	probeVEPCFault   = "sgx_vepc_fault"
	probeVEPCFound   = "sgx_vepc_found" // not a probe: one pass at the start
)

// entry returns the probe at the beginning of a function of the driver.
func entry(probe, function, program string) bpf.Probe {
	return bpf.Probe{Name: probe, Ways: entryWays(function, program, "")}
}

func entryWays(function, program, note string) []bpf.Way {
	return []bpf.Way{
		{Program: program + "_fentry", Mechanism: bpf.Fentry, Target: function, Note: note},
		{Program: program + "_kprobe", Mechanism: bpf.Kprobe, Target: function, Note: note},
	}
}

// exit returns the probe at the return of a function. With args, a program of that name keeps the arguments for
// the kretprobe.
func exit(probe, function, program string, args bool) bpf.Probe {
	return bpf.Probe{Name: probe, Ways: exitWays(function, program, args)}
}

func exitWays(function, program string, args bool) []bpf.Way {
	kretprobe := bpf.Way{Program: program + "_kretprobe", Mechanism: bpf.Kretprobe, Target: function}
	if args {
		kretprobe.Args = program + "_args"
	}
	return []bpf.Way{{Program: program + "_fexit", Mechanism: bpf.Fexit, Target: function}, kretprobe}
}

// lifeProbes see enclaves begin and end. They are attached first, because an enclave needs its record before its
// pages are counted, and must lose it when it ends.
func lifeProbes() []bpf.Probe {
	return []bpf.Probe{
		entry(probeRelease, "sgx_encl_release", "release"),
		exit(probeRequest, "sgx_ioctl", "ioctl", true), // sgx_encl_create and sgx_encl_init may be inlined, but this function is called by pointer
		entry(probeVEPCRelease, "sgx_vepc_release", "vepc_release"),
		exit(probeVEPCOpen, "sgx_vepc_open", "vepc_open", true),
	}
}

// pageProbes see events on pages.
func pageProbes() []bpf.Probe {
	loadedBack := exit(probeLoadedBack, "sgx_encl_eldu", "load_back", true)
	loadedBack.Ways = append(loadedBack.Ways, entryWays("sgx_mark_page_reclaimable", "listed_again",
		"does not count SECS pages: sgx_encl_eldu cannot be hooked")...)
	busy := exit(probeFaultBusy, "__sgx_encl_load_page", "load", true)
	busy.Ways = append(busy.Ways, exitWays("sgx_encl_load_page", "load_older", true)...) // up to Linux 5.19
	return []bpf.Probe{
		exit(probeAllocated, "sgx_alloc_epc_page", "alloc", true),
		entry(probeFreed, "sgx_free_epc_page", "free"),
		entry(probeAdded, "sgx_mark_page_reclaimable", "listed"), // every way of adding a page ends there
		entry(probeEvicted, "sgx_encl_ewb", "evict"),
		entry(probeEWB, "__sgx_encl_ewb", "ewb"),
		loadedBack,
		entry(probeReclaim, "sgx_reclaim_pages", "reclaim"),
		exit(probeReclaimed, "sgx_reclaim_pages", "reclaimed", false),
		exit(probeScanned, "sgx_encl_test_and_clear_young", "scan", true),
		entry(probeFault, "sgx_vma_fault", "fault"),
		exit(probeFaultEnd, "sgx_vma_fault", "fault_handled", false),
		busy,
		entry(probeVEPCFault, "sgx_vepc_fault", "vepc_fault"),
	}
}
