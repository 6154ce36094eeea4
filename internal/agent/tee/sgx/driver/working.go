// SPDX-License-Identifier: Apache-2.0

package driver

import "time"

// window is the time over which an enclave's working set is estimated: the pages that it needed in the enclave
// page cache. These are the pages that are resident now and the pages that were loaded back in the window. With
// enough space the latter would be resident too. The estimate is limited by the number of the enclave's pages.
//
// It is an upper bound. A used resident page is distinguished from an unused one only when the driver looks for
// pages to evict. So without pressure the estimate is all resident pages. A page that was evicted and loaded back
// twice is counted twice. For an enclave without earlier looks it is its resident pages.
const window = time.Minute

// maxLooks limits the memory of one enclave. One scrape a second fills the window.
const maxLooks = 64

// look is a count at one moment.
type look struct {
	at         time.Time
	loadedBack uint64
}

// history contains the looks at enclaves, by their number.
type history map[uint32][]look

// note adds a look and drops looks that are older than the window, except the last of them, with which the window
// begins.
func (h history) note(id uint32, now time.Time, loadedBack uint64) {
	looks := h[id]
	if n := len(looks); n > 0 && now.Sub(looks[n-1].at) < window/maxLooks {
		return
	}
	looks = append(looks, look{now, loadedBack})
	for len(looks) > 1 && now.Sub(looks[1].at) >= window {
		looks = looks[1:]
	}
	h[id] = looks
}

// keep forgets the enclaves that have ended.
func (h history) keep(alive map[uint32]bool) {
	for id := range h {
		if !alive[id] {
			delete(h, id)
		}
	}
}

// workingSet estimates the working set of an enclave in pages, from all its pages and the resident ones.
func (h history) workingSet(id uint32, pages, resident, loadedBack uint64) uint64 {
	if looks := h[id]; len(looks) > 0 && loadedBack > looks[0].loadedBack {
		resident += loadedBack - looks[0].loadedBack
	}
	return min(pages, resident)
}
