// SPDX-License-Identifier: Apache-2.0

package driver

// A compiler may inline a function of the driver in some of its callers and keep it for others. A probe is then attached, and
// counts too little without an error. So the counts are compared with the driver's own records.

// balance is the number of pages in the driver's own records minus the number that follows from the counts.
type balance int64

// allocated compares the pages in use, up to a constant: the machine's pages.
func (w *watch) allocated() (b balance, ok bool) {
	m := w.kernel.moment[0]
	return -balance(m.FreePages) - balance(m.InUse), m.Read != 0 && w.kernel.attached(probeAllocated, probeFreed)
}

// evicted compares the pages of the enclaves that are not in the enclave page cache. The evictions of enclaves that
// existed before the agent are not all known.
func (w *watch) evicted(live []*record) (b balance) {
	for _, r := range live {
		if r.CreatedNS == 0 || r.Flags&recordInitialized == 0 {
			continue
		}
		out := r.pagedOut() + 1 - uint64(r.SECSResident)
		b += balance(out) - balance(r.Count[nEvicted]-r.Count[nLoadedBack])
	}
	return b
}

// differences returns the samples of both comparisons.
func (w *watch) differences(f *families, live []*record) []sample {
	var list []sample
	if b, ok := w.allocated(); ok {
		list = append(list, sample{desc: f.difference, value: float64(b - w.start), labels: []string{"allocated"}})
	}
	if w.kernel.attached(probeRequest, probeEvicted, probeLoadedBack) {
		list = append(list, sample{desc: f.difference, value: float64(w.evicted(live)), labels: []string{"evicted"}})
	}
	return list
}
