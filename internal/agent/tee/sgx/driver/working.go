// SPDX-License-Identifier: Apache-2.0

package driver

import "time"

// The estimate of an enclave's working set: the pages that it has had to have in the enclave page cache in
// the last minute. They are those that are resident now and those that were loaded back meanwhile, which
// would be resident too if there had been room; and never more than the enclave has.
//
// It is an upper bound. Nobody tells a resident page that is used from one that is not until the driver
// looks for pages to evict, so without pressure it is all that is resident. A page that was evicted and
// loaded back twice is counted twice. It says nothing of an enclave that was made a moment ago.
const window = time.Minute

// maxLooks bounds what is remembered of one enclave: a scrape a second fills the window.
const maxLooks = 64

// look is what was counted at a moment.
type look struct {
	at         time.Time
	loadedBack uint64
}

// history remembers the looks at enclaves, by their number.
type history map[uint32][]look

// note adds a look and drops what is older than the window, but for one: the window begins with it.
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

// keep forgets the enclaves that are no more.
func (h history) keep(alive map[uint32]bool) {
	for id := range h {
		if !alive[id] {
			delete(h, id)
		}
	}
}

// workingSet estimates the pages that an enclave with so many pages, of which some are resident, works with.
func (h history) workingSet(id uint32, pages, resident, loadedBack uint64) uint64 {
	if looks := h[id]; len(looks) > 0 && loadedBack > looks[0].loadedBack {
		resident += loadedBack - looks[0].loadedBack
	}
	return min(pages, resident)
}
