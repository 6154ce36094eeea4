// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/metric"
)

// samples returns the samples of the in-tree driver. Families whose probe is not attached are absent. `now` and `clock` are the
// same moment, on the wall clock and on the clock of the kernel side.
func (w *watch) samples(f *families, now time.Time, clock time.Duration) []sample {
	live := w.live()
	all := w.kernel.sum()
	named := w.owners.Totals()
	var list []sample
	for _, part := range [][]sample{
		w.machine(f, &all, live), w.instructions(f, &all), w.guests(f, &all),
		w.eachEnclave(f, live, now, clock), w.eachWorkload(f, named, live), w.neighbours(f, named), w.differences(f, live), w.lost(f),
	} {
		list = append(list, part...)
	}
	return list
}

// live lists the existing enclaves, oldest first.
func (w *watch) live() []*record {
	var list []*record
	for i := range w.kernel.records {
		if r := &w.kernel.records[i]; r.Address != 0 && r.Kind == kindEnclave && r.Read != 0 {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *record) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// lister collects samples of attached probes.
type lister struct {
	kernel *kernelSide
	began  time.Time // of counters that are added; zero if unknown
	list   []sample
}

// add adds a sample if all these probes are attached.
func (l *lister) add(d *metric.Desc, v uint64, labels []string, probes ...string) {
	if l.kernel.attached(probes...) {
		l.list = append(l.list, sample{desc: d, value: float64(v), labels: labels, began: l.began})
	}
}

// machine returns the samples of the whole EPC.
func (w *watch) machine(f *families, t *totals, live []*record) []sample {
	l := lister{kernel: w.kernel}
	l.add(f.allocated, t.Total[nAllocated], nil, probeAllocated)
	l.add(f.freed, t.Total[nFreed], nil, probeFreed)
	l.add(f.added, t.Count[nAdded], nil, probeAdded)
	l.add(f.augmented, t.Count[nAugmented], nil, probeAdded, probeFault)
	l.add(f.evicted, t.Count[nEvicted], nil, probeEvicted)
	l.add(f.loadedBack, t.Count[nLoadedBack], nil, probeLoadedBack)
	l.add(f.faults, t.Count[nFaults], nil, probeFault)
	l.add(f.retries, t.Count[nFaultsBusy], nil, probeFault, probeFaultBusy)
	l.add(f.created, t.Count[nCreated], nil, probeRequest)
	l.add(f.initialized, t.Count[nInitialized], nil, probeRequest)
	l.add(f.released, t.Count[nReleased], nil, probeRelease)
	l.add(f.batches, t.Total[nBatches], []string{"ksgxd"}, probeReclaimed)
	l.add(f.batches, t.Total[nBatchesDirect], []string{"direct"}, probeReclaimed)
	l.add(f.scanned, t.Count[nScanned], nil, probeScanned, probeReclaim)
	l.add(f.scannedUsed, t.Count[nScannedUsed], nil, probeScanned, probeReclaim)
	l.add(f.written, t.Total[nWritten], nil, probeEvicted)

	var resident, secs, versions, initialized uint64
	for _, r := range live {
		resident += uint64(r.Resident)
		secs += uint64(r.SECSResident)
		versions += r.versionArrays()
		initialized += r.Flags & recordInitialized
	}
	life := []string{probeRequest, probeRelease}
	l.add(f.pages, resident, []string{"enclave"}, life...)
	l.add(f.pages, secs, []string{"secs"}, life...)
	l.add(f.pages, versions, []string{"version_array"}, life...)
	l.add(f.enclaves, initialized, []string{"initialized"}, life...)
	l.add(f.enclaves, uint64(len(live))-initialized, []string{"uninitialized"}, life...)
	if m := w.kernel.moment[0]; m.Read != 0 {
		l.add(f.free, m.FreePages*pageSize, nil)
		l.add(f.pages, m.FreePages, []string{"free"})
		l.add(f.moved, m.Moved, nil, probeAllocated, probeFreed)
	}
	return l.list
}

// versionArrays returns the number of pages for the versions of an enclave's evicted pages: one for each 512
// pages of the enclave, including the SECS (sgx_encl_grow).
func (r *record) versionArrays() uint64 {
	const slots = 512
	return (uint64(r.Pages) + 1 + slots - 1) / slots
}

// timing is a distribution of durations.
type timing struct {
	desc   *metric.Desc
	labels []string
	*distribution
}

// timings returns the distributions of all durations.
func (w *watch) timings(f *families) []timing {
	all := w.kernel.sum()
	var list []timing
	for _, x := range []struct {
		desc   *metric.Desc
		which  int
		labels []string
		probes []string
	}{
		{f.reclaimTime, timeReclaim, []string{"ksgxd"}, []string{probeReclaim, probeReclaimed}},
		{f.reclaimTime, timeReclaimDirect, []string{"direct"}, []string{probeReclaim, probeReclaimed}},
		{f.loadBackTime, timeLoadBack, nil, []string{probeFault, probeFaultEnd, probeLoadedBack}},
		{f.startTime, timeStarting, nil, []string{probeRequest}},
	} {
		if w.kernel.attached(x.probes...) {
			list = append(list, timing{x.desc, x.labels, &all.Times[x.which]})
		}
	}
	return list
}

// instructions counts the leaves of ENCLS that follow exactly from the driver's actions.
func (w *watch) instructions(f *families, t *totals) []sample {
	l := lister{kernel: w.kernel}
	leaf := func(name, result string, n uint64, probes ...string) {
		l.add(f.encls, n, []string{name, result}, probes...)
	}
	const ok, failed = "succeeded", "failed"
	leaf("ECREATE", ok, t.Count[nCreated], probeRequest)
	leaf("ECREATE", failed, t.Total[nCreatesFailed], probeRequest)
	leaf("EADD", ok, t.Count[nAdded], probeAdded)
	leaf("EEXTEND", ok, t.Count[nMeasured]*(pageSize/256), probeRequest, probeAdded)
	leaf("EINIT", ok, t.Count[nInitialized], probeRequest)
	leaf("EAUG", ok, t.Count[nAugmented], probeAdded, probeFault)
	leaf("EPA", ok, t.Total[nVersionArrays], probeAllocated)
	leaf("EBLOCK", ok, t.Total[nWritten], probeEvicted)
	leaf("ETRACK", ok, t.Total[nETRACKCalls], probeEWB, probeEvicted)
	leaf("EWB", ok, t.Count[nEvicted], probeEvicted)
	leaf("EWB", failed, t.Total[nEWBFailed], probeEWB, probeEvicted)
	leaf("ELDU", ok, t.Count[nLoadedBack], probeLoadedBack)
	leaf("EREMOVE", ok, t.Total[nRemoved], probeFreed, probeEvicted)
	return l.list
}

// guests returns the samples of the EPC of virtual machines.
func (w *watch) guests(f *families, t *totals) []sample {
	l := lister{kernel: w.kernel}
	l.add(f.vepcOpened, t.Total[nVEPCOpened], nil, probeVEPCOpen)
	l.add(f.vepcReleased, t.Total[nVEPCReleased], nil, probeVEPCRelease)
	l.add(f.vepcFaults, t.Total[nVEPCFaults], nil, probeVEPCFault)
	var pages uint64
	for i := range w.kernel.records {
		if r := &w.kernel.records[i]; r.Address != 0 && r.Kind == kindGuest {
			pages += uint64(r.Resident)
		}
	}
	l.add(f.pages, pages, []string{"vepc"}, probeVEPCOpen, probeVEPCRelease, probeAllocated, probeVEPCFound)
	return l.list
}

// eachEnclave returns the samples of single enclaves. These are the oldest ones, so that a series ends when its
// enclave ends, and not when another is created.
func (w *watch) eachEnclave(f *families, live []*record, now time.Time, clock time.Duration) []sample {
	l := lister{kernel: w.kernel}
	for _, r := range live[:min(len(live), maxEnclaves)] {
		id := []string{strconv.FormatUint(uint64(r.ID), 10), strconv.FormatUint(uint64(r.TGID), 10)}
		own := w.owners.workloadOf(r.Group)
		l.add(f.enclaveInfo, 1, append(slices.Clone(id), own.Name, own.Container, own.Pod, own.Namespace,
			strconv.FormatBool(r.Flags&recordDebug != 0), r.seen()))
		l.add(f.enclaveSize, r.Size, id)
		l.add(f.enclaveResident, uint64(r.Resident)*pageSize, id)
		l.add(f.enclavePagedOut, r.pagedOut()*pageSize, id)
		l.add(f.enclaveVersions, r.versionArrays()*pageSize, id)
		l.add(f.enclaveWorkingSet, r.workingSet()*pageSize, id)
		l.add(f.enclaveAdded, r.Count[nAdded], id, probeAdded)
		l.add(f.enclaveAugmented, r.Count[nAugmented], id, probeAdded, probeFault)
		l.add(f.enclaveEvicted, r.Count[nEvicted], id, probeEvicted)
		l.add(f.enclaveLoadedBack, r.Count[nLoadedBack], id, probeLoadedBack)
		l.add(f.enclaveFaults, r.Count[nFaults], id, probeFault)
		if r.CreatedNS != 0 {
			l.add(f.enclaveThreads, uint64(r.Threads), id, probeRequest, probeAdded)
			age := clock - time.Duration(r.CreatedNS)
			l.list = append(l.list, sample{desc: f.enclaveStart, value: float64(now.Add(-age).UnixMilli()) / 1e3, labels: id})
		}
	}
	return l.list
}

// seen returns created if the counts of an enclave are complete, and found if the enclave existed before the agent, so that its
// counts begin later.
func (r *record) seen() string {
	if r.CreatedNS == 0 {
		return "found"
	}
	return "created"
}

func (r *record) pagedOut() uint64 {
	return uint64(r.Pages) - min(uint64(r.Pages), uint64(r.Resident))
}

// holding is the current state of the enclaves of a workload.
type holding struct{ enclaves, size, resident, pagedOut, workingSet uint64 }

// eachWorkload adds up the enclaves of each workload. Counters include ended enclaves.
func (w *watch) eachWorkload(f *families, named map[*workload.Workload[counts]]*counts, live []*record) []sample {
	held := map[*workload.Workload[counts]]*holding{}
	for _, r := range live {
		own := w.owners.workloadOf(r.Group)
		h := held[own]
		if h == nil {
			h = &holding{}
			held[own] = h
		}
		h.enclaves++
		h.size += r.Size
		h.resident += uint64(r.Resident) * pageSize
		h.pagedOut += r.pagedOut() * pageSize
		h.workingSet += r.workingSet() * pageSize
	}
	l := lister{kernel: w.kernel}
	for own, n := range named {
		h := held[own]
		if h == nil {
			h = &holding{}
		}
		if *n == (counts{}) && *h == (holding{}) {
			continue // the folded rest, which is empty
		}
		labels := []string{own.Name, own.Container, own.Pod, own.Namespace}
		l.began = own.Began
		l.add(f.workloadEnclaves, h.enclaves, labels, probeRequest, probeRelease)
		l.add(f.workloadSize, h.size, labels, probeRequest, probeRelease)
		l.add(f.workloadResident, h.resident, labels, probeRequest, probeRelease)
		l.add(f.workloadPagedOut, h.pagedOut, labels, probeRequest, probeRelease)
		l.add(f.workloadWorkingSet, h.workingSet, labels, probeRequest, probeRelease, probeLoadedBack)
		l.add(f.workloadCreated, n[nCreated], labels, probeRequest)
		l.add(f.workloadAdded, n[nAdded], labels, probeAdded)
		l.add(f.workloadAugmented, n[nAugmented], labels, probeAdded, probeFault)
		l.add(f.workloadEvicted, n[nEvicted], labels, probeEvicted)
		l.add(f.workloadLoadedBack, n[nLoadedBack], labels, probeLoadedBack)
		l.add(f.workloadFaults, n[nFaults], labels, probeFault)
	}
	return l.list
}

// neighbours returns by which workload the pages of a workload were evicted.
func (w *watch) neighbours(f *families, named map[*workload.Workload[counts]]*counts) []sample {
	l := lister{kernel: w.kernel}
	byLabels := map[[5]string]uint64{}
	for p, n := range w.owners.evictions(named) {
		v := p.victim
		byLabels[[5]string{v.Name, v.Container, v.Pod, v.Namespace, p.by.Name}] += n
	}
	for labels, n := range byLabels {
		l.add(f.evictedBy, n, labels[:], probeEvicted)
	}
	return l.list
}

// lost returns the number of events that could not be attributed.
func (w *watch) lost(f *families) []sample {
	var list []sample
	for i, what := range lossNames {
		list = append(list, sample{desc: f.lost, value: float64(w.kernel.losses[i]), labels: []string{what}})
	}
	return list
}
