// SPDX-License-Identifier: Apache-2.0

package driver

import "github.com/teescope/teescope/internal/lib/metric"

// watched are the families that require watching the in-tree driver.
type watched struct {
	augmented, faults, retries, loadBackTime *metric.Desc

	batches, scanned, scannedUsed, written, reclaimTime *metric.Desc

	startTime, encls, lost, difference, moved *metric.Desc

	vepcOpened, vepcReleased, vepcFaults *metric.Desc

	enclaveInfo, enclaveStart, enclaveThreads, enclaveWorkingSet          *metric.Desc
	enclaveAugmented, enclaveEvicted, enclaveLoadedBack, enclaveFaults    *metric.Desc
	workloadEnclaves, workloadSize, workloadResident, workloadPagedOut    *metric.Desc
	workloadWorkingSet, workloadCreated, workloadAdded, workloadAugmented *metric.Desc
	workloadEvicted, workloadLoadedBack, workloadFaults, evictedBy        *metric.Desc
}

// workloadLabels are the labels of every family about a workload, as in the collector system.
var workloadLabels = []string{"workload", "container", "pod", "namespace"}

func with(labels []string, more ...string) []string {
	return append(append([]string{}, labels...), more...)
}

func histogram(name, help, origin string, labels ...string) *metric.Desc {
	return metric.New(metric.Desc{
		Name: name, Kind: metric.Histogram, Unit: "seconds", Bounds: metric.Doubled(bucketShift, buckets-1), Help: help, Labels: labels, Source: metric.Kernel, Origin: origin,
	})
}

func newWatched() watched {
	w := watched{
		augmented: counter("sgx_epc_pages_augmented_total", "pages",
			"Pages added to running enclaves (EAUG, SGX2).", "sgx_mark_page_reclaimable in sgx_vma_fault"),
		faults: counter("sgx_epc_faults_total", "faults",
			"Page faults in enclaves that reached the driver, for pages that are evicted, not mapped yet or missing.", "sgx_vma_fault"),
		retries: counter("sgx_epc_fault_retries_total", "faults",
			"Faults of sgx_epc_faults_total that ended without the page and are retried, because the page was being evicted or no page was free.", "__sgx_encl_load_page"),
		loadBackTime: histogram("sgx_load_back_seconds",
			"Time that a thread waited for an evicted page in seconds: from the first fault on the page until it was loaded, including retries.",
			"sgx_vma_fault, sgx_encl_eldu"),
		batches: counter("sgx_reclaim_batches_total", "batches",
			"Batches of up to 16 pages that the driver scanned to evict some. by is ksgxd for the background thread, or direct for a thread that waits for a free page.",
			"sgx_reclaim_pages", "by"),
		scanned: counter("sgx_reclaim_pages_scanned_total", "pages",
			"Pages that the driver scanned for use, to evict the unused ones.", "sgx_encl_test_and_clear_young"),
		scannedUsed: counter("sgx_reclaim_pages_used_total", "pages",
			"Pages of sgx_reclaim_pages_scanned_total that were used since the last scan and therefore stay.", "sgx_encl_test_and_clear_young"),
		written: counter("sgx_reclaim_pages_written_total", "pages",
			"Pages evicted by batches. sgx_epc_pages_evicted_total also counts the control pages of enclaves.", "sgx_encl_ewb"),
		reclaimTime: histogram("sgx_reclaim_seconds",
			"Duration of a batch of evictions in seconds. With by=\"direct\" a thread waited for a free page in that time.", "sgx_reclaim_pages", "by"),
		startTime: histogram("sgx_enclave_start_seconds",
			"Time from an enclave's creation (ECREATE) to its initialization (EINIT) in seconds. Its pages are added and measured in that time.", "sgx_ioctl"),
		encls: counter("sgx_encls_total", "instructions",
			"ENCLS instructions by leaf and result, as far as they follow exactly from the driver's actions. EEXTEND: 16 for each measured page. EBLOCK: one for each evicted page except control pages. "+
				"ETRACK: only those for evictions. EWB: a failed one is retried after ETRACK, and again after the enclave's threads were interrupted. EREMOVE: only those of freed pages, "+
				"without guests' requests to remove all pages. Failures of other leaves are not counted.",
			fromDriver, "leaf", "result"),
		difference: gauge("sgx_count_difference_pages", "pages",
			"Pages in the SGX driver's own records minus the pages computed from the counted events. allocated are pages in use, since the agent started. evicted are pages of running enclaves that the agent has seen start. "+
				"0 while nothing pages, and a few while enclaves page. A growing difference means that the kernel's compiler has inlined functions of the driver, so the counts are too low.",
			"sgx_nr_free_pages; struct sgx_encl", "what"),
		moved: gauge("sgx_epc_read_moved_pages", "pages",
			"Pages that were allocated or freed while the states of sgx_epc_pages were read. The sum of the states may differ by this number from the size of the enclave page cache, and by the pages that the driver is evicting, up to 16 on each processor. The pages of virtual machines (vepc) are counted separately, and may differ by more.",
			fromDriver),
		lost: counter("sgx_attribution_lost_total", "events",
			"Events that could not be attributed. Enclaves without a record or a group count in the workload other. For evictions the workload that took the page is unknown.",
			"teescope", "what"),
		vepcOpened: counter("sgx_vepc_opened_total", "instances",
			"Virtual EPC instances opened for virtual machines.", "sgx_vepc_open"),
		vepcReleased: counter("sgx_vepc_released_total", "instances",
			"Virtual EPC instances released by virtual machines.", "sgx_vepc_release"),
		vepcFaults: counter("sgx_vepc_faults_total", "faults",
			"Page faults of virtual machines in their virtual EPC.", "sgx_vepc_fault"),
		evictedBy: counter("sgx_workload_pages_evicted_by_total", "pages",
			"Pages of a workload's enclaves that were evicted because enclaves of the workload by took pages. by is the workload that evicted directly, or the last workload that took a page before the driver evicted in the background.",
			"sgx_encl_ewb", with(workloadLabels, "by")...),
	}
	w.ofEnclaves()
	w.ofWorkloads()
	return w
}

func (w *watched) ofEnclaves() {
	enclave := []string{"enclave", "pid"}
	w.enclaveInfo = metric.New(metric.Desc{
		Name: "sgx_enclave_info", Kind: metric.Info, Source: metric.Kernel, Labels: with(enclave, with(workloadLabels, "debug", "seen")...),
		Help: "Always 1. The labels give the process that created the enclave and its workload. Other processes may map the enclave too. debug is true when its memory can be read from outside. " +
			"seen is created, or found for an enclave that is older than the agent. The counts of that one begin when the agent starts.",
		Origin: "sgx_ioctl; struct sgx_encl",
	})
	w.enclaveStart = gauge("sgx_enclave_start_time_seconds", "seconds",
		"Time when an enclave was created, in seconds since 1970. Its age is time() minus this value. Absent for enclaves older than the agent.", "sgx_ioctl", enclave...)
	w.enclaveThreads = gauge("sgx_enclave_threads", "threads",
		"Thread control structures (TCS) of an enclave: the maximum number of threads inside it at once. Absent for enclaves older than the agent.", "sgx_ioctl", enclave...)
	w.enclaveWorkingSet = gauge("sgx_enclave_working_set_bytes", "bytes",
		"Estimated enclave page cache that an enclave needs to stop paging: its resident pages, and those that are not resident but were loaded back in the last minute. Each page counts once; the first load after the enclave was built does not count. Above 16 MiB a part of the pages is followed. It is an upper bound, because without memory pressure the driver does not distinguish used pages from unused ones.",
		"struct sgx_encl; sgx_encl_eldu", enclave...)
	w.enclaveAugmented = counter("sgx_enclave_pages_augmented_total", "pages", "Pages added to one running enclave (EAUG).", "sgx_mark_page_reclaimable", enclave...)
	w.enclaveEvicted = counter("sgx_enclave_pages_evicted_total", "pages", "Pages evicted from one enclave (EWB).", "sgx_encl_ewb", enclave...)
	w.enclaveLoadedBack = counter("sgx_enclave_pages_loaded_back_total", "pages", "Evicted pages loaded back into one enclave (ELDU).", "sgx_encl_eldu", enclave...)
	w.enclaveFaults = counter("sgx_enclave_faults_total", "faults", "Page faults in one enclave that reached the driver.", "sgx_vma_fault", enclave...)
}

func (w *watched) ofWorkloads() {
	const enclaves = " the enclaves that the workload's processes created."
	gaugeOf := func(name, unit, help string) *metric.Desc {
		return gauge(name, unit, help+enclaves, "struct sgx_encl", workloadLabels...)
	}
	counterOf := func(name, unit, help, origin string) *metric.Desc {
		return counter(name, unit, help+enclaves, origin, workloadLabels...)
	}
	w.workloadEnclaves = gaugeOf("sgx_workload_enclaves", "enclaves", "Number of")
	w.workloadSize = gaugeOf("sgx_workload_size_bytes", "bytes", "Sum of the address ranges of")
	w.workloadResident = gaugeOf("sgx_workload_resident_bytes", "bytes", "Enclave page cache in use by")
	w.workloadPagedOut = gaugeOf("sgx_workload_paged_out_bytes", "bytes", "Evicted memory of")
	w.workloadWorkingSet = gaugeOf("sgx_workload_working_set_bytes", "bytes", "Sum of sgx_enclave_working_set_bytes over")
	w.workloadCreated = counter("sgx_workload_enclaves_created_total", "enclaves",
		"Enclaves that the workload's processes created (ECREATE).", "sgx_ioctl", workloadLabels...)
	w.workloadAdded = counterOf("sgx_workload_pages_added_total", "pages", "Pages added (EADD) to", "sgx_mark_page_reclaimable")
	w.workloadAugmented = counterOf("sgx_workload_pages_augmented_total", "pages", "Pages added at run time (EAUG) to", "sgx_mark_page_reclaimable")
	w.workloadEvicted = counterOf("sgx_workload_pages_evicted_total", "pages", "Pages evicted (EWB) from", "sgx_encl_ewb")
	w.workloadLoadedBack = counterOf("sgx_workload_pages_loaded_back_total", "pages", "Evicted pages loaded back (ELDU) into", "sgx_encl_eldu")
	w.workloadFaults = counterOf("sgx_workload_faults_total", "faults", "Page faults that reached the driver from", "sgx_vma_fault")
}

// all returns the descriptions in the order of the documentation.
func (w *watched) all() []*metric.Desc {
	return []*metric.Desc{
		w.augmented, w.faults, w.retries, w.loadBackTime,
		w.batches, w.scanned, w.scannedUsed, w.written, w.reclaimTime, w.startTime, w.encls, w.lost, w.difference, w.moved,
		w.vepcOpened, w.vepcReleased, w.vepcFaults,
		w.enclaveInfo, w.enclaveStart, w.enclaveThreads, w.enclaveWorkingSet,
		w.enclaveAugmented, w.enclaveEvicted, w.enclaveLoadedBack, w.enclaveFaults,
		w.workloadEnclaves, w.workloadSize, w.workloadResident, w.workloadPagedOut, w.workloadWorkingSet,
		w.workloadCreated, w.workloadAdded, w.workloadAugmented, w.workloadEvicted, w.workloadLoadedBack, w.workloadFaults,
		w.evictedBy,
	}
}
