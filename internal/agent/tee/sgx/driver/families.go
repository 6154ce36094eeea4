// SPDX-License-Identifier: Apache-2.0

package driver

import "github.com/teescope/teescope/internal/lib/metric"

// Sources of the families.
const (
	fromNodes      = "/sys/devices/system/node/nodeN/x86/sgx_total_bytes"
	fromParameters = "/sys/module/{isgx,intel_sgx}/parameters"
	fromStats      = "/proc/sgx_stats"
	fromEnclaves   = "/proc/sgx_enclaves"
	fromDriver     = "in-tree driver"
)

// families are all families that the backend can emit.
type families struct {
	source *metric.Desc

	size, free, watermark, sections, pages *metric.Desc

	added, allocated, freed, evicted, loadedBack, reclaimed, markedOld, backingFreed *metric.Desc

	enclaves, created, initialized, released *metric.Desc

	enclaveSize, enclaveResident, enclavePagedOut, enclaveVersions, enclaveAdded *metric.Desc

	watched
}

func gauge(name, unit, help, origin string, labels ...string) *metric.Desc {
	return metric.New(metric.Desc{
		Name: name, Kind: metric.Gauge, Unit: unit, Help: help, Labels: labels, Source: metric.Kernel, Origin: origin,
	})
}

func counter(name, unit, help, origin string, labels ...string) *metric.Desc {
	return metric.New(metric.Desc{
		Name: name, Kind: metric.Counter, Unit: unit, Help: help, Labels: labels, Source: metric.Kernel, Origin: origin,
	})
}

func newFamilies() *families {
	const either = fromDriver + "; " + fromParameters + "; " + fromStats
	enclave := []string{"enclave", "pid"}
	return &families{
		source: metric.New(metric.Desc{
			Name: "sgx_source_info", Kind: metric.Info, Labels: []string{"source"}, Source: metric.Kernel,
			Help:   "Always 1. source is a source of SGX metrics that this machine has: node, ebpf (the in-tree driver, traced), isgx, intel_sgx, sgx_stats, sgx_enclaves, kprobe (functions of a driver that is a module). A metric that several sources have comes from the first of them in this order.",
			Origin: fromNodes + "; " + either + "; " + fromEnclaves,
		}),
		size: gauge("sgx_epc_size_bytes", "bytes",
			"Size of the enclave page cache, by NUMA node. node is empty when only the sum is known.", fromNodes+"; "+fromParameters+"; "+fromStats, "node"),
		free: gauge("sgx_epc_free_bytes", "bytes",
			"Free enclave page cache.", either+"; sgx_nr_free_pages"),
		watermark: gauge("sgx_epc_watermark_bytes", "bytes",
			"Free memory below which the driver starts to evict pages (mark low) and above which it stops (mark high).", fromParameters, "mark"),
		sections: gauge("sgx_epc_sections", "sections",
			"Number of sections of the enclave page cache.", "/sys/module/intel_sgx/parameters/sgx_nr_epc_sections"),
		pages: gauge("sgx_epc_pages", "pages",
			"Pages of the enclave page cache by state. free: free pages. enclave: resident pages of enclaves. secs: their control pages. version_array: versions of evicted pages. vepc: pages of virtual machines, absent before Linux 5.17 if a virtual EPC is older than the agent. The source sgx_stats has only version_array.", fromDriver+"; "+fromStats, "state"),

		added: counter("sgx_epc_pages_added_total", "pages",
			"Pages added to enclaves (EADD).", either),
		allocated: counter("sgx_epc_pages_allocated_total", "pages",
			"Pages allocated from the free pages, for any purpose.", either),
		freed: counter("sgx_epc_pages_freed_total", "pages",
			"Pages returned to the free pages, including evicted ones.", fromDriver+"; "+fromStats),
		evicted: counter("sgx_epc_pages_evicted_total", "pages",
			"Pages encrypted and written to main memory (EWB).", either),
		loadedBack: counter("sgx_epc_pages_loaded_back_total", "pages",
			"Evicted pages loaded back (ELDU).", either),
		reclaimed: counter("sgx_epc_pages_reclaimed_total", "pages",
			"Pages that the patched driver counts as reclaimed.", fromParameters+"/sgx_nr_reclaimed"),
		markedOld: counter("sgx_epc_pages_marked_old_total", "pages",
			"Pages found unused when the driver looked for some to evict.", fromParameters+"/sgx_nr_marked_old"),
		backingFreed: counter("sgx_backing_pages_freed_total", "pages",
			"Evicted pages that were dropped from main memory because their enclave ended.", fromStats),

		enclaves: gauge("sgx_enclaves", "enclaves",
			"Number of enclaves by state: initialized, uninitialized, or unknown when the driver does not export the state.",
			fromEnclaves+"; "+either, "state"),
		created: counter("sgx_enclaves_created_total", "enclaves",
			"Enclaves created (ECREATE).", fromDriver+"; "+fromStats),
		initialized: counter("sgx_enclaves_initialized_total", "enclaves",
			"Enclaves initialized (EINIT).", fromDriver+"; "+fromParameters+"/sgx_init_enclaves"),
		released: counter("sgx_enclaves_released_total", "enclaves",
			"Enclaves that ended.", fromDriver+"; "+fromStats),

		enclaveSize: gauge("sgx_enclave_size_bytes", "bytes",
			"Address range of one enclave. At most 64 enclaves have series. With the in-tree driver these are the oldest, and the others count only in their workload. With other drivers these are the largest, and the others count in the enclave other.", fromDriver+"; "+fromEnclaves, enclave...),
		enclaveResident: gauge("sgx_enclave_resident_bytes", "bytes",
			"Enclave page cache used by one enclave.", fromDriver+"; "+fromEnclaves, enclave...),
		enclavePagedOut: gauge("sgx_enclave_paged_out_bytes", "bytes",
			"Memory of one enclave that is evicted to main memory.", fromDriver+"; "+fromEnclaves, enclave...),
		enclaveVersions: gauge("sgx_enclave_version_array_bytes", "bytes",
			"Version array pages that one enclave needs for its evicted pages.", fromDriver+"; "+fromEnclaves, enclave...),
		enclaveAdded: counter("sgx_enclave_pages_added_total", "pages",
			"Pages added to one enclave (EADD), since the start of the agent. The enclave other has no series, because its sum could decrease.", fromDriver+"; "+fromEnclaves, enclave...),
		watched: newWatched(),
	}
}

// all returns the descriptions in the order of the documentation.
func (f *families) all() []*metric.Desc {
	return append([]*metric.Desc{
		f.source,
		f.size, f.free, f.watermark, f.sections, f.pages,
		f.added, f.allocated, f.freed, f.evicted, f.loadedBack, f.reclaimed, f.markedOld, f.backingFreed,
		f.enclaves, f.created, f.initialized, f.released,
		f.enclaveSize, f.enclaveResident, f.enclavePagedOut, f.enclaveVersions, f.enclaveAdded,
	}, f.watched.all()...)
}
