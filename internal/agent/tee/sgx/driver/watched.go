// SPDX-License-Identifier: Apache-2.0

package driver

import "github.com/teescope/teescope/internal/lib/metric"

// watched are the families that only the in-tree driver has, and only while it is watched.
type watched struct {
	augmented, faults, retries, loadBackTime *metric.Desc

	batches, scanned, scannedUsed, written, reclaimTime *metric.Desc

	startTime, encls, lost *metric.Desc

	vepcOpened, vepcReleased, vepcFaults *metric.Desc

	enclaveInfo, enclaveStart, enclaveThreads, enclaveWorkingSet          *metric.Desc
	enclaveAugmented, enclaveEvicted, enclaveLoadedBack, enclaveFaults    *metric.Desc
	workloadEnclaves, workloadSize, workloadResident, workloadPagedOut    *metric.Desc
	workloadWorkingSet, workloadCreated, workloadAdded, workloadAugmented *metric.Desc
	workloadEvicted, workloadLoadedBack, workloadFaults, evictedBy        *metric.Desc
}

// workloadLabels are on every family about a workload, as in the collector system.
var workloadLabels = []string{"workload", "container", "pod", "namespace"}

func with(labels []string, more ...string) []string {
	return append(append([]string{}, labels...), more...)
}

func histogram(name, help, origin string, labels ...string) *metric.Desc {
	return metric.New(metric.Desc{
		Name: name, Kind: metric.Histogram, Unit: "seconds", Help: help, Labels: labels, Source: metric.Kernel, Origin: origin,
	})
}

func newWatched() watched {
	w := watched{
		augmented: counter("sgx_epc_pages_augmented_total", "pages",
			"Pages added to enclaves that run (EAUG, SGX2).", "sgx_mark_page_reclaimable in sgx_vma_fault"),
		faults: counter("sgx_epc_faults_total", "faults",
			"Page faults in enclaves that reached the driver: for pages that are evicted, not mapped yet or not there.", "sgx_vma_fault"),
		retries: counter("sgx_epc_fault_retries_total", "faults",
			"Of sgx_epc_faults_total, those that ended without the page, to be tried again: it was being evicted, or no page was free.", "__sgx_encl_load_page"),
		loadBackTime: histogram("sgx_load_back_seconds",
			"How long a thread stood still for an evicted page: from its first fault on the page until it was loaded, retries included.",
			"sgx_vma_fault, sgx_encl_eldu"),
		batches: counter("sgx_reclaim_batches_total", "batches",
			"Batches of up to 16 pages that the driver looked at to evict some: by ksgxd in the background, or direct, by a thread that needs a page and waits.",
			"sgx_reclaim_pages", "by"),
		scanned: counter("sgx_reclaim_pages_scanned_total", "pages",
			"Pages that the driver asked whether they were used, to evict them if not.", "sgx_encl_test_and_clear_young"),
		scannedUsed: counter("sgx_reclaim_pages_used_total", "pages",
			"Of sgx_reclaim_pages_scanned_total, those that were used since they were asked last, and stay.", "sgx_encl_test_and_clear_young"),
		written: counter("sgx_reclaim_pages_written_total", "pages",
			"Pages that batches have evicted. sgx_epc_pages_evicted_total counts the enclaves' control pages too.", "sgx_encl_ewb"),
		reclaimTime: histogram("sgx_reclaim_seconds",
			"How long a batch of evictions took; by=\"direct\" is time that a thread stood waiting for a free page.", "sgx_reclaim_pages", "by"),
		startTime: histogram("sgx_enclave_start_seconds",
			"From an enclave's creation (ECREATE) to its initialization (EINIT): adding and measuring its pages.", "sgx_ioctl"),
		encls: counter("sgx_encls_total", "instructions",
			"ENCLS instructions by leaf, those that follow exactly from what the driver does. EEXTEND is 16 for each measured page; EBLOCK one for each evicted page but control pages; "+
				"ETRACK that for evictions; a failed EWB is tried again after ETRACK, and once more when the enclave's threads were driven out; EREMOVE is that of pages that were freed: "+
				"guests' requests to remove all are not in it. Failed ones of other leaves do not follow exactly.",
			fromDriver, "leaf", "result"),
		lost: counter("sgx_attribution_lost_total", "events",
			"What could not be attributed: enclaves without a record of their own, or without a group, which count into the workload other, and evictions of which is not known for whom.",
			"teescope", "what"),
		vepcOpened: counter("sgx_vepc_opened_total", "instances",
			"Pieces of enclave page cache made for virtual machines.", "sgx_vepc_open"),
		vepcReleased: counter("sgx_vepc_released_total", "instances",
			"Pieces of enclave page cache that virtual machines gave back.", "sgx_vepc_release"),
		vepcFaults: counter("sgx_vepc_faults_total", "faults",
			"Page faults of virtual machines in their enclave page cache.", "sgx_vepc_fault"),
		evictedBy: counter("sgx_workload_pages_evicted_by_total", "pages",
			"Pages that a workload's enclaves lost because those of the workload `by` took pages: the one that evicted directly, or the one that took a page last when the driver evicted in the background.",
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
		Help: "Always 1; whose enclave it is: the process that created it and its workload, whoever maps it too. debug tells whether its memory may be read from outside; " +
			"seen is created, or found when it was there before the agent, and has counts since then.",
		Origin: "sgx_ioctl; struct sgx_encl",
	})
	w.enclaveStart = gauge("sgx_enclave_start_time_seconds", "seconds",
		"When an enclave was created, since 1970; its age is time() less this. Absent for one that was there before the agent.", "sgx_ioctl", enclave...)
	w.enclaveThreads = gauge("sgx_enclave_threads", "threads",
		"Thread control structures (TCS) of an enclave: how many threads can be inside at once. Absent for one that was there before the agent.", "sgx_ioctl", enclave...)
	w.enclaveWorkingSet = gauge("sgx_enclave_working_set_bytes", "bytes",
		"Estimate of the enclave page cache that would end an enclave's paging: what is resident and what was loaded back in the last minute, at most all its pages. An upper bound: without pressure, nothing tells unused pages apart.",
		"struct sgx_encl; sgx_encl_eldu", enclave...)
	w.enclaveAugmented = counter("sgx_enclave_pages_augmented_total", "pages", "Pages added to one enclave while it runs (EAUG).", "sgx_mark_page_reclaimable", enclave...)
	w.enclaveEvicted = counter("sgx_enclave_pages_evicted_total", "pages", "Pages of one enclave that were evicted (EWB).", "sgx_encl_ewb", enclave...)
	w.enclaveLoadedBack = counter("sgx_enclave_pages_loaded_back_total", "pages", "Evicted pages of one enclave that were loaded back (ELDU).", "sgx_encl_eldu", enclave...)
	w.enclaveFaults = counter("sgx_enclave_faults_total", "faults", "Page faults in one enclave that reached the driver.", "sgx_vma_fault", enclave...)
}

func (w *watched) ofWorkloads() {
	const of = ", of the enclaves that a workload's processes created."
	gaugeOf := func(name, unit, help string) *metric.Desc {
		return gauge(name, unit, help+of, "struct sgx_encl", workloadLabels...)
	}
	counterOf := func(name, unit, help, origin string) *metric.Desc {
		return counter(name, unit, help+of, origin, workloadLabels...)
	}
	w.workloadEnclaves = gaugeOf("sgx_workload_enclaves", "enclaves", "Enclaves that there are")
	w.workloadSize = gaugeOf("sgx_workload_size_bytes", "bytes", "Sum of the address ranges")
	w.workloadResident = gaugeOf("sgx_workload_resident_bytes", "bytes", "Enclave page cache in use")
	w.workloadPagedOut = gaugeOf("sgx_workload_paged_out_bytes", "bytes", "Memory that is evicted")
	w.workloadWorkingSet = gaugeOf("sgx_workload_working_set_bytes", "bytes", "Sum of sgx_enclave_working_set_bytes")
	w.workloadCreated = counterOf("sgx_workload_enclaves_created_total", "enclaves", "Enclaves created (ECREATE)", "sgx_ioctl")
	w.workloadAdded = counterOf("sgx_workload_pages_added_total", "pages", "Pages added (EADD)", "sgx_mark_page_reclaimable")
	w.workloadAugmented = counterOf("sgx_workload_pages_augmented_total", "pages", "Pages added while they run (EAUG)", "sgx_mark_page_reclaimable")
	w.workloadEvicted = counterOf("sgx_workload_pages_evicted_total", "pages", "Pages evicted (EWB)", "sgx_encl_ewb")
	w.workloadLoadedBack = counterOf("sgx_workload_pages_loaded_back_total", "pages", "Evicted pages loaded back (ELDU)", "sgx_encl_eldu")
	w.workloadFaults = counterOf("sgx_workload_faults_total", "faults", "Page faults that reached the driver", "sgx_vma_fault")
}

// all lists the descriptions in the order of the documentation.
func (w *watched) all() []*metric.Desc {
	return []*metric.Desc{
		w.augmented, w.faults, w.retries, w.loadBackTime,
		w.batches, w.scanned, w.scannedUsed, w.written, w.reclaimTime, w.startTime, w.encls, w.lost,
		w.vepcOpened, w.vepcReleased, w.vepcFaults,
		w.enclaveInfo, w.enclaveStart, w.enclaveThreads, w.enclaveWorkingSet,
		w.enclaveAugmented, w.enclaveEvicted, w.enclaveLoadedBack, w.enclaveFaults,
		w.workloadEnclaves, w.workloadSize, w.workloadResident, w.workloadPagedOut, w.workloadWorkingSet,
		w.workloadCreated, w.workloadAdded, w.workloadAugmented, w.workloadEvicted, w.workloadLoadedBack, w.workloadFaults,
		w.evictedBy,
	}
}
